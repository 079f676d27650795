// Every field that the record of a rotary rule may have, beside every rule: it changes frequencies or the factor on
// them, is refused, or is told. Names are those of transformers' rope utilities and of gguf-py's constants.py.

import { assertEquals } from "@std/assert";
import { TroodonError } from "../errors.ts";
import type { MetadataValue } from "../formats/source.ts";
import { ropeFrequencies, RULE_FIELDS, unreadRopeFields } from "./rope.ts";

type Fields = Readonly<Record<string, MetadataValue>>;

const DIM = 64;
const list = (value: number) => Array.from({ length: DIM / 2 }, (_, i) => value + i);
const LENGTH = "original_max_position_embeddings";
const RULES: Readonly<Record<string, Fields>> = {
  default: {},
  linear: { factor: 4 },
  dynamic: { factor: 4 },
  llama3: { factor: 8, low_freq_factor: 1, high_freq_factor: 4, [LENGTH]: 4096 },
  longrope: { short_factor: list(1), long_factor: list(2), [LENGTH]: 4096 },
  yarn: { factor: 4, [LENGTH]: 4096 },
  mrope: {},
};
const UNUSUAL: Fields = {
  factor: 6,
  [LENGTH]: 2048,
  original_context_length: 2048,
  low_freq_factor: 2,
  high_freq_factor: 6,
  attention_factor: 1.5,
  attn_factor: 1.5,
  yarn_attn_factor: 1.5,
  yarn_ext_factor: 0.5,
  yarn_log_multiplier: 0.1,
  beta_fast: 16,
  yarn_beta_fast: 16,
  beta_slow: 4,
  yarn_beta_slow: 4,
  truncate: false,
  short_factor: list(3),
  long_factor: list(4),
  alpha: 2,
  short_mscale: 1.2,
  long_mscale: 1.2,
  mrope_section: [1, 2],
  llama_4_scaling_beta: 0.1,
  brand_new: 3,
};
/** What changes nothing in a rule, and why. */
const HARMLESS: Readonly<Record<string, string>> = {
  [`default ${LENGTH}`]: "nothing is stretched",
  "default original_context_length": "nothing is stretched",
  [`linear ${LENGTH}`]: "all lengths are stretched alike",
  "linear original_context_length": "all lengths are stretched alike",
  [`dynamic ${LENGTH}`]: "contexts are never longer than what was trained",
  "dynamic original_context_length": "contexts are never longer than what was trained",
  "dynamic factor": "contexts are never longer than what was trained",
  "default mrope_section": "in a text all axes have the same places",
  "mrope mrope_section": "in a text all axes have the same places",
  [`mrope ${LENGTH}`]: "nothing is stretched",
  "mrope original_context_length": "nothing is stretched",
  "llama3 original_context_length": "the name of Hugging Face counts where both stand",
  "longrope original_context_length": "the name of Hugging Face counts where both stand",
  "longrope factor": "the lengths say it",
  "yarn original_context_length": "the name of Hugging Face counts where both stand",
};

const tableOf = (scaling: Fields) =>
  JSON.stringify(ropeFrequencies({ dim: DIM, theta: 10000, context: 8192, scaling, file: "toy" }));

function outcomeOf(rule: Fields, change: Fields): string {
  const changed = { ...rule, ...change };
  if (unreadRopeFields(changed).length > 0) return "told";
  try {
    return tableOf(changed) === tableOf(rule) ? "read past" : "changed";
  } catch (error) {
    if (error instanceof TroodonError) return "refused";
    throw error;
  }
}

for (const [name, fields] of Object.entries(RULES)) {
  Deno.test(`no field beside the rotary rule ${name} is read past`, () => {
    const rule = { rope_type: name, ...fields };
    assertEquals(unreadRopeFields(rule), []);
    for (const [field, value] of Object.entries(UNUSUAL)) {
      const outcome = outcomeOf(rule, { [field]: value });
      const wanted = Object.hasOwn(HARMLESS, `${name} ${field}`);
      assertEquals(outcome === "read past", wanted, `${field}: ${outcome}`);
    }
    assertEquals(outcomeOf(rule, { brand_new: 3 }), "told");
  });
}

Deno.test("temperatures of yarn count as a pair, and every rule has its fields", () => {
  const rule = { rope_type: "yarn", ...RULES.yarn };
  assertEquals(outcomeOf(rule, { mscale: 0.7, mscale_all_dim: 0.5 }), "changed");
  assertEquals(Object.keys(RULE_FIELDS), Object.keys(RULES));
});

Deno.test("a rule of GGUF with a factor alone is the linear one", () => {
  assertEquals(unreadRopeFields({ factor: 2, finetuned: true, original_context_length: 8 }), []);
  assertEquals(unreadRopeFields({ factor: 2, yarn_beta_fast: 8 }), ["yarn_beta_fast"]);
});
