// Norms and activations of com.microsoft, and SimplifiedLayerNormalization, which onnxruntime also
// takes in the default domain.

import { axisOf } from "../../ops/host_numbers.ts";
import { float, int } from "../derivation/attributes.ts";
import { applyBinary, applyUnary } from "../derivation/elementwise.ts";
import { contribOp, type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { layerNormWithStatistics, normalizeRows } from "./normalization.ts";

const domain = "com.microsoft";

function simplified(of: string): OnnxOp {
  return onnxOp("SimplifiedLayerNormalization", {
    domain: of,
    versions: [1],
    attributes: { axis: int(-1), epsilon: float(1e-5), stash_type: int(1) },
    build(call) {
      const x = call.input(0), axis = axisOf(call.attributes.axis, x.type.shape.length);
      if (call.wanted[1]) call.unsupported("the inverse deviation as an output");
      const norm = { op: "rms_norm", axis, epsilon: call.attributes.epsilon } as const;
      return [normalizeRows(call, x, norm, call.input(1), undefined)];
    },
  });
}

// Input, skip and bias added up, and the norm of the sum.
function skipNorm(
  call: OnnxCall<{ readonly epsilon: number }>,
  op: "layer_norm" | "rms_norm",
  { scale, beta, bias }: {
    readonly scale: Tensor;
    readonly beta: Tensor | undefined;
    readonly bias: Tensor | undefined;
  },
): (Tensor | undefined)[] {
  if (call.wanted[1] || call.wanted[2]) call.unsupported("statistics of rows as outputs");
  const skipped = applyBinary(call, "add", call.input(0), call.input(1));
  const sum = bias ? applyBinary(call, "add", skipped, bias) : skipped;
  const axis = sum.type.shape.length - 1;
  const y = normalizeRows(call, sum, { op, axis, epsilon: call.attributes.epsilon }, scale, beta);
  return [y, undefined, undefined, sum];
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
      applyUnary(call, "gelu", applyBinary(call, "add", call.input(0), call.input(1))),
    ],
  }),
  contribOp("EmbedLayerNormalization", {
    attributes: { epsilon: float(1e-12), mask_index_type: int(0) },
    build(call) {
      const ids = call.input(0), segments = call.inputs[1];
      const words = call.one("gather", [call.input(2), ids], { axis: 0 });
      const length = ids.type.shape[1]!;
      const given = call.inputs[8];
      const table = call.input(3);
      const places = given
        ? call.one("gather", [table, given], { axis: 0 })
        : call.one("slice", [table], {
          starts: [0, 0],
          sizes: [length, table.type.shape[1]!],
          steps: [1, 1],
        });
      let sum = applyBinary(call, "add", words, places);
      if (segments) {
        const kinds = call.one("gather", [call.input(4), segments], { axis: 0 });
        sum = applyBinary(call, "add", sum, kinds);
      }
      const norm = { op: "layer_norm", axis: 2, epsilon: call.attributes.epsilon } as const;
      const y = normalizeRows(call, sum, norm, call.input(5), call.input(6));
      return [y, call.wanted[1] ? maskIndex(call, ids, call.inputs[7]) : undefined, sum];
    },
  }),
  contribOp("FastGelu", {
    build(call) {
      const x = call.input(0), bias = call.inputs[1];
      return [applyUnary(call, "gelu_tanh", bias ? applyBinary(call, "add", x, bias) : x)];
    },
  }),
  contribOp("Gelu", {
    build: (call) => [applyUnary(call, "gelu", call.input(0))],
  }),
  /** As in ai.onnx, in which models of older operator sets cannot have it. */
  contribOp("LayerNormalization", {
    attributes: { axis: int(-1), epsilon: float(1e-5), stash_type: int(1) },
    build: (call) => layerNormWithStatistics(call, call.inputs[2]),
  }),
  /** x · sigmoid(alpha · x). */
  contribOp("QuickGelu", {
    attributes: { alpha: float(1.702) },
    build(call) {
      const x = call.input(0), { alpha } = call.attributes;
      return [applyUnary(call, "silu", x, { alpha })];
    },
  }),
  simplified(""),
  simplified(domain),
  contribOp("SkipLayerNormalization", {
    attributes: { epsilon: float(1e-12) },
    build: (call) =>
      skipNorm(call, "layer_norm", {
        scale: call.input(2),
        beta: call.inputs[3],
        bias: call.inputs[4],
      }),
  }),
  contribOp("SkipSimplifiedLayerNormalization", {
    attributes: { epsilon: float(1e-12) },
    build: (call) =>
      skipNorm(call, "rms_norm", { scale: call.input(2), beta: undefined, bias: call.inputs[3] }),
  }),
];
