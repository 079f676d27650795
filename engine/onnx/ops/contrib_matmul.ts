// Matrix products of com.microsoft: with transposed operands, and with weights in blocks of codes.

import { flag, float, int, required } from "../derivation/attributes.ts";
import { applyBinary, castTo } from "../derivation/elementwise.ts";
import { nbitsWeight } from "../derivation/nbits_weight.ts";
import { contribOp, type OnnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { unpackBlocks } from "../derivation/unpack_blocks.ts";
import { multiplyMatrices } from "./matmul.ts";

/** Matrix products of com.microsoft. */
export const contribMatmulOps: readonly OnnxOp[] = [
  /** `transBatch` moves the first dim behind the others but the last. */
  contribOp("FusedMatMul", {
    attributes: {
      alpha: float(1),
      transA: flag(false),
      transB: flag(false),
      transBatchA: flag(false),
      transBatchB: flag(false),
    },
    build(call) {
      const { alpha, transA, transB, transBatchA, transBatchB } = call.attributes;
      const moved = (x: Tensor, batch: boolean) => {
        const rank = x.type.shape.length;
        if (!batch || rank < 3) return x;
        const perm = Array.from(
          { length: rank },
          (_, i) => i < rank - 2 ? i + 1 : i === rank - 2 ? 0 : i,
        );
        return call.one("transpose", [x], { perm });
      };
      return call.op("matmul_nd", [
        moved(call.input(0), transBatchA),
        moved(call.input(1), transBatchB),
      ], { alpha, transpose_a: transA, transpose_b: transB });
    },
  }),
  /** `accuracy_level` allows coarser activations and asks for none. */
  contribOp("MatMulNBits", {
    attributes: {
      K: required(int()),
      N: required(int()),
      accuracy_level: int(0),
      bits: int(4),
      block_size: required(int()),
      weight_prepacked: int(0),
    },
    build(call) {
      const { K: columns, N: rows, bits, block_size: block, weight_prepacked } = call.attributes;
      if (weight_prepacked) call.unsupported("weights packed for another device");
      if (![2, 4, 8].includes(bits)) call.unsupported(`weights of ${bits} bits`);
      const x = call.input(0), sizes = { bits, block, rows, columns };
      const from = {
        codes: call.input(1),
        scales: call.input(2),
        zeros: call.inputs[3],
        groups: call.inputs[4],
      };
      const weight = nbitsWeight(call.node.outputs[0]!, sizes, from) ??
        unpackBlocks(call, { sizes, from });
      const y = multiplyMatrices(call, { a: castTo(call, { x, to: "f32" }), b: weight }, {
        transposed: true,
      });
      const bias = call.inputs[5];
      const sum = bias
        ? applyBinary(call, { kind: "add", a: y, b: castTo(call, { x: bias, to: "f32" }) })
        : y;
      return [castTo(call, { x: sum, to: x.type.dtype })];
    },
  }),
];
