import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../errors.ts";
import type { MetadataValue, WeightFile } from "../formats/source.ts";
import { readHyperparameters } from "./hparams.ts";
import { resolveSpec } from "./spec.ts";
import gemma3 from "./specs/gemma3.json" with { type: "json" };
import llama from "./specs/llama.json" with { type: "json" };
import names from "./specs/names.json" with { type: "json" };

const PLAIN = {
  "llama.block_count": 2,
  "llama.context_length": 64,
  "llama.embedding_length": 8,
  "llama.attention.head_count": 2,
  "llama.feed_forward_length": 16,
  "llama.attention.layer_norm_rms_epsilon": 1e-5,
};

function fileOf(kind: string, metadata: Record<string, MetadataValue>): WeightFile {
  return {
    kind,
    name: `toy.${kind}`,
    metadata: new Map(Object.entries(metadata)),
    tensors: new Map(),
    close: () => {},
  };
}

function read(change: Record<string, MetadataValue | undefined> = {}, vocabulary = 4) {
  const merged = Object.entries({ ...PLAIN, ...change }).filter(([, value]) => value !== undefined);
  const resolved = resolveSpec(llama, {
    common: names,
    context: { convention: "gguf", file: "llama.json" },
  });
  return readHyperparameters(
    resolved,
    fileOf("gguf", Object.fromEntries(merged) as Record<string, MetadataValue>),
    { architecture: "llama", vocabulary },
  );
}

function refusal(change: Record<string, MetadataValue | undefined>): string {
  return assertThrows(() => read(change), FormatError).message;
}

Deno.test("what a file leaves out follows from the rest", () => {
  const { kvHeads, headDim, ropeDim, ropeTheta, vocabulary } = read();
  assertEquals({ kvHeads, headDim, ropeDim, ropeTheta, vocabulary }, {
    kvHeads: 2,
    headDim: 4,
    ropeDim: 4,
    ropeTheta: 10000,
    vocabulary: 4,
  });
});

Deno.test("a missing or impossible hyperparameter is refused with its key and value", () => {
  const cases: [Record<string, MetadataValue | undefined>, RegExp][] = [
    [{ "llama.block_count": undefined }, /llama\.block_count: is missing/],
    [{ "llama.block_count": "3" }, /llama\.block_count: must be an integer .* string "3"/],
    [{ "llama.block_count": 4294967295 }, /llama\.block_count: must be .* 4294967295/],
    [{ "llama.context_length": -64 }, /llama\.context_length: must be .* -64/],
    [
      { "llama.attention.head_count": 4, "llama.attention.head_count_kv": 3 },
      /llama\.attention\.head_count_kv: is 3, which does not divide the 4 query heads/,
    ],
    [{ "llama.attention.head_count": 0 }, /llama\.attention\.head_count: must be .* 0/],
    [{ "llama.attention.head_count": 3 }, /head_count: is 3, which does not divide .* 8/],
    [{ "llama.attention.head_count_kv": 3 }, /head_count_kv: is 3, which does not divide/],
    [
      { "llama.rope.dimension_count": 6 },
      /rope\.dimension_count: rotates 6 channels of heads of 4/,
    ],
    [{ "llama.rope.dimension_count": 3 }, /rope\.dimension_count: rotates 3/],
    [{ "llama.vocab_size": 5 }, /vocab_size: is 5, but the embedding tensor has 4 rows/],
    [{ "llama.embedding_length": 2 ** 40 }, /embedding_length: must be/],
    [
      { "llama.embedding_length": 12345678901234567890n },
      /embedding_length: must be .* 1234567890123/,
    ],
    [{ "llama.attention.layer_norm_rms_epsilon": 0 }, /epsilon: must be a number above 0/],
  ];
  for (const [change, message] of cases) assertMatch(refusal(change), message);
});

Deno.test("equal values per layer count as one, different ones are unsupported with their key", () => {
  assertEquals(read({ "llama.attention.head_count_kv": Uint32Array.of(1, 1) }).kvHeads, 1);
  const error = assertThrows(
    () => read({ "llama.attention.head_count_kv": Int32Array.of(1, 2) }),
    UnsupportedError,
  );
  assertMatch(error.message, /llama\.attention\.head_count_kv: has a value per layer/);
});

Deno.test("both generations of config names give the same numbers", () => {
  const common = {
    model_type: "gemma3_text",
    num_hidden_layers: 2,
    hidden_size: 32,
    num_attention_heads: 4,
    num_key_value_heads: 1,
    head_dim: 16,
    intermediate_size: 48,
    max_position_embeddings: 128,
    rms_norm_eps: 1e-6,
    sliding_window: 8,
    query_pre_attn_scalar: 20,
    attn_logit_softcapping: null,
  };
  const resolved = resolveSpec(gemma3, {
    common: names,
    context: { convention: "huggingface", file: "gemma3.json" },
  });
  const readConfig = (rope: Record<string, MetadataValue>) => {
    const { ropeTheta, localRopeTheta, ropeScaling } = readHyperparameters(
      resolved,
      fileOf("safetensors", { ...common, ...rope }),
      { architecture: "gemma3_text", vocabulary: 128 },
    );
    return { ropeTheta, localRopeTheta, type: ropeScaling?.rope_type, factor: ropeScaling?.factor };
  };
  const expected = { ropeTheta: 2e6, localRopeTheta: 20000, type: "linear", factor: 8 };
  assertEquals(
    readConfig({
      rope_parameters: {
        full_attention: { rope_theta: 2e6, rope_type: "linear", factor: 8 },
        sliding_attention: { rope_theta: 20000, rope_type: "default" },
      },
    }),
    expected,
  );
  assertEquals(
    readConfig({
      rope_theta: 2e6,
      rope_local_base_freq: 20000,
      rope_scaling: { rope_type: "linear", factor: 8 },
    }),
    expected,
  );
});

Deno.test("a key that asks for something that is not built is refused by name", () => {
  const error = assertThrows(() => read({ "llama.attention.causal": false }), UnsupportedError);
  assertMatch(error.message, /llama\.attention\.causal: is boolean false, and only absent or true/);
  read({ "llama.expert_count": 0, "llama.attention.causal": true });
});

Deno.test("the old key of linear scaling counts where there is no record of a rule", () => {
  const old = { "llama.rope.scale_linear": 4 };
  assertEquals(read(old).ropeScaling, { type: "linear", factor: 4 });
  const both = { ...old, "llama.rope.scaling.type": "none" };
  assertEquals(read(both).ropeScaling, { type: "none" });
  assertEquals(read().ropeScaling, undefined);
});

// llama.cpp: the type defaults to linear, and a factor of 0 to none.
Deno.test("a factor without a rule's name is that of the linear one in GGUF", () => {
  assertEquals(read({ "llama.rope.scaling.factor": 4 }).ropeScaling, { type: "linear", factor: 4 });
  assertEquals(read({ "llama.rope.scaling.factor": 0 }).ropeScaling, { factor: 0 });
  for (const type of ["linear", "yarn"]) {
    const named = { "llama.rope.scaling.type": type, "llama.rope.scaling.factor": 0 };
    assertEquals(read(named).ropeScaling, { type: "none" });
  }
});

Deno.test("GGUF files must say the epsilon of their norms", () => {
  assertMatch(
    refusal({ "llama.attention.layer_norm_rms_epsilon": undefined }),
    /layer_norm_rms_epsilon: is missing/,
  );
});
