// What config.json leaves out is what transformers takes for it: every key of its default configs is taken away, and
// the model must be the same, or be refused. Numbers that tensors show in their shapes may be missing until then.

import { assertEquals } from "@std/assert";
import { readFixture } from "../../tests/support/fixtures.ts";
import { TroodonError } from "../errors.ts";
import type { MetadataValue, WeightFile } from "../formats/source.ts";
import { readHyperparameters, specializeSpec } from "./hparams.ts";
import { layerKinds } from "./layer_kinds.ts";
import { chooseSpec, specFiles } from "./specs/mod.ts";

type Json = Record<string, MetadataValue>;

const DEFAULTS: Readonly<Record<string, Json>> = JSON.parse(readFixture("config_defaults.json"));

/** Sizes without which no tensor is found, or is found with another shape. */
const SIZES = [
  ...["experts", "expertFeedForward", "sharedFeedForward", "keyRank", "queryRank", "plainDim"],
  ...["ropeDim", "valueDim", "sharedExperts"],
];
/** Keys whose other value has tensors of other names. */
const NAMED: Readonly<Record<string, string>> = { mt5: "feed_forward_proj" };
/** Names of one function. */
const ALIASES: Readonly<Record<string, string>> = {
  gelu_new: "gelu_tanh",
  gelu_pytorch_tanh: "gelu_tanh",
};

/** What a model is made of, by a config without tensors. */
function modelOf(json: Json): Record<string, unknown> {
  const file: WeightFile = {
    kind: "safetensors",
    name: "toy",
    metadata: new Map(Object.entries(json)),
    tensors: new Map(),
    close: () => {},
  };
  const { resolved, architecture } = chooseSpec(file);
  const { spec } = specializeSpec(resolved, { file, architecture });
  const params = readHyperparameters(resolved, file, { architecture, vocabulary: undefined });
  const { layerTypes: _listed, activation = "", ...rest } = params;
  const own = spec.feedForward.activation ?? (spec.feedForward.clamped ? "clamped" : undefined);
  const facts = Object.entries(rest).filter(([, value]) => !isNothing(value));
  return {
    ...Object.fromEntries(facts),
    kinds: layerKinds(spec, { params, file: "toy" }),
    activation: own ?? ALIASES[activation] ?? activation,
    layer: spec.layer,
    head: spec.head,
    attention: spec.attention,
  };
}

/** Values that say what is so without them. */
function isNothing(value: unknown): boolean {
  const { rope_type: rule } = (value ?? {}) as { rope_type?: unknown };
  return value === undefined || value === false || value === 0 || rule === "default" ||
    (Array.isArray(value) && value.length === 0);
}

function tryModel(json: Json): Record<string, unknown> | undefined {
  try {
    return modelOf(json);
  } catch (error) {
    if (!(error instanceof TroodonError)) throw error;
    return undefined;
  }
}

for (const [type, full] of Object.entries(DEFAULTS)) {
  Deno.test(`${type}: a key that config.json leaves out has transformers' default`, () => {
    const config: Json = { model_type: type, ...full };
    const whole = tryModel(config);
    if (!whole) return assertEquals(type, "glm4_moe", "transformers' own defaults are no model");
    for (const key of Object.keys(full)) {
      const { [key]: _gone, ...rest } = config;
      const without = tryModel(rest);
      if (!without) continue;
      for (const name of new Set([...Object.keys(whole), ...Object.keys(without)])) {
        if (SIZES.includes(name) || key === NAMED[type]) continue;
        // Names that say the same: the widths that follow from others, and what a rule begins with anyway.
        assertEquals(without[name] ?? LEFT[name], whole[name] ?? LEFT[name], `${key}: ${name}`);
      }
    }
  });
}

/** What a missing value means where it is used. */
const LEFT: Readonly<Record<string, unknown>> = {
  ropeFraction: 1,
  ropeInterleaved: true,
  ropeOriginal: 4096,
  parallelNorms: 2,
  expertGroups: 1,
  expertGroupsUsed: 1,
  headScaled: true,
};

Deno.test("most specs are of families that transformers knows", () => {
  const known = specFiles.filter(({ matches }) =>
    matches.huggingface.some((type) => type in DEFAULTS)
  );
  assertEquals(known.length > 40, true);
});
