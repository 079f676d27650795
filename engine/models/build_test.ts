import { assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../errors.ts";
import { openModel } from "./open_model.ts";
import type { MetadataValue, TensorInfo, WeightFile } from "../formats/source.ts";
import type { Graph } from "../graph/graph.ts";
import { fixturePath } from "../../tests/support/fixtures.ts";
import { checkpointPath } from "../../tests/support/seeded_weights.ts";
import { buildModel, readModelParts } from "./build.ts";
import llama from "./specs/llama.json" with { type: "json" };
import { chooseSpec } from "./specs/mod.ts";

const OPTIONS = { capacity: 32, cacheType: "f32", embeddings: false } as const;

async function build(file: WeightFile) {
  const { resolved, architecture } = chooseSpec(file);
  return await buildModel(readModelParts(resolved, { stored: file, architecture }), OPTIONS);
}

async function buildFixture(name: string) {
  const file = await openModel(name);
  try {
    return await build(file);
  } finally {
    file.close();
  }
}

function histogram({ nodes }: Graph): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { op } of nodes) counts[op] = (counts[op] ?? 0) + 1;
  return counts;
}

/** A change of the llama fixture, to see it refused. */
async function changed(
  change: {
    metadata?: Record<string, MetadataValue>;
    tensors?: (tensors: Map<string, TensorInfo>) => void;
  },
) {
  const file = await openModel(fixturePath("models/llama"));
  try {
    const tensors = new Map(file.tensors);
    change.tensors?.(tensors);
    const metadata = new Map([...file.metadata, ...Object.entries(change.metadata ?? {})]);
    return await build({ ...file, metadata, tensors });
  } finally {
    file.close();
  }
}

const LLAMA_OPS = {
  embed: 1,
  rope_table: 1,
  norm: 5,
  matmul: 15,
  reshape: 6,
  rope: 4,
  kv_append: 4,
  attention: 2,
  glu: 2,
  binary: 4,
  select_rows: 1,
};

Deno.test("each architecture becomes the ops that its atoms say", async () => {
  const ops = async (name: string) => histogram((await buildFixture(checkpointPath(name))).graph);
  assertEquals(await ops("llama"), LLAMA_OPS);
  assertEquals(await ops("qwen2"), LLAMA_OPS); // biases are inputs of matmul
  assertEquals(await ops("qwen3"), { ...LLAMA_OPS, norm: 9 }); // two norms of heads a layer
  assertEquals(await ops("gemma3_text"), { ...LLAMA_OPS, norm: 13, rope_table: 2 });
  assertEquals(await ops("llama_formats/llama.Q8_0.gguf"), LLAMA_OPS);
});

Deno.test("windows, rotary tables and scales follow the kind of each layer", async () => {
  const { graph } = await buildFixture(checkpointPath("gemma3_text"));
  const attention = graph.nodes.filter(({ op }) => op === "attention");
  assertEquals(attention.map(({ attributes }) => attributes.window), [8, 0]);
  assertEquals(attention.map(({ attributes }) => attributes.scale), [20 ** -0.5, 20 ** -0.5]);
  const tables = graph.nodes.filter(({ op }) => op === "rope")
    .map(({ inputs }) => inputs[1]!.name);
  assertEquals(tables, ["rope.sliding", "rope.sliding", "rope.full", "rope.full"]);
});

