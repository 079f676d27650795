// examples/edge as a platform runs it: one file, in a process that may use the network and nothing else, without workers.

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { buildEdge } from "../examples/edge/build.ts";
import { loadGraph, sentenceVectors } from "../mod.ts";
import { tokenizerFromJson } from "../engine/tokenizers.ts";
import { cacheFolder, entryFolder } from "../engine/formats/hub/cache.ts";
import { withFolder } from "./support/folder.ts";
import { modelNeed } from "./support/models.ts";
import { testWith } from "./support/skip.ts";
import { floats, writeOnnx } from "./support/write_onnx.ts";

const MOST_CODE = 5_000_000;
const MOST_MEMORY = 512 << 20;

/** As platforms without workers have it. */
const PLATFORM = `delete globalThis.Worker; export { default } from "./main.js";`;

const TEXTS = ["the sea is calm", "the ship sails on the sea", "bread and salt"];
const WORDS = ["<unk>", ...new Set(TEXTS.join(" ").split(" "))];

/** A tokenizer of words, and a table of vectors as a graph. */
function toyFiles(): Readonly<Record<string, Uint8Array<ArrayBuffer>>> {
  const width = 8;
  const tokenizer = {
    model: {
      type: "WordLevel",
      vocab: Object.fromEntries(WORDS.map((word, id) => [word, id])),
      unk_token: "<unk>",
    },
    pre_tokenizer: { type: "WhitespaceSplit" },
  };
  const table = Array.from({ length: WORDS.length * width }, (_, i) => Math.sin(i * i));
  const rows = ["batch", "sequence"];
  const model = writeOnnx({
    nodes: [{ op: "Gather", inputs: ["table", "input_ids"], outputs: ["rows"] }],
    inputs: [["input_ids", 7, rows], ["attention_mask", 7, rows]],
    outputs: [["rows", 1, [...rows, width]]],
    initializers: [{
      name: "table",
      type: 1,
      dims: [WORDS.length, width],
      raw: floats(...table) as Uint8Array<ArrayBuffer>,
    }],
  });
  return {
    "model.onnx": model,
    "tokenizer.json": new TextEncoder().encode(JSON.stringify(tokenizer)),
  };
}

/** What a platform's process answers, and the most memory that it has taken, where the system tells. */
interface Edge {
  ask(path: string, body: unknown): Promise<{ readonly status: number; readonly value: unknown }>;
  peakBytes(): number | undefined;
}

/** Runs the example on a model of these files, as a platform would. */
async function onEdge(
  files: Readonly<Record<string, Uint8Array<ArrayBuffer>>>,
  body: (edge: Edge) => Promise<void>,
): Promise<void> {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const bytes = files[new URL(request.url).pathname.slice(1)];
    return bytes ? new Response(bytes) : new Response("", { status: 404 });
  });
  await withFolder(async (folder) => {
    const size = await buildEdge(folder, `http://127.0.0.1:${server.addr.port}/`);
    assert(size < MOST_CODE, `${size} bytes of code`);
    await Deno.writeTextFile(`${folder}/platform.js`, PLATFORM);
    await using child = new Deno.Command(Deno.execPath(), {
      args: [
        ...["serve", "--no-config", "--no-prompt", "--allow-net=127.0.0.1", "--host", "127.0.0.1"],
        ...["--port", "0", "platform.js"],
      ],
      cwd: folder,
      env: { NO_COLOR: "1" },
      stdout: "null",
      stderr: "piped",
    }).spawn();
    try {
      const [lines, rest] = child.stderr.tee();
      void rest.cancel();
      const origin = await addressIn(lines);
      await body({
        ask: async (path, given) => {
          const response = await fetch(`${origin}${path}`, {
            method: "POST",
            body: JSON.stringify(given),
          });
          return { status: response.status, value: await response.json() };
        },
        peakBytes: () => peakOf(child.pid),
      });
    } finally {
      child.kill("SIGKILL");
      await child.status;
    }
  });
  await server.shutdown();
}

async function addressIn(output: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const part of output) {
    text += decoder.decode(part, { stream: true });
    const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? [];
    if (found) return found;
  }
  throw new Error(text);
}

function peakOf(pid: number): number | undefined {
  try {
    const status = Deno.readTextFileSync(`/proc/${pid}/status`);
    return Number(/^VmHWM:\s+(\d+)/m.exec(status)![1]) * 1024;
  } catch {
    return undefined;
  }
}

/** The vectors that the engine gives here. */
async function expectedVectors(
  files: Readonly<Record<string, Uint8Array<ArrayBuffer>>>,
): Promise<number[][]> {
  const tokenizer = tokenizerFromJson(
    JSON.parse(new TextDecoder().decode(files["tokenizer.json"])),
    { tokenizerConfig: undefined, name: "tokenizer.json" },
  );
  let vectors: readonly Float32Array[] = [];
  await withFolder(async (folder) => {
    await Deno.writeFile(`${folder}/model.onnx`, files["model.onnx"]!);
    using graph = await loadGraph(`${folder}/model.onnx`, { threads: 1 });
    vectors = await sentenceVectors(graph, TEXTS.map((text) => tokenizer.encode(text)));
  });
  return vectors.map((vector) => [...vector]);
}

Deno.test("one file answers without workers and without permission to read", async () => {
  const files = toyFiles();
  await onEdge(files, async ({ ask }) => {
    const { value } = await ask("/embed", { texts: TEXTS });
    assertEquals(value, await expectedVectors(files));
    const { value: found } = await ask("/search", { query: "the sea", texts: TEXTS });
    assertEquals((found as { text: string }[])[0]!.text, TEXTS[0]);
    const wrong = await ask("/embed", { texts: [""] });
    assertEquals(wrong.status, 400);
    assertStringIncludes((wrong.value as { error: string }).error, "1 to 64 texts");
    assertEquals((await ask("/nothing", {})).status, 404);
  });
});

Deno.test("a model that is not to be had is named, and asked for again", async () => {
  const files: Record<string, Uint8Array<ArrayBuffer>> = { ...toyFiles() };
  const { "model.onnx": model } = files;
  delete files["model.onnx"];
  await onEdge(files, async ({ ask }) => {
    const { status, value } = await ask("/embed", { texts: TEXTS });
    assertEquals([status, value], [503, { error: "model.onnx: the server answers 404" }]);
    files["model.onnx"] = model!;
    assertEquals((await ask("/embed", { texts: TEXTS })).status, 200);
  });
});

testWith(
  [modelNeed("minilm-int8"), modelNeed("minilm")],
  "MiniLM stays below the memory of a platform",
  async () => {
    const read = (model: string, file: string) =>
      Deno.readFile(`${entryFolder(cacheFolder(), model)}/${file}`);
    const files = {
      "model.onnx": await read("minilm-int8", "model.onnx"),
      "tokenizer.json": await read("minilm", "tokenizer.json"),
    };
    await onEdge(files, async ({ ask, peakBytes }) => {
      const { value } = await ask("/embed", { texts: TEXTS });
      assertEquals(value, await expectedVectors(files));
      assert((peakBytes() ?? 0) < MOST_MEMORY, `${peakBytes()} bytes`);
    });
  },
);
