// Norms and activations of com.microsoft, and SimplifiedLayerNormalization, which onnxruntime also
// takes in the default domain.

import { float, int } from "../derivation/attributes.ts";
import { applyBinary, applyUnary } from "../derivation/elementwise.ts";
import { contribOp, type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { layerNorm, normalizeRows, rmsNorm, rowNormAttributes } from "./normalization.ts";
import { sliced } from "./slicing.ts";

const domain = "com.microsoft";

function simplified(of: string): OnnxOp {
  return onnxOp("SimplifiedLayerNormalization", {
    domain: of,
    versions: [1],
    attributes: rowNormAttributes,
    build(call) {
      if (call.wanted[1]) call.unsupported("the inverse deviation as an output");
      return rmsNorm(call);
    },
  });
}

/** Input, skip and bias added up, and the norm of the sum; a layer norm has a beta before the bias. */
function skipNorm(name: string, { centred }: { readonly centred: boolean }): OnnxOp {
  return contribOp(name, {
    attributes: { epsilon: float(1e-12) },
    build(call) {
      if (call.wanted[1] || call.wanted[2]) call.unsupported("statistics of rows as outputs");
      const [x, skip, scale, ...others] = call.take(3, centred ? 2 : 1);
      const [bias, beta] = others.reverse();
      const skipped = applyBinary(call, { kind: "add", a: x!, b: skip! });
      const sum = bias ? applyBinary(call, { kind: "add", a: skipped, b: bias }) : skipped;
      const axis = sum.type.shape.length - 1, { epsilon } = call.attributes;
      const y = normalizeRows(call, {
        x: sum,
        norm: { centred, axis, epsilon, scale, bias: beta },
      });
      return [y, undefined, undefined, sum];
    },
  });
}

// Words of each item: the ones in its mask.
function maskIndex(call: OnnxCall<unknown>, ids: Tensor, mask: Tensor | undefined): Tensor {
  if (mask) return call.one("reduce", [mask], { kind: "sum", axes: [1], keep: false });
  const zero = call.scalar("i32", 0);
  return call.one("expand", [zero], { shape: [ids.type.shape[0]!] });
}

/** Norms and activations of com.microsoft. */
export const contribNormOps: readonly OnnxOp[] = [
  contribOp("BiasGelu", {
    build: (call) => [
      applyUnary(call, {
        kind: "gelu",
        x: applyBinary(call, { kind: "add", a: call.input(0), b: call.input(1) }),
      }),
    ],
  }),
  contribOp("EmbedLayerNormalization", {
    attributes: { epsilon: float(1e-12), mask_index_type: int(0) },
    build(call) {
      const ids = call.input(0), segments = call.inputs[1], given = call.inputs[8];
      const words = call.one("gather", [call.input(2), ids], { axis: 0 });
      const table = call.input(3), front = { start: 0, size: ids.type.shape[1]!, step: 1 };
      const places = given
        ? call.one("gather", [table, given], { axis: 0 })
        : sliced(call, { x: table, cuts: new Map([[0, front]]) });
      let sum = applyBinary(call, { kind: "add", a: words, b: places });
      if (segments) {
        const kinds = call.one("gather", [call.input(4), segments], { axis: 0 });
        sum = applyBinary(call, { kind: "add", a: sum, b: kinds });
      }
      const { epsilon } = call.attributes, scale = call.input(5), bias = call.input(6);
      const y = normalizeRows(call, {
        x: sum,
        norm: { centred: true, axis: 2, epsilon, scale, bias },
      });
      return [y, call.wanted[1] ? maskIndex(call, ids, call.inputs[7]) : undefined, sum];
    },
  }),
  contribOp("FastGelu", {
    build(call) {
      const x = call.input(0), bias = call.inputs[1];
      return [
        applyUnary(call, {
          kind: "gelu_tanh",
          x: bias ? applyBinary(call, { kind: "add", a: x, b: bias }) : x,
        }),
      ];
    },
  }),
  contribOp("Gelu", {
    build: (call) => [applyUnary(call, { kind: "gelu", x: call.input(0) })],
  }),
  /** As in ai.onnx, in which models of older operator sets cannot have it. */
  contribOp("LayerNormalization", {
    attributes: rowNormAttributes,
    build: layerNorm,
  }),
  /** x · sigmoid(alpha · x). */
  contribOp("QuickGelu", {
    attributes: { alpha: float(1.702) },
    build(call) {
      const x = call.input(0), { alpha } = call.attributes;
      return [applyUnary(call, { kind: "silu", x }, { alpha })];
    },
  }),
  simplified(""),
  simplified(domain),
  skipNorm("SkipLayerNormalization", { centred: true }),
  skipNorm("SkipSimplifiedLayerNormalization", { centred: false }),
];
