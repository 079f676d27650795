// Where models come from, end to end through the command line and a server on this machine: the hub's
// paths, companions beside the weights, a download that is cut and goes on, and work without a network.

import { assert, assertEquals, assertLess, assertMatch } from "@std/assert";
import { assertRefused, troodon } from "./support/cli.ts";
import { type FileServer, startFileServer } from "./support/file_server.ts";
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { writeDecoder } from "./support/onnx_decoder.ts";

const GGUF = await Deno.readFile(fixturePath("models/llama_formats/llama.Q8_0.gguf"));
const HUB = "/o/r/resolve/main";

/** A server and a cache folder, both gone afterwards. */
async function withServer(
  files: Readonly<Record<string, Uint8Array>>,
  run: (server: FileServer, cache: string) => Promise<void>,
): Promise<void> {
  await using server = startFileServer(files);
  const cache = await Deno.makeTempDir();
  try {
    await run(server, cache);
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
}

/** A file of the tiny llama in several containers. */
function part(name: string): Uint8Array {
  return Deno.readFileSync(fixturePath(`models/llama_formats/${name}`));
}

Deno.test("info names the container that the weights lie in", async () => {
  await withFolder(async (folder) => {
    const ours = `${folder}/e0m4.safetensors`;
    await troodon(["quantize", TINY_LLAMA, ours, "--format", "e0m4_g32"]);
    const decoder = `${folder}/decoder.onnx`;
    await Deno.writeFile(decoder, writeDecoder());
    const formats = (name: string) => fixturePath(`models/llama_formats/${name}`);
    const rows = [
      [TINY_LLAMA, "gguf", "GGUF"],
      [ours, "safetensors", "safetensors, made of GGUF"],
      [fixturePath("models/llama"), "safetensors", "safetensors"],
      [formats("pytorch_model.bin"), "pickle", "PyTorch checkpoint"],
      [formats("llama2c_v2_q80.bin"), "llama2c", "llama2.c checkpoint"],
      [decoder, "onnx", "ONNX"],
    ] as const;
    for (const [path, container, shown] of rows) {
      const json = await troodon(["info", path, "--json"]);
      assertEquals(json.code, 0, json.err);
      assertEquals(JSON.parse(json.out).info.container, container);
      assertMatch((await troodon(["info", path])).out, new RegExp(`^container +${shown}$`, "m"));
    }
  });
});

const ANSWER = ["--raw", "-p", "a", "--max-tokens", "4", "--json"];

Deno.test("hf: follows HF_ENDPOINT, or --endpoint before it, and then needs no network", async () => {
  await withServer({ [`${HUB}/sub/m.gguf`]: GGUF }, async ({ url, requests }, cache) => {
    const here = ["--cache-dir", cache];
    const dead = { HF_ENDPOINT: "http://127.0.0.1:9" };
    const env = { HF_ENDPOINT: url };
    const model = "hf:o/r/sub/m.gguf";
    assertRefused(await troodon(["info", "hf:o/r/sub/no.gguf", ...here], { env }), 1, /404/);
    const first = await troodon(["generate", model, ...here, ...ANSWER], { env });
    assertEquals(first.code, 0, first.err);
    const asked = requests.length;
    const again = await troodon(["generate", model, ...here, ...ANSWER], { env: dead });
    assertEquals(JSON.parse(again.out).ids, JSON.parse(first.out).ids);
    assertEquals(requests.length, asked);
    const other = ["pull", `${model}@main`, "--endpoint", url];
    assertEquals((await troodon([...other, "--cache-dir", `${cache}/2`], { env: dead })).code, 0);
  });
});

Deno.test("weights without texts in them bring config and tokenizer along and answer offline", async () => {
  const files = {
    [`${HUB}/pytorch_model.bin`]: part("pytorch_model.bin"),
    [`${HUB}/config.json`]: part("config.json"),
    [`${HUB}/tokenizer.model`]: part("tokenizer.model"),
  };
  await withServer(files, async (server, cache) => {
    const env = { HF_ENDPOINT: server.url };
    const model = "hf:o/r/pytorch_model.bin";
    const pulled = await troodon(["pull", model, "--cache-dir", cache], { env });
    assertEquals(pulled.code, 0, pulled.err);
    const answer = await troodon(["generate", model, "--cache-dir", cache, "--offline", ...ANSWER]);
    assertEquals(answer.code, 0, answer.err);
    assertEquals(JSON.parse(answer.out).ids.length, 4);
  });
});

Deno.test("a pull that is cut off says so, is listed, and goes on where it stopped", async () => {
  // A long tail stands for weights.
  const long = new Uint8Array(4_000_000);
  long.set(GGUF);
  await withServer({ "/m.gguf": long }, async (server, cache) => {
    const args = ["--cache-dir", cache];
    const model = `${server.url}/m.gguf`;
    server.faults.delay = 100;
    const pull = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", fixturePath("../../main.ts"), "pull", model, ...args],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    while (server.sent < 1_000_000) await new Promise((resolve) => setTimeout(resolve, 20));
    pull.kill("SIGINT");
    assertEquals((await pull.status).code, 130);
    const listed = await troodon(["list", ...args]);
    assertMatch(listed.out, /m\.gguf.*incomplete/);
    Object.assign(server.faults, { delay: 0 });
    server.sent = 0;
    const rest = await troodon(["pull", model, ...args]);
    assertEquals(rest.code, 0, rest.err);
    assert(server.sent > 0);
    assertLess(server.sent, 3_600_000);
    assertEquals((await troodon(["info", model, ...args, "--offline", "--json"])).code, 0);
  });
});

Deno.test("a server that is not there is one line that says what to do", async () => {
  const cache = await Deno.makeTempDir();
  try {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr;
    listener.close();
    const model = `http://127.0.0.1:${port}/m.gguf`;
    const outcome = await troodon(["generate", model, "-p", "a", "--cache-dir", cache]);
    assertRefused(outcome, 1, /m\.gguf: the connection failed .*Check the network/);
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
});
