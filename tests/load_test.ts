// load() from its callers' side: sources, progress, refusals, and that nothing is left behind.

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertLess,
  assertMatch,
  assertRejects,
} from "@std/assert";
import {
  DeviceError,
  embed,
  FormatError,
  generate,
  inspectModel,
  load,
  loadTokenizer,
  type ModelProgress,
  ResourceError,
  SourceError,
  UnsupportedError,
} from "../mod.ts";
import { StringTable } from "../engine/formats/string_table.ts";
import { startFileServer } from "./support/file_server.ts";
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { joinBytes, writeSafetensors } from "./support/write_gguf.ts";

Deno.test("load() fetches a URL once, and then needs no network", async () => {
  const cacheDir = await Deno.makeTempDir();
  try {
    let url = "";
    const phases = new Set<string>();
    const onProgress = ({ phase }: ModelProgress) => void phases.add(phase);
    {
      await using server = startFileServer({ "/tiny.gguf": await Deno.readFile(TINY_LLAMA) });
      url = `${server.url}/tiny.gguf`;
      using model = await load(url, { cacheDir, onProgress });
      assertEquals(model.name, url);
      assert(phases.has("download") && phases.has("load"), [...phases].join());
      assertEquals((await generate(model, "a", { maxTokens: 2 }).result).ids.length, 2);
    }
    using again = await load(url, { cacheDir, offline: true });
    assertEquals(again.info.layers, 2);
    await assertRejects(() => load(`${url}2`, { cacheDir, offline: true }), SourceError, "cache");
  } finally {
    await Deno.remove(cacheDir, { recursive: true });
  }
});

Deno.test("loading decodes no list of strings, a vocabulary least of all", async () => {
  const { all } = StringTable.prototype;
  const decoded: number[] = [];
  StringTable.prototype.all = function () {
    decoded.push(this.length);
    return all.call(this);
  };
  try {
    using model = await load(TINY_LLAMA);
    assertEquals(
      model.tokenizer.decode(model.tokenizer.encode("a b", { addSpecial: false })),
      "a b",
    );
    assertEquals(decoded, []);
  } finally {
    StringTable.prototype.all = all;
  }
});

Deno.test("inspectModel() reads the header of a remote file and no more", async () => {
  const cacheDir = await Deno.makeTempDir();
  try {
    // Weights that are not read: the file is long, its header short.
    const bytes = new Uint8Array(64 << 20);
    bytes.set(await Deno.readFile(TINY_LLAMA));
    await using server = startFileServer({ "/tiny.gguf": bytes });
    const { info, memory } = await inspectModel(`${server.url}/tiny.gguf`, { cacheDir });
    assertEquals([info.architecture, info.parameters, info.contextLength], ["llama", 27808, 64]);
    assertLess(server.sent, 16 << 20);
    assertLess(0, memory.weights);
  } finally {
    await Deno.remove(cacheDir, { recursive: true });
  }
});

Deno.test("loadTokenizer() gives the tokenizer that the model has", async () => {
  const tokenizer = await loadTokenizer(TINY_LLAMA);
  using model = await load(TINY_LLAMA);
  const text = "Hello, <s> wörld 🦖";
  assertEquals(tokenizer.encode(text), model.tokenizer.encode(text));
  await assertRejects(
    () => loadTokenizer(fixturePath("models/llama")),
    UnsupportedError,
    "hold no tokenizer",
  );
});

