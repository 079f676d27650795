// What a GGUF header leaves out is what llama.cpp takes for it (load_hparams in llama-model.cpp), and what llama.cpp
// cannot do without is refused by its key.

import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { FormatError } from "../errors.ts";
import type { MetadataValue, WeightFile } from "../formats/source.ts";
import { readHyperparameters, specializeSpec } from "./hparams.ts";
import { chooseSpec, specFiles } from "./specs/mod.ts";

/** A header with what no family can do without. */
function headerOf(architecture: string, more: Record<string, MetadataValue> = {}) {
  const keys: Record<string, MetadataValue> = {
    block_count: 4,
    embedding_length: 64,
    "attention.head_count": 4,
    feed_forward_length: 128,
    vocab_size: 96,
    context_length: 512,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "attention.sliding_window": 32,
    logit_scale: 0.5,
    residual_scale: 0.5,
    embedding_scale: 2,
    "attention.scale": 0.25,
    leading_dense_block_count: 1,
    expert_shared_count: 1,
    expert_weights_scale: 1,
    "attention.kv_lora_rank": 8,
    "attention.causal": architecture !== "bert",
    ...architecture === "deepseek2" &&
      {
        "attention.key_length_mla": 24,
        "attention.value_length_mla": 16,
        "rope.dimension_count": 8,
      },
    ...architecture === "olmo2" && { "attention.sliding_window": 0 },
    ...more,
  };
  return new Map(Object.entries(keys).map(([key, value]) => [`${architecture}.${key}`, value]));
}

function modelOf(architecture: string, header: ReadonlyMap<string, MetadataValue>) {
  const file: WeightFile = {
    kind: "gguf",
    name: "toy.gguf",
    metadata: new Map([["general.architecture", architecture], ...header]),
    tensors: new Map(),
    close: () => {},
  };
  const { resolved } = chooseSpec(file);
  const { spec } = specializeSpec(resolved, { file, architecture });
  const params = readHyperparameters(resolved, file, { architecture, vocabulary: undefined });
  return { spec, params };
}

const ARCHITECTURES = specFiles.flatMap(({ matches }) => matches.gguf);

function rotates(architecture: string): boolean {
  const { spec } = modelOf(architecture, headerOf(architecture));
  return Object.values(spec.attention.kinds).some(({ theta }) => theta !== undefined);
}

Deno.test("in every architecture angles begin at 10000, over whole heads, and heads are of equal width", () => {
  for (const architecture of ARCHITECTURES) {
    const { params, spec } = modelOf(architecture, headerOf(architecture));
    if (rotates(architecture)) assertEquals(params.ropeTheta, 10000, architecture);
    // Latent attention splits its heads by keys of its own.
    if (spec.attention.kind === "latent") continue;
    assertEquals([params.headDim, params.ropeDim, params.kvHeads], [16, 16, 4], architecture);
    assertEquals(params.tiedHead, undefined, `${architecture} has a head where it is stored`);
    const wide = modelOf(architecture, headerOf(architecture, { "attention.key_length": 24 }));
    assertEquals([wide.params.headDim, wide.params.ropeDim], [24, 24], architecture);
  }
});

Deno.test("windows, caps and scales have the defaults of their architectures", () => {
  const without = (architecture: string, ...keys: string[]) => {
    const header = headerOf(architecture);
    keys.forEach((key) => header.delete(`${architecture}.${key}`));
    return modelOf(architecture, header).params;
  };
  const { window, scoreCap, logitCap } = without("gemma2", "attention.sliding_window");
  assertEquals([window, scoreCap, logitCap], [4096, 50, 30]);
  assertEquals(without("gemma3").localRopeTheta, 10000);
  const moe = without("glm4moe", "leading_dense_block_count");
  assertEquals([moe.denseLayers, moe.expertNormalize], [0, false]);
  assertEquals(without("deepseek2").expertNormalize, false);
  assertEquals(without("qwen3moe").expertNormalize, true);
});

const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  gemma3: ["attention.sliding_window"],
  "gpt-oss": ["attention.sliding_window"],
  "command-r": ["logit_scale"],
  cohere2: ["attention.sliding_window", "logit_scale"],
  granite: ["embedding_scale", "residual_scale", "logit_scale", "attention.scale"],
  granitemoe: ["embedding_scale", "residual_scale", "logit_scale", "attention.scale"],
  deepseek: ["leading_dense_block_count", "expert_shared_count", "expert_weights_scale"],
  deepseek2: ["leading_dense_block_count", "expert_shared_count", "expert_weights_scale"],
  dots1: ["leading_dense_block_count", "expert_shared_count", "expert_weights_scale"],
  glm4moe: ["expert_shared_count", "expert_weights_scale"],
};

Deno.test("keys that an architecture cannot do without are named when they are missing", () => {
  for (const architecture of ARCHITECTURES) {
    const keys = [
      ...["block_count", "attention.head_count", "attention.layer_norm_rms_epsilon"],
      ...REQUIRED[architecture] ?? [],
    ];
    for (const key of keys) {
      const header = headerOf(architecture);
      header.delete(`${architecture}.${key}`);
      const error = assertThrows(() => modelOf(architecture, header), FormatError, undefined, key);
      assertStringIncludes(error.message, `${architecture}.${key}: is missing`);
    }
  }
  const large = headerOf("exaone4", { block_count: 64 });
  large.delete("exaone4.attention.sliding_window");
  assertThrows(() => modelOf("exaone4", large), FormatError, "sliding_window: is missing");
});
