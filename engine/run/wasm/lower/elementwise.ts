// WASM kernels of elementwise ops on float32, with any broadcasting.

import { BINARY, BINARY_NUMBERS, type BinaryName } from "../../../../functions/binary.ts";
import { UNARY, UNARY_NUMBERS, type UnaryName } from "../../../../functions/unary.ts";
import type { WasmKernel, WasmLowering } from "../kernel.ts";
import type { Node } from "../../../graph/graph.ts";
import { rowsPerChunk } from "../../../ops/row_cut.ts";
import { rowwiseOf } from "../../../plan/chains.ts";
import { areFloat32, inBytes, movableBytes, numbered } from "./strided.ts";
import { countOf, emit, inputAddress, outputAddress } from "./lower.ts";
import { broadcastLoop, isFlat } from "../../../ops/strided_loop.ts";

/** Kernel of `unary` on float32. */
export const mapKernel: WasmKernel = {
  name: "unary_f32",
  when: ({ node: { inputs, attributes: { kind } } }) =>
    areFloat32(inputs) && UNARY[kind as UnaryName].simd !== undefined,
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    emit(lowering, {
      name: "map",
      operands: {
        x: lowering.address(x!),
        y: outputAddress(lowering),
        count: countOf(x!),
        kind: UNARY_NUMBERS[attributes.kind as UnaryName],
        alpha: attributes.alpha as number,
        beta: attributes.beta as number,
      },
    });
  },
};

const COMBINE_RANK = 6, CHOOSE_RANK = 5;

/** Elements of a chunk where no chain says how many. */
const FLAT_CHUNK = 4096;

function canCombine({ inputs, attributes: { kind } }: Node): boolean {
  return areFloat32(inputs) && BINARY[kind as BinaryName].simd !== undefined;
}

/** Kernels of `binary` on float32, best first. */
export const combineKernels: readonly WasmKernel[] = [{
  name: "binary_flat_f32",
  inRowChunks: true,
  when: ({ node }) =>
    canCombine(node) && !BINARY[node.attributes.kind as BinaryName].test &&
    isFlat(broadcastLoop(node)),
  lower(lowering) {
    const { node } = lowering, { outputs: [y] } = node;
    const cut = rowwiseOf(node);
    emit(lowering, {
      name: "combine_flat",
      operands: {
        a: inputAddress(lowering, 0),
        b: inputAddress(lowering, 1),
        y: outputAddress(lowering),
        count: countOf(y!),
        chunk: cut ? rowsPerChunk(cut) * cut.width : FLAT_CHUNK,
        kind: BINARY_NUMBERS[node.attributes.kind as BinaryName],
      },
    });
  },
}, {
  name: "binary_f32",
  when: ({ node }) => canCombine(node) && broadcastLoop(node).sizes.length <= COMBINE_RANK,
  lower: (lowering) => emit(lowering, { name: "combine", operands: combineOperands(lowering, 4) }),
}];

/** Operands of a function of two tensors whose elements have so many bytes. */
export function combineOperands(lowering: WasmLowering, bytes: number) {
  const { sizes, strides: [a, b] } = broadcastLoop(lowering.node);
  const steps = { rank: COMBINE_RANK, missing: 0 };
  return {
    a: inputAddress(lowering, 0),
    b: inputAddress(lowering, 1),
    y: outputAddress(lowering),
    kind: BINARY_NUMBERS[lowering.node.attributes.kind as BinaryName],
    ...numbered("n", sizes, { rank: COMBINE_RANK, missing: 1 }),
    ...numbered("a", inBytes(a!, bytes), steps),
    ...numbered("b", inBytes(b!, bytes), steps),
  };
}

/** Kernel of `where`. */
export const chooseKernel: WasmKernel = {
  name: "where_elements",
  when: ({ node }) =>
    movableBytes(node.outputs[0]!) !== undefined && broadcastLoop(node).sizes.length <= CHOOSE_RANK,
  lower(lowering) {
    const { inputs: [c, a, b] } = lowering.node;
    const { sizes, strides } = broadcastLoop(lowering.node);
    const rank = { rank: CHOOSE_RANK, missing: 0 }, bytes = movableBytes(a!)!;
    emit(lowering, {
      name: "choose",
      operands: {
        c: lowering.address(c!),
        a: lowering.address(a!),
        b: lowering.address(b!),
        y: outputAddress(lowering),
        bytes,
        ...numbered("n", sizes, { rank: CHOOSE_RANK, missing: 1 }),
        ...numbered("c", strides[0]!, rank),
        ...numbered("a", inBytes(strides[1]!, bytes), rank),
        ...numbered("b", inBytes(strides[2]!, bytes), rank),
      },
    });
  },
};