Deno.test("info, memory and plan tell what was loaded", async () => {
  const options = { device: "wasm", sessions: 2, contextLength: 32, threads: 1 } as const;
  using model = await load(TINY_LLAMA, options);
  const { info, memory, plan } = model;
  assertEquals(
    { ...info, tensors: info.tensors.map(({ format }) => format) },
    {
      name: "tiny llama",
      architecture: "llama",
      network: "decoder",
      container: "gguf",
      license: undefined,
      parameters: 27808,
      tensors: ["Q8_0", "F32"],
      vocabulary: 288,
      contextLength: 32,
      trainedContextLength: 64,
      layers: 2,
      hidden: 32,
      heads: 4,
      kvHeads: 2,
      headDim: 8,
      feedForward: 64,
      labels: 0,
      precision: "fast",
      kvFormat: "F16",
      rounded: 0,
      warnings: [],
    },
  );
  assertEquals(memory.sessionCache, 2 * 2 * 32 * 16 * 2); // layers, keys and values, positions, width, f16
  assertEquals([memory.cacheTokens, memory.cache], [128, 2 * 2 * 128 * 16 * 2]); // a page for each session
  assertEquals(
    memory.total,
    memory.weights + memory.activations + memory.cache + memory.other,
  );
  assert(plan.lowerBoundBytes <= plan.arenaBytes && plan.arenaBytes <= plan.naiveBytes);
  assertEquals([model.device, model.threads], ["wasm", 1]);
});

Deno.test("a file that is not there, no model, or not yet built is refused by kind", async () => {
  await assertRejects(() => load("tests/no-such.gguf"), SourceError, "no such file");
  await assertRejects(() => load("smollm2-135"), SourceError, "smollm2-135m");
  const short = fixturePath("gguf/hostile/gguf_truncated_header.gguf");
  await assertRejects(() => load(short), FormatError, "gguf_truncated_header.gguf");
  const none = { requestAdapter: () => Promise.resolve(null) };
  const gpu = await assertRejects(
    () => load(TINY_LLAMA, { device: "gpu", gpu: none }),
    DeviceError,
  );
  assertMatch(gpu.message, /device gpu is not to be had: .* offers no GPU. Use device wasm/);
  using instead = await load(TINY_LLAMA, { gpu: none, threads: 1 });
  assertEquals(instead.device, "wasm");
  assertMatch(instead.notes.join(), /computed on the CPU, because the WebGPU .* has no GPU/);
  await assertRejects(() => load(TINY_LLAMA, { threads: 0 }), RangeError, "threads 0");
});

Deno.test("memory that the system refuses is an error with numbers and a remedy", async () => {
  const { grow } = WebAssembly.Memory.prototype;
  WebAssembly.Memory.prototype.grow = () => {
    throw new RangeError("Unable to grow instance memory");
  };
  try {
    // A context that needs more than what a memory begins with.
    const many = { device: "wasm", sessions: 200, kvFormat: "F32" } as const;
    const error = await assertRejects(() => load(TINY_LLAMA, many), ResourceError);
    assertMatch(
      error.message,
      /llama\.Q8_0\.gguf: device wasm: Cannot grow WASM memory from \d+ to \d+ bytes/,
    );
    assertMatch(error.message, /lower contextLength, sessions or batch/);
  } finally {
    WebAssembly.Memory.prototype.grow = grow;
  }
});

Deno.test("an aborted load leaves nothing running", async () => {
  const signal = AbortSignal.abort(new Error("changed my mind"));
  await assertRejects(() => load(TINY_LLAMA, { signal }), Error, "changed my mind");
});

Deno.test("a model that was disposed of says so", async () => {
  const model = await load(TINY_LLAMA);
  const session = model.createSession();
  model.dispose();
  model.dispose();
  await assertRejects(() => session.sync([1]), TypeError, "disposed");
  await assertRejects(() => generate(model, "a").text(), TypeError, "disposed");
});

Deno.test("JSON beside a model may hold the NaN and the infinities that Python writes", async () => {
  await withFolder(async (folder) => {
    const config = await Deno.readTextFile(fixturePath("models/llama/config.json"));
    const odd = config.replace("{", '{"x": Infinity, "noted": [NaN, -Infinity],');
    await Deno.writeTextFile(`${folder}/config.json`, odd);
    const weights = "model.safetensors";
    await Deno.copyFile(fixturePath(`models/llama/${weights}`), `${folder}/${weights}`);
    const logits = await Promise.all([fixturePath("models/llama"), folder].map(async (path) => {
      using model = await load(path, { device: "reference" });
      using session = model.createSession();
      await session.eval([1, 5, 9]);
      return [...session.logits()];
    }));
    assertEquals(logits[1], logits[0]);
    await Deno.copyFile(
      fixturePath("public/pc-tok-02/spm_metaspace_first.json"),
      `${folder}/tokenizer.json`,
    );
    const beside = '{"eos_token": "</s>", "x": NaN, "y": [-Infinity, Infinity]}';
    await Deno.writeTextFile(`${folder}/tokenizer_config.json`, beside);
    const tokenizer = await loadTokenizer(folder);
    assertEquals(tokenizer.decode(tokenizer.encode("ab", { addSpecial: false })), "ab");
  });
});

