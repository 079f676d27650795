import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { FormatError } from "../errors.ts";
import type { FoundHyperparameters } from "./hparam_fields.ts";
import { resolveSpec } from "./spec.ts";
import gemma3 from "./specs/gemma3.json" with { type: "json" };
import llama from "./specs/llama.json" with { type: "json" };
import names from "./specs/names.json" with { type: "json" };
import { specFiles } from "./specs/mod.ts";

const FILE = "toy.json";

function resolve(json: unknown, convention: "huggingface" | "gguf" = "huggingface") {
  return resolveSpec(json, { common: names, context: { convention, file: FILE } });
}

function messageOf(change: Record<string, unknown>): string {
  return assertThrows(() => resolve({ ...llama, ...change }), FormatError).message;
}

Deno.test("every shipped spec is valid under its conventions, whichever cases hold", () => {
  for (const json of specFiles) {
    for (const convention of ["huggingface", "gguf"] as const) {
      if (json.matches[convention].length === 0) continue;
      const { spec } = resolve(json, convention);
      assertEquals(spec.name, json.name);
      for (const { when = {}, given = [], stored = [], use } of spec.cases ?? []) {
        const found = { ...Object.fromEntries(given.map((name) => [name, 8])), ...when };
        const special = resolve(json, convention)
          .specialize(found as FoundHyperparameters, (role) => stored.includes(role)).spec;
        assertEquals(special.name, json.name);
        assert(JSON.stringify(special) !== JSON.stringify(spec), JSON.stringify(use));
      }
    }
  }
});

Deno.test("no two specs claim the same name of a container", () => {
  for (const convention of ["huggingface", "gguf"] as const) {
    const claimed = specFiles.flatMap(({ matches }) => matches[convention]);
    assertEquals(claimed.length, new Set(claimed).size);
  }
});

Deno.test("cases of a spec change atoms, and null takes a key away", () => {
  const baichuan = specFiles.find(({ name }) => name === "baichuan");
  const kindOf = (found: FoundHyperparameters) =>
    resolve(baichuan).specialize(found).spec.attention.kinds.full;
  assertEquals(kindOf({ positionLimit: 4096 }), { theta: "ropeTheta" });
  assertEquals(kindOf({}), { alibi: "scaled" });
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

Deno.test("a default that its field cannot have is refused", () => {
  assertMatch(
    messageOf({ defaults: { layers: 2.5 } }),
    /defaults\.layers: must be an integer from 1/,
  );
  assertMatch(
    messageOf({ defaults: { ropeTheta: "rms" } }),
    /defaults\.ropeTheta: must be a num/,
  );
  const cases = [{ when: { heads: true }, use: {} }];
  assertMatch(messageOf({ cases }), /cases\.heads: must be an integer/);
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
