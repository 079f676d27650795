// What a user is told whose config, spec and weights do not belong together: the key, the tensor, and the shapes.

import { assertMatch, assertRejects } from "@std/assert";
import { FormatError, UnsupportedError } from "../errors.ts";
import { openModel } from "./open_model.ts";
import type { MetadataValue } from "../formats/source.ts";
import { checkpointPath } from "../../tests/support/seeded_weights.ts";
import { TINY_LLAMA } from "../../tests/support/models.ts";
import { buildModel, readModelParts } from "./build.ts";
import { chooseSpec } from "./specs/mod.ts";

type Changes = Readonly<Record<string, MetadataValue | null>>;

async function build(path: string, changes: Changes, spec?: unknown): Promise<void> {
  const file = await openModel(path);
  try {
    const metadata = new Map(file.metadata);
    for (const [key, value] of Object.entries(changes)) {
      if (value === null) metadata.delete(key);
      else metadata.set(key, value);
    }
    const changed = { ...file, metadata };
    const { resolved, architecture } = chooseSpec(changed, spec);
    await buildModel(readModelParts(resolved, { stored: changed, architecture }), {
      ...{ capacity: 16, cacheType: "f32", embeddings: false } as const,
    });
  } finally {
    file.close();
  }
}

/** Each: changes of the tiny llama's config, and what must be said. */
const CONTRADICTIONS: readonly (readonly [Changes, RegExp])[] = [
  [
    { hidden_size: 64 },
    /tensor model\.embed_tokens\.weight: has shape \[128,32\] where \[128,64\] is needed, since hidden_size is 64/,
  ],
  [
    { intermediate_size: 100 },
    /mlp\.gate_proj\.weight: has shape \[64,32\] where \[100,32\] is needed, since intermediate_size is 100/,
  ],
  [
    { num_attention_heads: 2 },
    /q_proj\.weight: has shape \[32,32\] where \[16,32\] is needed, since num_attention_heads is 2, times 8 channels/,
  ],
  [
    { num_key_value_heads: 1 },
    /k_proj\.weight: has shape \[16,32\] where \[8,32\] is needed, since num_key_value_heads is 1, times 8/,
  ],
  [
    { num_key_value_heads: 4 },
    /k_proj\.weight: has shape \[16,32\] where \[32,32\] is needed, since num_key_value_heads is 4, times 8/,
  ],
  [
    { num_attention_heads: 8 },
    /q_proj\.weight: has shape \[32,32\] where \[64,32\] is needed, since num_attention_heads is 8, times 8/,
  ],
  [
    { rope_scaling: { type: "linear", factor: 4 } },
    /rope_scaling\.rope_type: is string "linear", and rope_parameters\.rope_type is string "default"\. Keep one/,
  ],
  [{ vocab_size: 100 }, /vocab_size: is 100, but the embedding tensor has 128 rows/],
  [
    { num_hidden_layers: 3 },
    /model\.layers\.2\.\w+\.weight: is missing: needed as .* with shape \[/,
  ],
];

Deno.test("shapes that contradict the config are told with key, tensor and both shapes", async () => {
  for (const [changes, message] of CONTRADICTIONS) {
    const all = { head_dim: 8, ...changes };
    const error = await assertRejects(() => build(checkpointPath("llama"), all), FormatError);
    assertMatch((error as Error).message, message);
  }
});

Deno.test("in GGUF files the key has the architecture's name", async () => {
  const error = await assertRejects(
    () => build(TINY_LLAMA, { "llama.feed_forward_length": 100 }),
    FormatError,
  );
  assertMatch((error as Error).message, /since llama\.feed_forward_length is 100/);
});

Deno.test("heads of keys that no key counts are told by those of queries", async () => {
  const error = await assertRejects(
    () => build(checkpointPath("llama"), { num_key_value_heads: null, head_dim: 8 }),
    FormatError,
  );
  assertMatch(
    (error as Error).message,
    /k_proj\.weight: .* \[32,32\] is needed, since num_attention_heads is 4, times 8 channels/,
  );
});

Deno.test("more experts than there are cannot be chosen", async () => {
  const error = await assertRejects(
    () => build(checkpointPath("olmoe"), { num_experts_per_tok: 9 }),
    FormatError,
  );
  assertMatch((error as Error).message, /num_experts_per_tok: is 9, and there are 6 experts/);
});

Deno.test("a spec that names a tensor that is not there is told the tensor, its role and its shape", async () => {
  const { default: llama } = await import("./specs/llama.json", { with: { type: "json" } });
  const tensors = { query: "{prefix}layers.{i}.self_attn.my_query.weight" };
  const spec = { ...llama, names: { ...llama.names, huggingface: { tensors } } };
  const error = await assertRejects(() => build(checkpointPath("llama"), {}, spec), FormatError);
  assertMatch(
    (error as Error).message,
    /tensor model\.layers\.0\.self_attn\.my_query\.weight: is missing: needed as query with shape \[32,32\]/,
  );
});

Deno.test("a config without an architecture is told the nearest family and what differs", async () => {
  const none = { model_type: null, architectures: null };
  const told = async (fixture: string, changes: Changes) =>
    (await assertRejects(() => build(checkpointPath(fixture), changes), UnsupportedError) as Error)
      .message;
  assertMatch(
    await told("qwen3", none),
    /model_type: the file does not say which architecture it is\. The nearest famil.*qwen3.*: all tensors and keys have its names/,
  );
  const odd = { ...none, colour: "red", my_window: 9 };
  assertMatch(
    await told("qwen3", odd),
    /qwen3.*: the file has keys that it does not know \(2 such as colour\)/,
  );
  // Keys tell apart what names of tensors do not.
  assertMatch(await told("granite", { model_type: "mine" }), /The nearest family is granite:/);
});