/** Header and data of a fixture's weights. */
async function readWeights(name: string) {
  const file = await Deno.readFile(fixturePath(`models/${name}/model.safetensors`));
  const start = 8 + new DataView(file.buffer).getUint32(0, true);
  const header = new TextDecoder().decode(file.subarray(8, start));
  return { header, data: file.subarray(start) };
}

/** A checkpoint with the fixture's config and other weights, for the time of a call. */
async function withWeights<T>(
  name: string,
  weights: Uint8Array,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  return await withFolder(async (folder) => {
    await Deno.copyFile(fixturePath(`models/${name}/config.json`), `${folder}/config.json`);
    await Deno.writeFile(`${folder}/model.safetensors`, weights);
    return await use(folder);
  });
}

Deno.test("norms that older checkpoints of BERT call gamma and beta are those of newer ones", async () => {
  const vectorOf = async (path: string) => {
    using model = await load(path, { device: "reference", precision: "exact" });
    return (await embed(model, [[1, 15, 47, 4, 30, 2]]))[0]!;
  };
  const { header, data } = await readWeights("bert");
  const older = header.replaceAll("LayerNorm.weight", "LayerNorm.gamma")
    .replaceAll("LayerNorm.bias", "LayerNorm.beta");
  assert(older.includes("layer.1.output.LayerNorm.gamma"));
  await withWeights("bert", writeSafetensors(older, data), async (folder) => {
    assertEquals(await vectorOf(folder), await vectorOf(fixturePath("models/bert")));
  });
});

Deno.test("a head that T5 stores is taken, and scaled as long as its config ties it", async () => {
  const logitsOf = async (path: string) => {
    using model = await load(path, { device: "reference", precision: "exact" });
    using session = model.createSession();
    await session.encode([5, 9, 1]);
    await session.eval([0]);
    return [...session.logits()];
  };
  const { header, data } = await readWeights("t5");
  const tensors = JSON.parse(header),
    { data_offsets: [from, to], ...shared } = tensors["shared.weight"];
  assertEquals(shared.dtype, "F16");
  // Twice the embedding.
  const head = Float16Array.from(new Float16Array(data.slice(from, to).buffer), (x) => 2 * x);
  tensors["lm_head.weight"] = { ...shared, data_offsets: [data.length, data.length + to - from] };
  const both = writeSafetensors(tensors, joinBytes([data, new Uint8Array(head.buffer)]));
  await withWeights("t5", both, async (folder) => {
    const tied = await logitsOf(fixturePath("models/t5"));
    assertEquals(await logitsOf(folder), tied.map((x) => 2 * x));
    // transformers 5 says apart from it whether rows are scaled, older ones do not.
    const { scale_decoder_outputs: _, ...config } = JSON.parse(
      await Deno.readTextFile(`${folder}/config.json`),
    );
    assertEquals([config.tie_word_embeddings, config.d_model], [true, 32]);
    await Deno.writeTextFile(`${folder}/config.json`, JSON.stringify(config));
    assertEquals(await logitsOf(folder), tied.map((x) => 2 * x));
    config.tie_word_embeddings = false;
    await Deno.writeTextFile(`${folder}/config.json`, JSON.stringify(config));
    (await logitsOf(folder)).forEach((x, i) =>
      assertAlmostEquals(x, 2 * Math.sqrt(32) * tied[i]!, 1e-5)
    );
  });
});
