// The command line as its users meet it: exit codes and streams, and processes of their own for permissions, signals and
// pipes. The model is a tiny checkpoint of the fixtures, so what is said does not matter here.

import {
  assert,
  assertEquals,
  assertFalse,
  assertLess,
  assertMatch,
  assertStringIncludes,
} from "@std/assert";
import { ROOT } from "../tools/support/task.ts";
import { dispatch } from "../engine/cli/command.ts";
import { COMMANDS } from "../engine/cli/command_line.ts";
import { systemTerminal } from "../engine/cli/terminal.ts";
import { importedModules } from "./support/modules.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { startFileServer } from "./support/file_server.ts";
import { fixturePath, readFixture } from "./support/fixtures.ts";

const MODEL = fixturePath("models/llama_formats/llama.Q8_0.gguf");

const NAMES = Object.keys(COMMANDS);

Deno.test("troodon --help lists every command and needs no permission", async () => {
  const { code, out, err } = await troodon(["--help"], { permissions: [] });
  assertEquals([code, err], [0, ""]);
  assert(NAMES.length > 10);
  for (const name of NAMES) assertMatch(out, new RegExp(`^  ${name} `, "m"));
});

for (const name of NAMES) {
  Deno.test(`troodon ${name} --help has examples and needs no permission`, async () => {
    const { code, out, err } = await troodon([name, "--help"], { permissions: [] });
    assertEquals([code, err], [0, ""]);
    assertStringIncludes(out, `Usage: troodon ${name}`);
    assertStringIncludes(out, "Examples:");
    assertStringIncludes(out, "--json");
  });
}

Deno.test("--help starts like an empty script: a handful of modules, and no command is loaded", async () => {
  const { count, bytes } = await importedModules("main.ts");
  assertLess(count, 10);
  assertLess(bytes, 40_000);
  const load = () => Promise.reject(new Error("loaded"));
  const printed: string[] = [];
  const terminal = { ...systemTerminal(), out: (text: string) => void printed.push(text) };
  const commands = { odd: { summary: "does nothing", load } };
  const given = { terminal, args: ["--help"], version: "0", exit: Deno.exit };
  assertEquals(await dispatch(commands, given), 0);
  assertStringIncludes(printed.join(""), "odd");
});

Deno.test("help with a command is the page of that command", async () => {
  const [page, same] = await Promise.all([troodon(["help", "pull"]), troodon(["pull", "--help"])]);
  assertEquals([page.code, page.out], [0, same.out]);
  assertEquals((await troodon(["help"])).out, (await troodon(["--help"])).out);
  assertRefused(await troodon(["help", "pul"]), 2, /Unknown command pul. Did you mean pull\?/);
});

Deno.test("wrong usage is a one-line error with exit code 2", async () => {
  assertEquals((await troodon([])).code, 2);
  assertRefused(await troodon(["chta"]), 2, /Unknown command chta. Did you mean chat\?/);
  assertRefused(
    await troodon(["--verson"]),
    2,
    /Unknown command --verson. Did you mean --version\?/,
  );
  assertRefused(
    await troodon(["generate", "--promt", "x"]),
    2,
    /Unknown flag --promt. Did you mean --prompt\?/,
  );
  assertRefused(await troodon(["generate", MODEL, "a", "extra"]), 2, /does not take "extra"/);
  assertRefused(await troodon(["generate", MODEL, "a", "-p", "b"]), 2, /given twice.*"a"/);
  assertRefused(await troodon(["remove"]), 2, /needs CACHED-MODEL/);
  assertRefused(await troodon(["generate", "--max-tokens", "many"]), 2, /whole number/);
  const clash = ["generate", MODEL, "-p", "a", "--greedy", "--temperature", "1"];
  assertRefused(await troodon(clash), 2, /--greedy/);
});

Deno.test("--version says the version of deno.json and that of Deno", async () => {
  const { version } = JSON.parse(Deno.readTextFileSync(`${ROOT}/deno.json`));
  for (const word of ["--version", "-V"]) {
    const { code, out } = await troodon([word], { permissions: [] });
    assertEquals([code, out], [0, `troodon ${version} (Deno ${Deno.version.deno})\n`]);
  }
});

