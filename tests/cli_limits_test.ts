// What does not fit, from the command line: every refusal is one line that says what there is, what was
// asked for and which flag mends it, and nothing that was made before is lost.

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { ROOT } from "../tools/support/task.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { readFixture } from "./support/fixtures.ts";
import { TINY_LLAMA } from "./support/models.ts";

const RAW = ["generate", TINY_LLAMA, "--raw", "-p"];

Deno.test("a prompt longer than the context is refused with both numbers and the flag", async () => {
  const long = await troodon([...RAW, "word ".repeat(100)]);
  assertRefused(long, 1, /the prompt has \d+ tokens, and the context holds 64.*larger --context/);
  const beyond = await troodon([...RAW, "a", "--context", "65"]);
  assertRefused(beyond, 1, /Cannot use --context 65: the model was trained for 64/);
});

Deno.test("a full context fails after the answer so far, stops or slides as --context-full says", async () => {
  const full = [...RAW, "a", "--ignore-eos", "--max-tokens", "100", "--context", "16"];
  const failed = await troodon(full);
  assertEquals(failed.code, 1);
  assertEquals(failed.err.trimEnd().split("\n").length, 1);
  assertMatch(failed.err, /context is full: 16 tokens.*larger --context, or use --context-full/);
  const stopped = await troodon([...full, "--context-full", "stop", "--json"]);
  const { finishReason, text } = JSON.parse(stopped.out);
  assertEquals([stopped.code, finishReason], [0, "context"]);
  assertEquals(failed.out, text.endsWith("\n") ? text : text + "\n");
  const slid = JSON.parse((await troodon([...full, "--context-full", "slide", "--json"])).out);
  assertEquals([slid.finishReason, slid.ids.length], ["length", 100]);
});

Deno.test("flags of chats are refused where there is none, and holes where the model fills none", async () => {
  const plain = [...RAW, "a", "--max-tokens", "1"];
  assertRefused(await troodon([...plain, "--context-full", "drop"]), 2, /--context-full drop/);
  assertRefused(
    await troodon([...plain, "--no-thinking"]),
    2,
    /--no-thinking is for models that chat/,
  );
  assertRefused(await troodon([...plain, "--suffix", "b"]), 1, /no tokens for filling in/);
  assertRefused(
    await troodon([...plain, "--suffix", "b", "--system", "s"]),
    2,
    /exclude each other/,
  );
});

Deno.test("flags that cannot be used are refused by name as wrong usage, before a model is opened", async () => {
  const cases: readonly (readonly [args: readonly string[], code: number, message: RegExp])[] = [
    [["--temperature=-1"], 2, /--temperature takes a number, 0 or more/],
    [["--top-p", "1.5"], 2, /--top-p takes a number, 0 to 1/],
    [["--top-k", "1.5"], 2, /--top-k takes a whole number/],
    [["--mirostat", "3"], 2, /--mirostat takes a whole number, 0 to 2/],
    [["--sampling", "{"], 2, /--sampling is no JSON/],
    [["--sampling", "[]"], 2, /--sampling takes a JSON object/],
    [["--sampling", '{"topp":1}'], 2, /Unknown option "topp"\. Did you mean topP\?/],
    [["--sampling", '{"warmth":1}'], 2, /Unknown sampler option "warmth": known are .*topP/],
    [["--sampling", '{"minP":7}'], 2, /min_p 7 .*from 0 to 1/],
    [["--sampling", '{"samplers":["temprature"]}'], 2, /"temprature"\. Did you mean temperature\?/],
    [["--max-tokens", "1e12"], 2, /Cannot use --max-tokens 1000000000000: .*0 to/],
    [["--priority", "silly"], 2, /Cannot use priority "silly": it is one of high/],
    [["--context", "100000000"], 2, /Cannot use --context 100000000: .*1 to 16777216/],
    [["--devices", "gpu"], 2, /Cannot use devices without placement/],
    [["--placement", "wasm;cuda"], 2, /Cannot use device "cuda": it is wasm, gpu, reference/],
    [["--placement", "0;1", "--devices", "wasm"], 2, /device 1: it is not there/],
    [["--placement", "0&1;2"], 2, /Cannot use .*placement "0&1;2": .*as many devices each/],
    [["--gpu-layers", "1", "--placement", "0"], 2, /Cannot use --gpu-layers beside placement/],
    [["--draft", "lookip"], 2, /--draft takes a model, lookup or history: .*mean lookup\?/],
  ];
  const outcomes = await Promise.all(cases.map(([args]) => troodon([...RAW, "a", ...args])));
  outcomes.forEach((outcome, i) => assertRefused(outcome, cases[i]![1], cases[i]![2]));
});

