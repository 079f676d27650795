// Functions of elements, and attention.

import { UnsupportedError } from "../../../errors.ts";
import { attentionList } from "../../../ops/attention_inputs.ts";
import { ACTIVATION_WORDS } from "../../blocks/activation.ts";
import { type Atom, numberOf, widthOf } from "./atom.ts";

/** A function by the word that configs have for it. */
const activation: Atom = {
  inputs: [1, 1],
  parameters: { kind: undefined },
  build(site, [x]) {
    const { kind: word } = site.given;
    const found = ACTIVATION_WORDS.get(word as string);
    if (found) return site.op("unary", [x], { ...found });
    throw new UnsupportedError(`activation ${JSON.stringify(word)} is not built`, {
      place: site.path,
    });
  },
};

const combine = (kind: "add" | "mul" | "sub"): Atom => ({
  inputs: [2, 2],
  parameters: {},
  build: (site, inputs) => site.op("binary", inputs, { kind }),
});

/**
 * (queries, keys, values, mask?) [N, rows, heads · width] → [N, rows, heads · width]. `scale` of products: 1 / √width where
 * none is given; `causal`: a row sees those before it and itself.
 */
const attention: Atom = {
  inputs: [3, 4],
  parameters: { heads: undefined, scale: null, causal: false },
  build(site, [q, k, v, mask]) {
    const heads = numberOf(site, "heads"), causal = site.given.causal === true;
    const scale = site.given.scale === null
      ? 1 / Math.sqrt(widthOf(q!, -1) / heads)
      : numberOf(site, "scale");
    const attributes = { scale, q_heads: heads, kv_heads: heads, ...causal && { causal } };
    return site.op("attention", attentionList({ q, k, v, mask }), attributes);
  },
};

/** Functions by name. */
export const ELEMENTS: Readonly<Record<string, Atom>> = {
  activation,
  add: combine("add"),
  mul: combine("mul"),
  sub: combine("sub"),
  attention,
};
