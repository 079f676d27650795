// WASM kernels that select: best elements of lines, and runs by tuples of indices.

import type { WasmKernel } from "../kernel.ts";
import { boundsOf, type Dim, mul, product } from "../../../graph/dim/mod.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { inBytes, movableBytes, numbered } from "./strided.ts";
import { elementKind, isWide, linesOf } from "./typed.ts";
import { countOf, emit, outputAddress } from "./lower.ts";
import { denseStrides } from "../../../ops/strided_loop.ts";

/** Kernel of `arg_reduce`. */
export const argReduceKernel: WasmKernel = {
  name: "arg_reduce_elements",
  // An empty line has no answer; the reference says so.
  when: ({ node: { inputs: [x], attributes } }) => {
    const { length } = linesOf(x!, attributes.axis as number);
    return elementKind(x!.dtype) !== undefined && boundsOf(length).min > 0;
  },
  lower(lowering) {
    const { inputs: [x], outputs: [y], attributes } = lowering.node;
    emit(lowering, {
      name: "arg_reduce",
      operands: {
        x: lowering.address(x!),
        y: outputAddress(lowering),
        ...linesOf(x!, attributes.axis as number),
        type: elementKind(x!.dtype)!,
        largest: attributes.kind === "max" ? 1 : 0,
        last: Number(attributes.last),
        wide: isWide(y!),
      },
    });
  },
};

// Insertion into k places: quadratic, so only for small k.
const MOST_PLACES = 1024;

/** Kernel of `top_k`. */
export const topKKernel: WasmKernel = {
  name: "top_k_f32",
  when({ node: { inputs: [x], attributes } }) {
    const { length } = linesOf(x!, attributes.axis as number);
    const { k } = attributes;
    return x!.dtype === "f32" && typeof k === "number" && typeof length === "number" &&
      k <= length && k <= MOST_PLACES;
  },
  lower(lowering) {
    const { inputs: [x], outputs: [values, indices], attributes } = lowering.node;
    emit(lowering, {
      name: "top_k",
      operands: {
        x: lowering.address(x!),
        values: lowering.address(values!),
        indices: lowering.address(indices!),
        ...linesOf(x!, attributes.axis as number),
        k: attributes.k as number,
        largest: Number(attributes.largest),
        wide: isWide(indices!),
      },
    });
  },
};

const MOST_DEPTH = 5;

/** What indexing a tensor of `shape` by tuples takes. */
function tupleOperands(indices: Value, shape: readonly Dim[], bytes: number) {
  const depth = indices.shape.at(-1) as number;
  const behind = <T>(list: readonly T[], missing: T): T[] => [
    ...list.slice(0, depth),
    ...Array<T>(MOST_DEPTH - depth).fill(missing),
  ];
  const rank = { rank: MOST_DEPTH, missing: 0 };
  return {
    tuples: product(indices.shape.slice(0, -1)),
    depth,
    run: mul(product(shape.slice(depth)), bytes),
    wide: isWide(indices),
    ...numbered("d", behind<Dim>(shape, 1), rank),
    ...numbered("s", behind<Dim>(inBytes(denseStrides(shape), bytes), 0), rank),
  };
}

function canIndex({ inputs: [x, indices] }: Node): boolean {
  return movableBytes(x!) !== undefined && (indices!.shape.at(-1) as number) <= MOST_DEPTH;
}

/** Kernel of `gather_nd`. */
export const gatherNdKernel: WasmKernel = {
  name: "gather_nd_runs",
  when: ({ node }) => canIndex(node),
  lower(lowering) {
    const { inputs: [x, indices], attributes } = lowering.node;
    const batch = attributes.batch_dims as number, bytes = movableBytes(x!)!;
    const inner = x!.shape.slice(batch);
    emit(lowering, {
      name: "gather_nd",
      operands: {
        x: lowering.address(x!),
        indices: lowering.address(indices!),
        y: outputAddress(lowering),
        ...tupleOperands(indices!, inner, bytes),
        per_batch: product(indices!.shape.slice(batch, -1)),
        batch_bytes: mul(product(inner), bytes),
      },
    });
  },
};

/** Kernel of `scatter_nd` without a reduction. */
export const scatterNdKernel: WasmKernel = {
  name: "scatter_nd_runs",
  when: ({ node }) => node.attributes.reduction === "none" && canIndex(node),
  lower(lowering) {
    const { inputs: [x, indices, updates] } = lowering.node;
    const bytes = movableBytes(x!)!, y = outputAddress(lowering);
    const whole = { rank: 6, missing: 1 }, flat = [bytes];
    emit(lowering, {
      name: "move",
      operands: {
        x: lowering.address(x!),
        y,
        bytes,
        ...numbered("n", [countOf(x!)], whole),
        ...numbered("x", flat, { rank: 6, missing: 0 }),
        ...numbered("y", flat, { rank: 6, missing: 0 }),
      },
    });
    emit(lowering, {
      name: "scatter_nd",
      operands: {
        updates: lowering.address(updates!),
        indices: lowering.address(indices!),
        y,
        ...tupleOperands(indices!, x!.shape, bytes),
      },
    });
  },
};