Deno.test("slopes of Falcon are scaled with its scores, those of Bloom and Baichuan are not", async () => {
  const slopesOf = async (name: string, metadata: Record<string, MetadataValue> = {}) => {
    const file = await openModel(checkpointPath(name));
    try {
      const { graph } = await build({
        ...file,
        metadata: new Map([...file.metadata, ...Object.entries(metadata)]),
      });
      const { inputs } = graph.nodes.find(({ op }) => op === "attention")!;
      return Array.from(
        inputs.find((value) => value?.name.endsWith(".slopes"))!.data as Float32Array,
      );
    } finally {
      file.close();
    }
  };
  // transformers' modeling_falcon.py: (q·k + slope · position) / √d; heads of 8 channels here.
  const falcon = [1, 2, 3, 4].map((head) => Math.fround(2 ** (-2 * head) / Math.sqrt(8)));
  assertEquals(await slopesOf("falcon_40b", { alibi: true }), falcon);
  // Three heads: two of the powers for two, and one between them.
  assertEquals(await slopesOf("bloom"), [2 ** -4, 2 ** -8, 2 ** -2]);
  assertEquals((await slopesOf("baichuan2_13b")).slice(0, 4), [2 ** -2, 2 ** -4, 2 ** -6, 2 ** -8]);
});

Deno.test("old frequency tensors are known to be needless, a foreign tensor is named", async () => {
  assertEquals((await buildFixture(checkpointPath("llama"))).warnings, []);
  const { warnings } = await changed({
    tensors: (tensors) => tensors.set("extra.weight", [...tensors.values()][0]!),
  });
  assertEquals(warnings, ["1 tensors of the file are not used: extra.weight"]);
});

Deno.test("a missing or mis-shaped tensor is refused with its name and shapes", async () => {
  const name = "model.layers.1.mlp.up_proj.weight";
  const missing = await assertRejects(
    () => changed({ tensors: (tensors) => tensors.delete(name) }),
    FormatError,
  );
  assertMatch(missing.message, /up_proj\.weight: is missing: needed as up with shape \[64,32\]/);
  const shaped = await assertRejects(
    () =>
      changed({
        tensors: (tensors) => tensors.set(name, { ...tensors.get(name)!, shape: [32, 64] }),
      }),
    FormatError,
  );
  assertMatch(shaped.message, /up_proj\.weight: has shape \[32,64\] where \[64,32\] is needed/);
});

Deno.test("a head that the config says is there must be there", async () => {
  const remove = (tensors: Map<string, TensorInfo>) => tensors.delete("lm_head.weight");
  const error = await assertRejects(() => changed({ tensors: remove }), FormatError);
  assertMatch(error.message, /lm_head\.weight: is missing: needed as head/);
  await changed({ tensors: remove, metadata: { tie_word_embeddings: true } });
});

Deno.test("an unknown architecture is unsupported by name, with the known ones", async () => {
  const error = await assertRejects(
    () => changed({ metadata: { model_type: "mamba" } }),
    UnsupportedError,
  );
  assertMatch(
    error.message,
    /model_type: architecture "mamba" is not built: known are baichuan, .*gemma3_text, .*llama/,
  );
  const none = await assertRejects(
    () => changed({ metadata: { model_type: null, architectures: null } }),
    UnsupportedError,
  );
  assertMatch(none.message, /does not say which architecture/);
  const activation = await assertRejects(
    () => changed({ metadata: { hidden_act: "xielu" } }),
    UnsupportedError,
  );
  assertMatch(activation.message, /activation "xielu" is not built/);
});

Deno.test("without a model type the class in architectures says what it is", async () => {
  for (const name of ["gpt2", "phi", "granite"]) {
    const file = await openModel(checkpointPath(name));
    try {
      const { architectures } = Object.fromEntries(file.metadata);
      const metadata = new Map([...file.metadata, ["model_type", null] as const]);
      assertEquals(chooseSpec({ ...file, metadata }).resolved.spec.name, name, `${architectures}`);
    } finally {
      file.close();
    }
  }
});