Deno.test("all who load a model refuse such flags so, and name files that are not there", async () => {
  const cases: readonly (readonly [args: readonly string[], code: number, message: RegExp])[] = [
    [["worker", "--placement", "wasm;cuda"], 2, /Cannot use device "cuda"/],
    [["worker", "--lora", "/none.gguf:0.5"], 1, /\/none\.gguf: no such file/],
    [["serve", "--port", "0", "--context", "100000000"], 2, /Cannot use --context 100000000/],
    [["serve", "--device", "gpu", "--gpu", "/none.node"], 1, /\/none\.node: no such file/],
    [["perplexity", "--devices", "gpu"], 2, /Cannot use devices without placement/],
    [["bench", "--placement", "0", "--gpu-layers", "1"], 2, /--gpu-layers beside placement/],
    [["plan", "--placement", "wasm;cuda"], 2, /Cannot use device "cuda"/],
  ];
  for (const [[command, ...args], code, message] of cases) {
    assertRefused(await troodon([command!, TINY_LLAMA, ...args], { stdin: "a" }), code, message);
  }
});

Deno.test("a file that is no schema or no grammar is named, and --json errors say file and remedy", async () => {
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, '{"type":"objekt"}');
    const bad = await troodon([...RAW, "a", "--schema", file, "--json"]);
    const { error } = JSON.parse(bad.err);
    assertEquals([bad.code, error.name, error.file], [1, "FormatError", file]);
    await Deno.writeTextFile(file, 'root ::= "a');
    const open = await troodon([...RAW, "a", "--grammar", file]);
    assertRefused(open, 1, /: grammar line .* not closed/);
    assertEquals(open.err.includes(file), true);
    const env = { TROODON_CACHE: `${file}/in` };
    const pulled = await troodon(["pull", "minilm", "--json"], { env });
    assertMatch(JSON.parse(pulled.err).error.remedy, /Set TROODON_CACHE/);
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("a text in the place of a model, or none at all, is told with the flag that takes it", async () => {
  const score = await troodon(["perplexity", TINY_LLAMA, "book.txt"]);
  assertRefused(score, 2, /give the text as --text book\.txt/);
  const ids = await troodon(["tokenize", TINY_LLAMA, "-", "--count"], { stdin: "a" });
  assertEquals([ids.code, ids.out], [0, "2\n"]);
  assertRefused(await troodon(["chat", TINY_LLAMA, "-"]), 2, /leave - out/);
  assertRefused(await troodon(["client"], { stdin: "" }), 2, /Nothing to ask: give --prompt/);
  const template = ["--chat-template", "chatml"];
  const picture = await troodon([
    "generate",
    TINY_LLAMA,
    ...template,
    "-p",
    "a",
    "--image",
    "no.png",
  ]);
  assertRefused(picture, 2, /--image no\.png: no such file/);
});

Deno.test("an unknown architecture or tokenizer is named, and what is known", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const config = JSON.parse(readFixture("models/llama/config.json"));
    await writeCheckpoint(folder, { ...config, model_type: "strutho", architectures: ["Strutho"] });
    const unknown = await troodon(["generate", folder, "--raw", "-p", "a"]);
    assertRefused(unknown, 1, /strutho.*llama/i);
    await writeCheckpoint(folder, config);
    await Deno.writeTextFile(`${folder}/tokenizer.json`, '{"model":{"type":"Strutho"}}');
    for (const command of ["generate", "tokenize"]) {
      const args = command === "generate" ? ["--raw", "-p", "a"] : ["-t", "a"];
      assertRefused(await troodon([command, folder, ...args]), 1, /Strutho/);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a model larger than memory is refused with numbers before a weight is read", async () => {
  const folder = await Deno.makeTempDir();
  try {
    // A sparse file of a terabyte: it takes no room on the disk, but would in memory.
    const config = JSON.parse(readFixture("models/llama/config.json"));
    await writeCheckpoint(folder, { ...config, vocab_size: 2 ** 26, hidden_size: 4096 });
    const generate = ["generate", folder, "--raw", "-p", "a"];
    const parts = String.raw`weights \d+ MiB, activations \d+ MiB`;
    const remedy = "Take a smaller model, or lower --context";
    const wasm = await troodon(generate, { permissions: [`--allow-read=${folder}`] });
    assertRefused(wasm, 1, new RegExp(`needs \\d+ MiB of WASM memory \\(${parts}.*4096 MiB`));
    assertStringIncludes(wasm.err, remedy);
    const reference = await troodon([...generate, "--device", "reference"]);
    assertRefused(reference, 1, new RegExp(`needs \\d+ MiB of memory \\(${parts}.* are free`));
    assertStringIncludes(reference.err, remedy);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** A checkpoint with the tensors of the tiny llama, its embedding as large as `vocab_size`; all zeros. */
async function writeCheckpoint(folder: string, config: Record<string, number>): Promise<void> {
  await Deno.writeTextFile(`${folder}/config.json`, JSON.stringify(config));
  const { hidden_size: hidden, intermediate_size: inner, num_hidden_layers: layers } = config;
  const queries = config.num_attention_heads! * config.head_dim!;
  const width = config.num_key_value_heads! * config.head_dim!;
  const shapes: [string, number[]][] = [
    ["model.embed_tokens.weight", [config.vocab_size!, hidden!]],
    ["lm_head.weight", [config.vocab_size!, hidden!]],
    ["model.norm.weight", [hidden!]],
  ];
  for (let layer = 0; layer < layers!; layer++) {
    const block = `model.layers.${layer}`;
    shapes.push(
      [`${block}.input_layernorm.weight`, [hidden!]],
      [`${block}.post_attention_layernorm.weight`, [hidden!]],
      [`${block}.self_attn.q_proj.weight`, [queries, hidden!]],
      [`${block}.self_attn.k_proj.weight`, [width, hidden!]],
      [`${block}.self_attn.v_proj.weight`, [width, hidden!]],
      [`${block}.self_attn.o_proj.weight`, [hidden!, queries]],
      [`${block}.mlp.gate_proj.weight`, [inner!, hidden!]],
      [`${block}.mlp.up_proj.weight`, [inner!, hidden!]],
      [`${block}.mlp.down_proj.weight`, [hidden!, inner!]],
    );
  }
  let offset = 0;
  const header: Record<string, unknown> = {};
  for (const [name, shape] of shapes) {
    const bytes = 2 * shape.reduce((a, b) => a * b, 1);
    header[name] = { dtype: "F16", shape, data_offsets: [offset, offset += bytes] };
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const head = new Uint8Array(8 + json.length);
  new DataView(head.buffer).setBigUint64(0, BigInt(json.length), true);
  head.set(json, 8);
  await Deno.writeFile(`${folder}/model.safetensors`, head);
  await Deno.truncate(`${folder}/model.safetensors`, head.length + offset);
}

Deno.test("flags that belong to other models or devices are refused by their names", async () => {
  const padded = await troodon([...RAW, "a", "--pad-to", "64", "--device", "wasm"]);
  assertRefused(padded, 1, /--pad-to is for ONNX models/);
  assertRefused(await troodon([...RAW, "a", "--pad-to", "3"]), 2, /Cannot use --pad-to 3: .*1, 64/);
});

Deno.test("an empty prompt is refused wherever it comes from, before a model is opened", async () => {
  const nothing = /There is nothing to answer: give --(prompt|text) TEXT/;
  for (
    const [args, stdin] of [
      [["generate", "-p", ""]],
      [["generate", TINY_LLAMA, "-p", "  \n"]],
      [["generate", ""]],
      [["generate", TINY_LLAMA, "-p", "a", "-p", ""]],
      [["generate", TINY_LLAMA], ""],
      [["translate", TINY_LLAMA, "--from", "a", "--to", "b", "--text", " "]],
    ] as const
  ) assertRefused(await troodon(args, stdin === undefined ? {} : { stdin }), 2, nothing);
  // One word that is near the name of a model may have been meant for the text.
  const taken = await troodon(["generate", "test"], { stdin: "" });
  assertRefused(taken, 2, /pipe a text in\. "test" was taken for a model, and there is none/);
});

Deno.test("a spec that is wrong is named by its file, and --spec is what --spec-file was", async () => {
  const file = await Deno.makeTempFile({ suffix: ".json" });
  try {
    await Deno.writeTextFile(file, '{"type": "x"}');
    const wrong = await troodon([...RAW, "a", "--spec-file", file]);
    assertRefused(wrong, 1, /\.json.*type: is not a known key/);
    assertRefused(await troodon([...RAW, "a", "--spec", file]), 2, /Did you mean --spec-file/);
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("a queue that may not be reached is told at once, not tried again and again", async () => {
  const permissions = ["--allow-read", "--allow-env"];
  const nats = ["--nats", "nats://127.0.0.1:9"];
  for (const command of [["worker", TINY_LLAMA], ["serve", "--port", "0"]]) {
    const refused = await troodon([...command, ...nats], { permissions });
    assertRefused(refused, 2, /may not reach NATS at 127\.0\.0\.1:9: run with --allow-net=127/);
  }
});

Deno.test("places that take no files, and a full disk behind the output, are told with the way out", async () => {
  if (Deno.build.os !== "linux") return;
  const into = (path: string) => troodon(["quantize", TINY_LLAMA, path, "--format", "q8_0"]);
  assertRefused(await into("/proc/x.gguf"), 1, /: the folder \/proc\/ takes no new files\. Give/);
  assertRefused(
    await into("/dev/full/x.gguf"),
    1,
    /part of its path is a file and no folder\. Che/,
  );
  const { code, stderr } = await new Deno.Command("sh", {
    args: ["-c", '"$0" run --quiet --no-check main.ts --version > /dev/full', Deno.execPath()],
    ...{ cwd: ROOT, stderr: "piped" },
  }).output();
  const told = new TextDecoder().decode(stderr);
  assertEquals([code, told], [1, "error: standard output: the disk is full. Make room\n"]);
});