Deno.test("a text in the place of a flag is the prompt, with the default model if it stands alone", async () => {
  const short = ["--json", "--max-tokens", "2", "--raw"];
  const byFlag = JSON.parse((await troodon(["generate", MODEL, "-p", "ab c", ...short])).out);
  const byPlace = JSON.parse((await troodon(["generate", MODEL, "ab c", ...short])).out);
  assertEquals([byPlace.prompt, byPlace.ids], ["ab c", byFlag.ids]);
  // Nothing is looked for but the default model.
  for (const text of ["ab c", "Hello", "Grüße"]) {
    const alone = ["generate", text, "--offline", "--cache-dir", "/nowhere"];
    assertRefused(await troodon(alone), 1, /smollm2-135m: is not in the cache/);
  }
  const misspelt = ["generate", "smollm", "-p", "a", "--offline", "--cache-dir", "/nowhere"];
  assertRefused(await troodon(misspelt), 1, /smollm2-135m: is not in the cache/); // an alias
  assertRefused(await troodon(["generate", "smolllm2", "-p", "a"]), 1, /Did you mean smollm2\?/);
});

Deno.test("several prompts are answered side by side, each under its label, as each is alone", async () => {
  const short = ["--raw", "--ignore-eos", "--max-tokens", "6"];
  const alone = [];
  for (const prompt of ["ab c", "x y"]) {
    alone.push((await troodon(["generate", MODEL, "-p", prompt, ...short])).out);
  }
  const both = ["generate", MODEL, "-p", "ab c", "-p", "x y", ...short];
  for (const sessions of ["1", "2"]) {
    const { out } = await troodon([...both, "--sessions", sessions, "--cache-tokens", "256"]);
    assertEquals(out, `[1/2] ab c\n${alone[0]}\n[2/2] x y\n${alone[1]}`);
  }
  const priorities = ["--priority", "low", "--priority", "2"];
  const lines = (await troodon([...both, ...priorities, "--json"])).out.trim().split("\n");
  assertEquals(lines.map((line) => JSON.parse(line).prompt), ["ab c", "x y"]);
  const thrice = [...both, ...priorities, "--priority", "0"];
  assertRefused(await troodon(thrice), 2, /given 3 times for 2 prompts/);
  assertRefused(await troodon([...both, "--priority", "urgent"]), 2, /urgent/);
  assertRefused(await troodon([...both, "-p", "-", "-p", "-"]), 2, /standard input is read once/);
});

Deno.test("--logprobs shows the tokens with their probabilities below the answer", async () => {
  const short = ["--raw", "--ignore-eos", "--max-tokens", "3", "--logprobs", "2"];
  const { out } = await troodon(["generate", MODEL, "ab c", ...short]);
  const [head, ...rows] = out.slice(out.indexOf("TOKEN")).trimEnd().split("\n");
  assertMatch(head!, /^TOKEN +LOGPROB +BEST$/);
  const json = JSON.parse((await troodon(["generate", MODEL, "ab c", ...short, "--json"])).out);
  assertEquals(rows.length, 3);
  for (const [i, { logProbability, alternatives }] of json.tokens.entries()) {
    assertStringIncludes(rows[i]!, logProbability.toFixed(3));
    assertEquals(rows[i]!.match(/-\d+\.\d{3}/g)!.length, 1 + alternatives.length);
  }
});

Deno.test("a missing model is an error that names it and what there is", async () => {
  const args = ["generate", "no-such-model", "-p", "a"];
  assertRefused(await troodon(args), 1, /no-such-model.*troodon list/);
  assertRefused(await troodon(["info", "/nowhere/model.gguf"]), 1, /\/nowhere\/model\.gguf/);
});

Deno.test("options of sampling are checked before a model is looked for", async () => {
  for (const command of ["generate", "chat"]) {
    const flags = ["--sampling", '{"samplers":["temprature"]}'];
    const result = await troodon([command, "no-such-model", ...flags], { stdin: "a" });
    assertRefused(result, 2, /temprature/);
    assertFalse(result.err.includes("no-such-model"));
  }
});