Deno.test("an unknown architecture is told the nearest family and what differs", async () => {
  const error = await assertRejects(
    () =>
      changed({
        metadata: { model_type: "mine" },
        tensors: (tensors) => tensors.set("model.layers.0.extra.weight", [...tensors.values()][0]!),
      }),
    UnsupportedError,
  );
  assertMatch(
    error.message,
    /The nearest families are .*llama.*: the file has tensors .* \(1 such as model\.layers\.0\.extra\.weight/,
  );
});

Deno.test("a spec that is handed over builds an architecture that nothing here knows", async () => {
  const file = await openModel(fixturePath("models/llama"));
  try {
    const metadata = new Map([...file.metadata, ["model_type", "mine"] as const]);
    const mine = { ...llama, name: "mine", matches: { huggingface: ["mine"], gguf: [] } };
    const { resolved, architecture } = chooseSpec({ ...file, metadata }, mine);
    const parts = readModelParts(resolved, { stored: file, architecture });
    assertEquals(histogram((await buildModel(parts, OPTIONS)).graph), LLAMA_OPS);
    const wrong = { ...mine, norm: { kind: "batch" } };
    const error = assertThrows(() => chooseSpec(file, wrong), FormatError);
    assertMatch(error.message, /the given spec, norm\.kind: must be one of "rms", "layer"/);
  } finally {
    file.close();
  }
});

Deno.test("GGUF files with impossible hyperparameters are refused with the key", async () => {
  const cases: [string, RegExp][] = [
    ["gguf/hostile/gguf_block_count_huge.gguf", /llama\.block_count: must be .* 4294967295/],
    ["gguf/hostile/gguf_head_count_0.gguf", /llama\.attention\.head_count: must be .* 0/],
    ["public/pc-gguf-01/block_count_missing.gguf", /llama\.block_count: is missing/],
    [
      "public/pc-gguf-01/block_count_string.gguf",
      /llama\.block_count: must be an integer .* string/,
    ],
    ["public/pc-gguf-01/context_length_negative.gguf", /llama\.context_length: must be .* -64/],
    [
      "public/pc-gguf-01/head_count_kv_array.gguf",
      /llama\.attention\.head_count_kv: has a value per layer/,
    ],
  ];
  for (const [name, message] of cases) {
    assertMatch((await assertRejects(() => buildFixture(fixturePath(name)))).message, message);
  }
});

Deno.test("GGUF numbers of any width and order are read; absent key/value heads equal the heads", async () => {
  const read = async (name: string) => {
    const file = await openModel(fixturePath(`public/pc-gguf-01/${name}`));
    try {
      const { resolved, architecture } = chooseSpec(file);
      return readModelParts(resolved, { stored: file, architecture }).params;
    } finally {
      file.close();
    }
  };
  const { layers, context, hidden, heads, feedForward, ropeTheta } = await read(
    "integer_widths_and_order.gguf",
  );
  assertEquals({ layers, context, hidden, heads, feedForward, ropeTheta }, {
    layers: 3,
    context: 64,
    hidden: 8,
    heads: 2,
    feedForward: 16,
    ropeTheta: 10000,
  });
  assertEquals((await read("head_count_kv_missing.gguf")).kvHeads, 2);
});

Deno.test("no file outside specs/ names an architecture", () => {
  const folder = new URL("../", import.meta.url).pathname;
  const names = /["'`](llama|qwen\d?|gemma\d?(_text)?|mistral|phi\d?|gpt2|bert|falcon)["'`]/;
  const found: string[] = [];
  const walk = (path: string) => {
    for (const { name, isDirectory } of Deno.readDirSync(path)) {
      if (isDirectory) walk(`${path}${name}/`);
      else if (/(?<!_test)\.ts$/.test(name)) {
        const code = Deno.readTextFileSync(path + name).replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
        if (names.test(code)) found.push(path.slice(folder.length) + name);
      }
    }
  };
  walk(folder);
  // GGUF names the kinds of its vocabularies after the models that first had them, some containers hold one
  // architecture only, the catalogue lists models to fetch, and Inferflow's files name network types, which
  // are translated to specs; none of these chooses how to compute.
  const allowed = /^(text|formats|cli|models\/inferflow)\//;
  assertEquals(found.filter((path) => !allowed.test(path)), []);
});
