// WASM kernels of ops on single elements by index, and of triangles.

import type { WasmKernel } from "../kernel.ts";
import { product } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { axisOf } from "../../../ops/host_numbers.ts";
import { inBytes, movableBytes, numbered } from "./strided.ts";
import { elementKind, isWide, linesOf } from "./typed.ts";
import { countOf, emit, outputAddress } from "./lower.ts";
import { denseStrides, type Loop, mergedLoop } from "../../../ops/strided_loop.ts";

const RANK = 6;

/** The loop over indices, with the strides of the indexed tensor, 0 along the axis. */
export function indexLoop({ inputs: [x, indices], attributes }: Node): Loop {
  const axis = axisOf(attributes.axis as number, x!.shape.length);
  const strides = denseStrides(x!.shape).with(axis, 0);
  return mergedLoop({
    sizes: indices!.shape,
    strides: [strides, denseStrides(indices!.shape)],
  });
}

function canIndex(node: Node): boolean {
  return movableBytes(node.inputs[0]!) !== undefined && indexLoop(node).sizes.length <= RANK;
}

function indexOperands(node: Node) {
  const { inputs: [x, indices], attributes } = node;
  const axis = axisOf(attributes.axis as number, x!.shape.length);
  const bytes = movableBytes(x!)!;
  const { sizes, strides } = indexLoop(node);
  return {
    bytes,
    wide: isWide(indices!),
    size: x!.shape[axis]!,
    along: inBytes(denseStrides(x!.shape), bytes)[axis]!,
    ...numbered("n", sizes, { rank: RANK, missing: 1 }),
    strides: inBytes(strides[0]!, bytes),
  };
}

const strided = { rank: RANK, missing: 0 };

/** Kernel of `gather_elements`. */
export const gatherElementsKernel: WasmKernel = {
  name: "gather_elements_by_row",
  when: ({ node }) => canIndex(node),
  lower(lowering) {
    const { inputs: [x, indices] } = lowering.node;
    const { strides, ...operands } = indexOperands(lowering.node);
    emit(lowering, {
      name: "gather_elements",
      operands: {
        x: lowering.address(x!),
        indices: lowering.address(indices!),
        y: outputAddress(lowering),
        ...operands,
        ...numbered("x", strides, strided),
      },
    });
  },
};

/** Kernel of `scatter_elements` without a reduction. */
export const scatterElementsKernel: WasmKernel = {
  name: "scatter_elements_in_order",
  when: ({ node }) => node.attributes.reduction === "none" && canIndex(node),
  lower(lowering) {
    const { inputs: [x, indices, updates] } = lowering.node;
    const { strides, ...operands } = indexOperands(lowering.node);
    const y = outputAddress(lowering), flat = [operands.bytes];
    emit(lowering, {
      name: "move",
      operands: {
        x: lowering.address(x!),
        y,
        bytes: operands.bytes,
        ...numbered("n", [countOf(x!)], { rank: RANK, missing: 1 }),
        ...numbered("x", flat, strided),
        ...numbered("y", flat, strided),
      },
    });
    emit(lowering, {
      name: "scatter_elements",
      operands: {
        updates: lowering.address(updates!),
        indices: lowering.address(indices!),
        y,
        ...operands,
        ...numbered("y", strides, strided),
      },
    });
  },
};

/** Kernel of `one_hot`. */
export const oneHotKernel: WasmKernel = {
  name: "one_hot_marks",
  when: ({ node: { inputs: [indices, values] } }) =>
    elementKind(indices!.dtype) !== undefined && movableBytes(values!) !== undefined,
  lower(lowering) {
    const { inputs: [indices, values], outputs: [out], attributes } = lowering.node;
    const bytes = movableBytes(values!)!, off = lowering.address(values!);
    const y = outputAddress(lowering);
    const { outer, length: depth, inner } = linesOf(out!, attributes.axis as number);
    emit(lowering, { name: "fill", operands: { value: off, y, bytes, count: countOf(out!) } });
    emit(lowering, {
      name: "mark",
      operands: {
        indices: lowering.address(indices!),
        type: elementKind(indices!.dtype)!,
        value: off + bytes,
        y,
        bytes,
        outer,
        depth,
        inner,
      },
    });
  },
};

/** Kernel of `trilu`. */
export const triluKernel: WasmKernel = {
  name: "trilu_rows",
  when: ({ node: { inputs: [x], attributes } }) =>
    movableBytes(x!) !== undefined && Math.abs(attributes.k as number) < 2 ** 31,
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    emit(lowering, {
      name: "trilu",
      operands: {
        x: lowering.address(x!),
        y: outputAddress(lowering),
        bytes: movableBytes(x!)!,
        matrices: product(x!.shape.slice(0, -2)),
        rows: x!.shape.at(-2)!,
        columns: x!.shape.at(-1)!,
        k: attributes.k as number,
        upper: Number(attributes.upper),
      },
    });
  },
};