Deno.test("a hostile file is an error that names file and place", async () => {
  const path = fixturePath("gguf/hostile/gguf_string_past_eof.gguf");
  for (
    const args of [["info", path], ["generate", path, "-p", "a"], ["tokenize", path, "-t", "a"]]
  ) {
    assertRefused(await troodon(args), 1, /gguf_string_past_eof\.gguf/);
  }
});

Deno.test("--debug adds the stack, and --json makes errors JSON", async () => {
  const { code, err } = await troodon(["info", "/nowhere/model.gguf", "--debug"]);
  assertEquals(code, 1);
  assertMatch(err, /\n\s+at /);
  const json = await troodon(["info", "/nowhere/model.gguf", "--json"]);
  assertStringIncludes(JSON.parse(json.err).error.message, "/nowhere/model.gguf");
});

Deno.test("generate needs --allow-read of the model and nothing else", async () => {
  const args = ["generate", MODEL, "--raw", "--prompt", "a", "--max-tokens", "4", "--json"];
  const { code, out, err } = await troodon(args, { permissions: [`--allow-read=${MODEL}`] });
  assertEquals([code, err], [0, ""]);
  const { ids, finishReason, stats } = JSON.parse(out);
  assertEquals([ids.length, finishReason], [4, "length"]);
  assert(stats.firstTokenMs > 0);
});

Deno.test("a GGUF model needs no npm package", async () => {
  const args = ["generate", MODEL, "-p", "a", "--max-tokens", "4", "--greedy"];
  const { code, err } = await troodon(args, { permissions: ["--no-npm", "--allow-read"] });
  assertEquals(code, 0, err);
});

Deno.test("generate without --allow-read says which flag is missing", async () => {
  const args = ["generate", MODEL, "--raw", "-p", "a"];
  assertRefused(await troodon(args, { permissions: [] }), 1, /--allow-read/);
});

Deno.test("generate gives the same answer from a flag, from -, and from a pipe", async () => {
  const args = ["generate", MODEL, "--raw", "--max-tokens", "6", "--ignore-eos"];
  const { out } = await troodon([...args, "--prompt", "hello"]);
  assert(out.length > 1);
  assertEquals((await troodon([...args, "--prompt", "-"], { stdin: "hello\n" })).out, out);
  assertEquals((await troodon(args, { stdin: "hello\n" })).out, out);
});

Deno.test("generate with a seed gives the same answer again, on one thread and on all", async () => {
  const args = ["generate", MODEL, "--raw", "-p", "ab", "--max-tokens", "8", "--temperature", "1"];
  const first = await troodon([...args, "--seed", "7"]);
  assertEquals(first.code, 0, first.err);
  assertEquals((await troodon([...args, "--seed", "7", "--threads", "1"])).out, first.out);
});

Deno.test("the reference device gives the same tokens as wasm", async () => {
  const args = [
    "generate",
    MODEL,
    "--raw",
    "-p",
    "ab",
    "--max-tokens",
    "8",
    "--precision",
    "exact",
  ];
  const [wasm, reference] = await Promise.all(
    ["wasm", "reference"].map((device) => troodon([...args, "--json", "--device", device])),
  );
  assertEquals(JSON.parse(wasm!.out).ids, JSON.parse(reference!.out).ids);
});

Deno.test("tokenize goes there and back", async () => {
  const { out } = await troodon(["tokenize", MODEL, "--text", "hi", "--no-bos", "--json"]);
  const { ids, pieces, count } = JSON.parse(out);
  assertEquals([ids.length, pieces.length], [count, count]);
  const back = await troodon(["tokenize", MODEL, "--decode", ids.join(" ")]);
  assertEquals(back.out, "hi\n");
  assertRefused(await troodon(["tokenize", MODEL, "--decode", "1 x"]), 2, /--decode/);
});

