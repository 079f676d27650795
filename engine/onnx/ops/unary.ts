// Ops that apply one function to every element: those of functions/unary.ts by their names and versions, and some
// that choose one by an attribute.

import { UNARY, UNARY_NAMES } from "../../../functions/unary.ts";
import { float, int, ints, text } from "../derivation/attributes.ts";
import { applyBinary, applyUnary, knownScalar } from "../derivation/elementwise.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";

// Version 1 had a list by which inputs could be overwritten; it never changed a result.
const legacy = { consumed_inputs: ints(undefined, { until: 5 }) };

/** Ops of one input that keep its shape. */
export const unaryOps: readonly OnnxOp[] = [
  ...UNARY_NAMES.flatMap((kind) => {
    const { onnx, parameters = [] } = UNARY[kind];
    if (!onnx) return [];
    const [name, versions] = onnx;
    return [onnxOp(name, {
      versions,
      attributes: {
        ...versions[0] === 1 ? legacy : {},
        ...Object.fromEntries(parameters.map(([attribute, value]) => [attribute, float(value)])),
      },
      build(call) {
        const given = call.attributes as Readonly<Record<string, number>>;
        const [alpha = 1, beta = 0] = parameters.map(([attribute]) => given[attribute]!);
        return [applyUnary(call, { kind, x: call.input(0) }, { alpha, beta })];
      },
    })];
  }),

  /** Clip: limits were attributes up to version 6. */
  onnxOp("Clip", {
    versions: [1, 6, 11],
    attributes: {
      ...legacy,
      min: float(undefined, { until: 10 }),
      max: float(undefined, { until: 10 }),
    },
    build(call) {
      const x = call.input(0);
      const { min, max } = call.attributes;
      const limit = (index: number, attribute: number | undefined) =>
        attribute === undefined ? call.inputs[index] : call.scalar(x.type.dtype, attribute);
      const low = limit(1, min), high = limit(2, max);
      // ReLU in disguise.
      if (low && !high && x.type.dtype === "f32" && Object.is(knownScalar(low), 0)) {
        return [applyUnary(call, { kind: "relu", x })];
      }
      const raised = low ? applyBinary(call, { kind: "max", a: x, b: low }) : x;
      return [high ? applyBinary(call, { kind: "min", a: raised, b: high }) : raised];
    },
  }),

  onnxOp("Gelu", {
    versions: [20],
    attributes: { approximate: text("none", { choices: ["none", "tanh"] }) },
    build(call) {
      const kind = call.attributes.approximate === "tanh" ? "gelu_tanh" : "gelu";
      return [applyUnary(call, { kind, x: call.input(0) })];
    },
  }),

  onnxOp("IsInf", {
    versions: [10],
    attributes: { detect_negative: int(1), detect_positive: int(1) },
    build(call) {
      const { detect_negative: alpha, detect_positive: beta } = call.attributes;
      return [applyUnary(call, { kind: "is_infinite", x: call.input(0) }, { alpha, beta })];
    },
  }),
];
