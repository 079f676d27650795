import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { FormatError } from "../errors.ts";
import { resolveSpec } from "./spec.ts";
import gemma3 from "./specs/gemma3.json" with { type: "json" };
import llama from "./specs/llama.json" with { type: "json" };
import names from "./specs/names.json" with { type: "json" };
import qwen2 from "./specs/qwen2.json" with { type: "json" };
import qwen3 from "./specs/qwen3.json" with { type: "json" };

const FILE = "toy.json";

function resolve(json: unknown, convention: "huggingface" | "gguf" = "huggingface") {
  return resolveSpec(json, names, { convention, file: FILE });
}

function messageOf(change: Record<string, unknown>): string {
  return assertThrows(() => resolve({ ...llama, ...change }), FormatError).message;
}

Deno.test("every shipped spec is valid under both conventions", () => {
  for (const json of [llama, qwen2, qwen3, gemma3]) {
    for (const convention of ["huggingface", "gguf"] as const) {
      assertEquals(resolve(json, convention).spec.name, json.name);
    }
  }
});

Deno.test("a container's atoms replace the family's own and leave the rest", () => {
  const style = (convention: "huggingface" | "gguf") => resolve(llama, convention).spec.attention;
  assertEquals(style("huggingface").ropeStyle, "half");
  assertEquals(style("gguf").ropeStyle, "interleaved");
  assertEquals(style("gguf").bias, "present");
  assertEquals(resolve(gemma3, "huggingface").spec.norm.base, 1);
  assertEquals(resolve(gemma3, "gguf").spec.norm.base, 0);
});

Deno.test("names of a spec replace the common ones and leave the rest", () => {
  const { tensors } = resolve(gemma3).names;
  assertEquals(tensors.feed_forward_norm, "{prefix}layers.{i}.pre_feedforward_layernorm.weight");
  assertEquals(tensors.query, "{prefix}layers.{i}.self_attn.q_proj.weight");
});

Deno.test("an unknown key is refused with its path and the known keys", () => {
  assertMatch(
    messageOf({ norm: { kind: "rms", base: 0, eps: 1 } }),
    /norm\.eps: .*known are kind, base/,
  );
});

Deno.test("a wrong value is refused with its path, what is allowed and what it is", () => {
  assertMatch(
    messageOf({ norm: { kind: "batch", base: 0 } }),
    /norm\.kind: must be one of "rms", "layer", and is "batch"/,
  );
  assertMatch(messageOf({ layer: "none" }), /layer: must be a list, and is "none"/);
  assertMatch(messageOf({ embedding: {} }), /embedding\.scale: is missing/);
});

Deno.test("a reference to an unknown kind, hyperparameter or tensor is refused", () => {
  const attention = (change: Record<string, unknown>) =>
    messageOf({
      attention: { ...llama.attention, ...change },
    });
  assertMatch(
    attention({ pattern: { rule: "uniform", kind: "local" } }),
    /attention\.pattern\.kind: names "local": known are full/,
  );
  assertMatch(
    attention({ kinds: { full: { theta: "ropeBase" } } }),
    /attention\.kinds\.full: names "ropeBase"/,
  );
  assertMatch(
    messageOf({ layer: [{ block: "attention", before: "norm_1" }] }),
    /layer\[0\]\.before: names "norm_1"/,
  );
});
