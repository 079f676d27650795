// Lowering of ops on 8-bit codes.

import type { WasmKernel } from "../kernel.ts";
import { type Dim, equal, product } from "../../../graph/dim/mod.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { roundUp64 } from "./conv.ts";
import { countOf, emit, inputAddress, isStatic, outputAddress } from "./lower.ts";

/** Number of elements, where it is known. */
function knownCount(value: Value | undefined): number | undefined {
  if (!value) return 0;
  const count = countOf(value);
  return typeof count === "number" ? count : undefined;
}

/** One zero point for a, one or one a column for b. */
export const matmulIntegerKernel: WasmKernel = {
  name: "matmul_integer",
  when({ node: { inputs: [a, b, aZero, bZero] } }) {
    const columns = b!.shape.at(-1)!, zeros = knownCount(bZero);
    // Batches of b are those of a, or b is one matrix for all.
    const batched = b!.shape.length === 2 ||
      (a!.shape.length === b!.shape.length &&
        b!.shape.slice(0, -2).every((size, i) => equal(size, a!.shape[i]!)));
    return a!.shape.length >= 2 && b!.shape.length >= 2 && batched && isStatic(a!.shape.at(-1)) &&
      (knownCount(aZero) ?? 2) <= 1 &&
      (zeros === 0 || zeros === 1 || (zeros !== undefined && bZero!.shape.length === 1 &&
        equal(columns, zeros)));
  },
  lower(lowering) {
    const { inputs: [a, b, , bZero] } = lowering.node;
    const inner = a!.shape.at(-1) as number, columns = b!.shape.at(-1)!;
    const shared = b!.shape.length === 2;
    // Rows of a and a panel of b in 16 bit, in pairs, and a ragged edge: wasm/assembly/network/integer.ts.
    const bytes = (48 * 4 + 32) * Math.ceil(inner / 2) + 48 * 32;
    emit(lowering, {
      name: "matmul_integer",
      operands: {
        a: inputAddress(lowering, 0),
        b: inputAddress(lowering, 1),
        a_zero: inputAddress(lowering, 2),
        b_zero: inputAddress(lowering, 3),
        b_zeros: knownCount(bZero)!,
        y: outputAddress(lowering),
        a_signed: a!.dtype === "i8" ? 1 : 0,
        b_signed: b!.dtype === "i8" ? 1 : 0,
        rows: shared ? product(a!.shape.slice(0, -1)) : a!.shape.at(-2)!,
        ...{ inner, columns },
        batch: shared ? 1 : product(a!.shape.slice(0, -2)),
        b_batch: shared ? 0 : product([inner, columns]),
        scratch: lowering.scratch(bytes),
        scratch_bytes: roundUp64(bytes),
      },
    });
  },
};

/** The range first, then the codes. */
export const dynamicQuantizeKernel: WasmKernel = {
  name: "dynamic_quantize",
  when: () => true,
  lower(lowering) {
    const { inputs: [x], outputs: [y, scale, zero] } = lowering.node;
    const partials = lowering.sharedScratch(64 * 8), count = countOf(x!);
    const source = lowering.address(x!);
    emit(lowering, { name: "range_partials", operands: { x: source, count, partials } });
    emit(lowering, {
      name: "quantize_range",
      operands: {
        ...{ x: source, count, partials },
        y: lowering.address(y!),
        scale: lowering.address(scale!),
        zero: lowering.address(zero!),
      },
    });
  },
};

/** Channels along `axis` with a scale each, or 1; undefined where the kernels cannot tell. */
function channelsOf({ inputs: [x, scale, zero], attributes }: Node): number | undefined {
  const count = knownCount(scale), axis = attributes.axis as number;
  if (attributes.block !== 0 || count === undefined) return undefined;
  if (zero && knownCount(zero) !== count) return undefined;
  if (count === 1) return 1;
  return equal(x!.shape[axis] ?? 1, count) ? count : undefined;
}

function channelOperands({ inputs: [x], attributes }: Node, channels: number) {
  const places: Dim = product(x!.shape.slice((attributes.axis as number) + 1));
  return { count: countOf(x!), places: channels === 1 ? 0 : places, channels };
}

/** Float32 to bytes. */
export const quantizeKernel: WasmKernel = {
  name: "quantize_bytes",
  when({ node }) {
    const { inputs: [x, scale], attributes: { to, precision } } = node;
    return x!.dtype === "f32" && scale!.dtype === "f32" && precision === "f32" &&
      (to === "u8" || to === "i8") && channelsOf(node) !== undefined;
  },
  lower(lowering) {
    const { node } = lowering;
    emit(lowering, {
      name: "quantize",
      operands: {
        x: inputAddress(lowering, 0),
        y: outputAddress(lowering),
        scale: inputAddress(lowering, 1),
        zero: inputAddress(lowering, 2),
        ...channelOperands(node, channelsOf(node)!),
        signed: node.attributes.to === "i8" ? 1 : 0,
      },
    });
  },
};

const TYPES = ["u8", "i8", "i32"];

/** Bytes and 32-bit sums to float32. */
export const dequantizeKernel: WasmKernel = {
  name: "dequantize_f32",
  when({ node }) {
    const { inputs: [x, scale], attributes: { to } } = node;
    return TYPES.includes(x!.dtype) && scale!.dtype === "f32" && to === "f32" &&
      channelsOf(node) !== undefined;
  },
  lower(lowering) {
    const { node } = lowering;
    emit(lowering, {
      name: "dequantize",
      operands: {
        x: inputAddress(lowering, 0),
        y: outputAddress(lowering),
        scale: inputAddress(lowering, 1),
        zero: inputAddress(lowering, 2),
        ...channelOperands(node, channelsOf(node)!),
        type: TYPES.indexOf(node.inputs[0]!.dtype),
      },
    });
  },
};