Deno.test("info shows architecture, formats and memory, as text and as JSON", async () => {
  const text = await troodon(["info", MODEL]);
  assertEquals(text.code, 0, text.err);
  assertMatch(text.out, /architecture\s+llama$/m);
  assertMatch(text.out, /container\s+GGUF$/m);
  assertStringIncludes(text.out, "Q8_0");
  const { info, memory } = JSON.parse((await troodon(["info", MODEL, "--json"])).out);
  assertEquals(info.architecture, "llama");
  assert(memory.total > memory.weights);
});

Deno.test("info works from config.json alone, and tells what differs from the nearest family", async () => {
  const config = JSON.parse(readFixture("models/granite/config.json"));
  const folder = await Deno.makeTempDir();
  const write = (changes: Record<string, unknown>) =>
    Deno.writeTextFile(`${folder}/config.json`, JSON.stringify({ ...config, ...changes }));
  try {
    await write({ colour: "red" });
    for (const name of [folder, `${folder}/config.json`]) {
      const known = await troodon(["info", name]);
      assertEquals(known.code, 0, known.err);
      assertMatch(known.out, /^architecture\s+granite$/m);
      assertMatch(known.out, /^attention\s+\d+ heads of/m);
      assertMatch(known.out, /warning: the file's key colour is not understood/);
    }
    await write({ model_type: "mine", architectures: null, colour: "red", mlp_bias: true });
    const own = await troodon(["info", folder]);
    assertMatch(own.out, /^nearest\s+granite$/m);
    assertMatch(own.out, /^keys that it does not know\s+colour/m);
    const { nearest } = JSON.parse((await troodon(["info", folder, "--json"])).out);
    assertEquals([nearest.families, nearest.keys[0]], [["granite"], "colour"]);
    await write({ num_attention_heads: 0 });
    assertRefused(await troodon(["info", folder]), 1, /num_attention_heads: must be an integer/);
    await Deno.writeTextFile(`${folder}/config.json`, "[]");
    assertRefused(await troodon(["info", folder]), 1, /config\.json: is not a JSON object/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("info reads a remote header by ranges, before any download", async () => {
  // A long tail stands for weights that must not be fetched.
  const model = await Deno.readFile(MODEL);
  const long = new Uint8Array(model.length + 20_000_000);
  long.set(model);
  await using server = startFileServer({ "/model.gguf": long, "/o/r/resolve/main/m.gguf": long });
  const cache = await Deno.makeTempDir();
  try {
    const sources = [[`${server.url}/model.gguf`], ["hf:o/r/m.gguf", "--endpoint", server.url]];
    for (const source of sources) {
      server.sent = 0;
      const { code, out, err } = await troodon(["info", ...source, "--cache-dir", cache, "--json"]);
      assertEquals(code, 0, err);
      assertEquals(JSON.parse(out).info.architecture, "llama");
      assertLess(server.sent, 2_000_000);
    }
    assertEquals([...Deno.readDirSync(cache)], []);
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
});

Deno.test("pull fetches and verifies, generate then works offline, remove frees the disk", async () => {
  await using server = startFileServer({ "/model.gguf": await Deno.readFile(MODEL) });
  const cache = await Deno.makeTempDir();
  try {
    const url = `${server.url}/model.gguf`;
    const here = ["--cache-dir", cache];
    const wrong = await troodon(["pull", url, ...here, "--sha256", "0".repeat(64)]);
    assertEquals([wrong.code, wrong.out], [1, ""]);
    assertMatch(wrong.err, /sha256/);
    assertEquals((await troodon(["pull", url, ...here])).code, 0);
    const asked = server.requests.length;
    const answer = await troodon([
      "generate",
      url,
      ...here,
      "--offline",
      "--raw",
      "-p",
      "a",
      "--json",
      "--max-tokens",
      "4",
    ]);
    assertEquals(answer.code, 0, answer.err);
    assertEquals(server.requests.length, asked);
    const { removed, bytes } = JSON.parse((await troodon(["remove", url, ...here, "--json"])).out);
    assertEquals(removed, url);
    assert(bytes > 30_000);
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
});

Deno.test("list and remove work on a cache folder of their own", async () => {
  const cache = await Deno.makeTempDir();
  try {
    const { code, out } = await troodon(["list", "--cache-dir", cache, "--json"]);
    assertEquals(code, 0);
    const { catalogue, cache: cached } = JSON.parse(out);
    assert(catalogue.some(({ name }: { name: string }) => name === "smollm2-135m"));
    assertEquals(cached, []);
    const removal = await troodon(["remove", "smollm2-135m", "--cache-dir", cache]);
    assertRefused(removal, 1, /not in the cache.*`troodon list` shows what is/);
    const mistyped = await troodon(["remove", "smol", "--cache-dir", cache]);
    assertRefused(mistyped, 1, /smol: is not in the cache .*`troodon list` shows what is/);
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
});

Deno.test("offline, a model that is not cached is an error without a network", async () => {
  const cache = await Deno.makeTempDir();
  try {
    const args = ["generate", "smollm2-135m", "-p", "a", "--offline", "--cache-dir", cache];
    assertRefused(await troodon(args), 1, /smollm2-135m.*not in the cache/);
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
});

Deno.test("no escape sequence goes to a pipe, with and without NO_COLOR", async () => {
  for (const env of [{}, { NO_COLOR: "1" }]) {
    const { out, err } = await troodon(["info", MODEL], { env });
    assertEquals((out + err).includes("\x1b"), false);
    assertEquals((await troodon(["chta"], { env })).err.includes("\x1b"), false);
  }
});

Deno.test("doctor --quick reports machine and permissions", async () => {
  const { code, out } = await troodon(["doctor", "--quick", "--json"], {
    permissions: ["--allow-env"],
  });
  assertEquals(code, 0);
  const { machine, permissions, simd } = JSON.parse(out);
  assert(machine.threads >= 1);
  assertMatch(simd.simd, /baseline|relaxed/);
  const read = permissions.find(({ name }: { name: string }) => name === "read");
  assertEquals(read.state === "granted", false);
  const report = ["doctor", "--quick", "--report", "card.json"];
  assertRefused(await troodon(report), 2, /--report is about kernels, which --quick leaves out/);
  // A system whose one driver is not there.
  const env = { DENO_WEBGPU_BACKEND: "vulkan", VK_ICD_FILENAMES: "/none" };
  const none = await troodon(["doctor", "--device", "gpu"], { env });
  assertEquals(none.code, 1);
  assertMatch(none.err, /error: device gpu is not to be had: this machine offers no GPU/);
  const plan = await troodon(["plan", MODEL, "--device", "gpu"], { env });
  assertRefused(plan, 1, /device gpu is not to be had: .*no GPU. Use device wasm, or auto/);
  const reportTo = (path: string) => troodon(["doctor", "--report", path]);
  assertRefused(
    await reportTo("no/card.json"),
    1,
    /no\/card\.json: there is no folder no\/\. Create it first$/m,
  );
  assertRefused(
    await reportTo(fixturePath("models")),
    1,
    /models: it is a folder\. Give the name of a file in it$/m,
  );
});

Deno.test("a reader that leaves early (troodon … | head) is no failure", async () => {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "--allow-all", `${ROOT}/main.ts`, "info", MODEL, "--tensors"],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  await child.stdout.cancel();
  const [{ code }, err] = await Promise.all([child.status, new Response(child.stderr).text()]);
  assertEquals([code, err], [0, ""]);
});

for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
  Deno.test(`${signal} stops an answer with exit code ${code}`, async () => {
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        ...[
          "run",
          "--quiet",
          "--no-check",
          "--no-prompt",
          "--allow-read",
          `${ROOT}/main.ts`,
          "generate",
          MODEL,
        ],
        ...[
          "--raw",
          "-p",
          "a",
          "--ignore-eos",
          "--max-tokens",
          "1000000",
          "--context-full",
          "slide",
        ],
      ],
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const reader = child.stdout.getReader();
    await reader.read();
    child.kill(signal);
    while (!(await reader.read()).done);
    assertEquals((await child.status).code, code);
  });
}
