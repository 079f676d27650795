// matmul: rows of x times the rows of a weight matrix [N, K] as files store it, so that each result is a dot of two
// contiguous rows. Rows of x are floats, 8-bit rows (ops/q8_rows.ts), or LF8 as bytes (quant/lf8_products.ts); the meaning
// is the product of the numbers that both sides stand for, but for LF8, whose order of sums LlamaF's algorithm 1 gives,
// so that the weight comes as the bytes of the file too. Passes put into a product what stands around it: a norm before
// it (fuse_norm.ts), a gate (fuse_gated.ts), a function, a sum and a norm of that behind it (fuse_function.ts,
// fuse_residual.ts, fuse_norm_behind.ts). matmul_nd is another op: neither of its sides is a weight that kernels read packed.

import { roundInt7Row } from "../../../quant/int7_groups.ts";
import { Q16_MOST } from "../../../quant/q16_activation.ts";
import { multiplyLf8Rows } from "../../../quant/lf8_products.ts";
import { UNARY } from "../../../functions/unary.ts";
import { ACTIVATION_NAMES } from "../activations.ts";
import { choice, flag, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { Node, TensorType } from "../../graph/graph.ts";
import { numbersOf } from "../host_numbers.ts";
import { elementCount, getElement, type HostTensor, setElement } from "../host_tensor.ts";
import { matmulCases } from "../matmul_cases.ts";
import type { OpRecord } from "../op.ts";
import { inferQ8, quantizeGroups, RESULT_TYPE, resultOf, roundGroups } from "../q8_rows.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";
import { gateRows, halfOf, plainGate } from "./glu.ts";
import { checkVector, normRows } from "./norm.ts";

/**
 * (x f32, q8, q8_low or u8[…, K], weight [N, K], bias [N]?, residual f32[…, N]?, gain [K]?) → f32 or q8[…, N]; with a gate
 * […, N / 2] and so the residual: the weight has the rows of the gate, then the others. With `centred` there is shift [K]?
 * behind the gain. With `norm_behind` gain is [N], and behind it shift [N]? → (f32[…, N], its layer norm f32[…, N]).
 */
export const matmul: OpRecord = defineOp({
  name: "matmul",
  summary: "x · weightᵀ + bias, with what stands around it where passes say so",
  attributes: {
    // Weights are rounded to 7 bit while they are loaded (quant/int7_groups.ts): by part of the op, so the reference
    // does it too. x has low sums, so that kernels may add two products of such codes in 16 bits.
    rounded: flag(false),
    // x, floats, is rounded to 16 bit (quant/q16_activation.ts).
    wide: flag(false),
    // x is norm(x, gain) with epsilon and base, in 8 bit; or its layer norm by gain and shift with epsilon, in floats.
    normed: flag(false),
    centred: flag(false),
    epsilon: number(0),
    base: number(0),
    gate: choice(["none", ...ACTIVATION_NAMES], "none"),
    // A function of the product and its bias, at this alpha.
    activation: choice(["none", ...ACTIVATION_NAMES], "none"),
    alpha: number(1),
    // A second result is the layer norm of the first by gain and shift with epsilon.
    norm_behind: flag(false),
    to: RESULT_TYPE,
  },
  byRows: true,
  packedInput: 1,
  infer(inputs, { rounded, wide, normed, centred, gate, activation, norm_behind, to }) {
    checkInputCount(inputs, 6);
    const x = requireInput(inputs, {
      index: 0,
      name: "x",
      dtype: normed || centred ? ["f32"] : rounded ? ["q8_low"] : ["f32", "q8", "u8"],
      minRank: 1,
    });
    const isLf8 = x.dtype === "u8";
    if (wide && (normed || x.dtype !== "f32")) {
      throw new TypeError("rows that are rounded to 16 bit are floats without a norm");
    }
    if (centred && (wide || normed || rounded || norm_behind)) {
      throw new TypeError("a product of rows that are centred has no other norm, and no rounding");
    }
    const weight = requireInput(inputs, {
      index: 1,
      name: "weight",
      dtype: isLf8 ? "u8" : "f32",
      rank: 2,
    });
    const bias = optionalInput(inputs, { index: 2, name: "bias", rank: 1 });
    const units = isLf8 ? "the bytes of a row" : "the columns";
    requireEqual(lastDim(x), { b: weight.shape[1]!, what: `${units} of x and of the weight` });
    if (bias) {
      requireEqual(weight.shape[0]!, {
        b: bias.shape[0]!,
        what: "the rows of the weight and the bias",
      });
    }
    const gain = optionalInput(inputs, { index: 4, name: "gain", rank: 1 });
    const shift = optionalInput(inputs, { index: 5, name: "shift", rank: 1 });
    const isNormed = centred || norm_behind;
    if (gain && !normed && !isNormed) throw new TypeError("a gain belongs to a norm");
    if (shift && !isNormed) throw new TypeError("a shift belongs to a layer norm");
    if (norm_behind && (normed || to !== "f32")) {
      throw new TypeError("a norm behind a product is the only one, and both results are floats");
    }
    if (activation !== "none" && gate !== "none") {
      throw new TypeError("a product has a gate or a function behind it");
    }
    if (normed || centred) checkVector(x, { vector: gain, name: "gain" });
    if (centred) checkVector(x, { vector: shift, name: "shift" });
    if (normed || wide) inferQ8(x);
    const product: TensorType = {
      dtype: "f32",
      shape: [...x.shape.slice(0, -1), weight.shape[0]!],
    };
    const result = gate === "none" ? product : halfOf(product);
    const residual = optionalInput(inputs, {
      index: 3,
      name: "residual",
      rank: result.shape.length,
    });
    if (residual) {
      result.shape.forEach((dim, i) =>
        requireEqual(dim, {
          b: residual.shape[i]!,
          what: "the dims of the product and the residual",
        })
      );
    }
    if (!norm_behind) return [resultOf(result, to)];
    for (const [name, vector] of Object.entries({ gain, shift })) {
      checkVector(result, { vector, name });
    }
    return [result, result];
  },
  reference({ inputs, outputs: [out, behind], attributes }) {
    const [x, weight, bias, residual, gain, shift] = inputs;
    const { rounded, wide, normed, centred, gate, activation, alpha, epsilon, to } = attributes;
    const rows = normed || centred || wide ? floatsLike(x!, x!.shape) : x!;
    if (wide) roundGroups(x!, { out: rows, most: Q16_MOST });
    if (normed) {
      normRows(x!, rows, { ...attributes, weight: gain });
      quantizeGroups(rows, rows);
    }
    if (centred) normRows(x!, rows, { centred, weight: gain, bias: shift, epsilon, base: 0 });
    const shape = [...out!.shape.slice(0, -1), weight!.shape[0]!];
    const product = gate === "none" ? out! : floatsLike(out!, shape);
    const matrix = rounded ? roundedRows(weight!) : weight!;
    const multiply = x!.dtype === "u8" ? multiplyLf8 : multiplyFloats;
    multiply(rows, matrix, bias, product);
    if (gate !== "none") gateRows(product, undefined, { out: out!, apply: plainGate(gate) });
    for (let i = 0; activation !== "none" && i < out!.data.length; i++) {
      setElement(out!, {
        index: i,
        value: UNARY[activation].float!(getElement(out!, i), alpha, 0),
      });
    }
    for (let i = 0; residual && i < out!.data.length; i++) {
      setElement(out!, { index: i, value: getElement(out!, i) + getElement(residual, i) });
    }
    if (to === "q8") quantizeGroups(out!, out!);
    if (behind) {
      normRows(out!, behind, { centred: true, weight: gain, bias: shift, epsilon, base: 0 });
    }
  },
  cases: matmulCases,
});

/**
 * What a node does besides multiplying and adding a bias, in this order: of `wide`, `normed`, `centred`, `rounded`, `gated`,
 * `active`, `residual`, `norm` and `q8`, apart by blanks. A kernel is made for one such text.
 */
export function besidesProduct(
  { inputs, attributes }: Pick<Node, "inputs" | "attributes">,
): string {
  const { wide, normed, centred, rounded, gate, activation, norm_behind, to } = attributes;
  return [
    wide ? "wide" : "",
    normed ? "normed" : "",
    centred ? "centred" : "",
    rounded ? "rounded" : "",
    gate === "none" ? "" : "gated",
    activation === "none" ? "" : "active",
    inputs[3] ? "residual" : "",
    norm_behind ? "norm" : "",
    to === "q8" ? "q8" : "",
  ].filter((word) => word !== "").join(" ");
}

function floatsLike(like: HostTensor, shape: readonly number[]): HostTensor {
  return { ...like, dtype: "f32", shape, data: new Float32Array(elementCount(shape)) };
}

type Multiply = (
  x: HostTensor,
  weight: HostTensor,
  bias: HostTensor | undefined,
  out: HostTensor,
) => void;

const multiplyFloats: Multiply = (x, weight, bias, out) => {
  const [height, width] = weight.shape as [number, number];
  const rows = height === 0 ? 0 : out.data.length / height;
  const numbers = numbersOf(x), weights = numbersOf(weight);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < height; column++) {
      let sum = bias ? getElement(bias, column) : 0;
      for (let i = 0; i < width; i++) {
        sum += numbers[row * width + i]! * weights[column * width + i]!;
      }
      setElement(out, { index: row * height + column, value: sum });
    }
  }
};

const multiplyLf8: Multiply = (x, weight, bias, out) => {
  const [height, bytes] = weight.shape as [number, number];
  const rows = x.data as Uint8Array, weights = weight.data as Uint8Array;
  for (let at = 0; at < out.data.length; at++) {
    const m = Math.floor(at / height), n = at % height;
    const sum = multiplyLf8Rows(
      rows.subarray(m * bytes, (m + 1) * bytes),
      weights.subarray(n * bytes, (n + 1) * bytes),
    );
    setElement(out, { index: at, value: sum + (bias ? getElement(bias, n) : 0) });
  }
};

/** The numbers that rounded rows stand for. */
function roundedRows(weight: HostTensor): HostTensor {
  const [height, width] = weight.shape as [number, number];
  const rounded = floatsLike(weight, weight.shape), data = rounded.data as Float32Array;
  for (let i = 0; i < data.length; i++) data[i] = getElement(weight, i);
  for (let row = 0; row < height; row++) {
    roundInt7Row(data.subarray(row * width, (row + 1) * width));
  }
  return rounded;
}
