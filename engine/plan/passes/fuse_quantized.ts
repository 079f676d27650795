// fuse_quantized: an op whose only reader quantises its result writes the quantised form itself, where
// the device has a kernel for that. A table: one row an op. What is left of the unfused op has no
// reader any more and goes with dead_code.

import { ACTIVATION_NAMES } from "../../../functions/unary.ts";
import { Q8_GROUP } from "../../../quant/q8_activation.ts";
import type { Node } from "../../graph/graph.ts";
import { WHOLE } from "./match.ts";
import { defineReplacement, draftOf, type NodeDraft, type Pass } from "./pass.ts";

type Form = Pick<NodeDraft, "op" | "attributes">;

/** What a node becomes when its result is quantised to a format. */
const FORMS: Readonly<Record<string, (node: Node, format: unknown) => Form | undefined>> = {
  norm: inQ8, //       quantize(norm(x, w))     → norm(x, w) to q8
  glu: inQ8, //        quantize(glu(g, u))      → glu(g, u) to q8
  // quantize(activation(x)) → quantize(x) after that function, of what gates take
  unary: ({ attributes: { kind, alpha, beta } }, format) =>
    ACTIVATION_NAMES.some((name) => name === kind) && alpha === 1 && beta === 0
      ? { op: "quantize", attributes: { format: format as string, activation: kind! } }
      : undefined,
  // The same for attention, where no group is of two heads.
  attention: ({ inputs: [, , values], attributes }, format) =>
    attributes.q_heads === 0 && values && (values.shape[2] as number) % Q8_GROUP === 0
      ? inQ8({ op: "attention", attributes }, format)
      : undefined,
};

function inQ8({ op, attributes }: Form, format: unknown): Form | undefined {
  return format === "q8" ? { op, attributes: { ...attributes, to: "q8" } } : undefined;
}

/** Fuses `quantize` into the op before it. */
export const fuseQuantized: Pass = defineReplacement({
  name: "fuse_quantized",
  reads: {
    ...Object.fromEntries(Object.keys(FORMS).map((op) => [op, WHOLE] as const)),
    quantize: ["format"],
  },
  match({ op, inputs: [value], attributes }, { made, readers, outputs }, { takes }) {
    const producer = op === "quantize" ? made.get(value!) : undefined;
    const form = producer && FORMS[producer.op]?.(producer, attributes.format);
    const alone = value && readers.get(value)!.length === 1 && !outputs.has(value);
    if (!form || !alone) return undefined;
    const draft = draftOf(form.op, { inputs: producer.inputs, given: form.attributes });
    return takes(draft) ? { ...draft, name: producer.name } : undefined;
  },
  replace: ({ op, moved }, { op: kind, inputs, attributes, name, outputs }) =>
    op(kind, inputs.map((input) => input && moved(input)), attributes, name, outputs),
});
