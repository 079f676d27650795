// Functions of elements, and attention.

import { UNARY, UNARY_NAMES } from "../../../../functions/unary.ts";
import { UnsupportedError } from "../../../errors.ts";
import { attentionList } from "../../../ops/attention_inputs.ts";
import { type Atom, numberOf, widthOf } from "./atom.ts";

/** A function by the word that configs have for it. */
const activation: Atom = {
  inputs: [1, 1],
  parameters: { kind: undefined },
  build(site, [x]) {
    const { kind: word } = site.given;
    const kind = UNARY_NAMES.find((name) => UNARY[name].words?.includes(word as string));
    if (kind) return site.op("unary", [x], { kind });
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

/** (queries, keys, values, mask?) [N, rows, heads · width] → [N, rows, heads · width]. */
const attention: Atom = {
  inputs: [3, 4],
  parameters: { heads: undefined },
  build(site, [q, k, v, mask]) {
    const heads = numberOf(site, "heads");
    const scale = 1 / Math.sqrt(widthOf(q!, -1) / heads);
    const attributes = { scale, q_heads: heads, kv_heads: heads };
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
