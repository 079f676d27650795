// Ops that put elements elsewhere, as data: each node is one box copied to another, or a few such. A backend
// has one kernel for them all.

import { add, type Dim, mul } from "../graph/dim/mod.ts";
import type { Node } from "../graph/graph.ts";
import { denseStrides, type Loop, mergedLoop } from "./strided_loop.ts";

/** One box of an input copied to one of the output. */
export interface Move {
  /** Which input is read. */
  readonly input: number;
  /** Sizes of the box. */
  readonly sizes: readonly Dim[];
  /** First element and strides on both sides, in elements. */
  readonly from: { readonly start: Dim; readonly strides: readonly Dim[] };
  readonly to: { readonly start: Dim; readonly strides: readonly Dim[] };
}

/** The loop over the box of a move: strides of what is read, then of what is written. */
export function moveLoop({ sizes, from, to }: Move): Loop {
  return mergedLoop({ sizes, strides: [from.strides, to.strides] });
}

/** What a node's moves are, and what is there before them. */
export interface Moves {
  readonly moves: readonly Move[];
  /** The output is filled first: with an input's only element, or zeros. */
  readonly fill?: { readonly input?: number };
}

/** A whole output that is read from one input by strides. */
export function readMoves(
  node: Node,
  { strides, start = 0 }: { readonly strides: readonly Dim[]; readonly start?: Dim | undefined },
): Moves {
  const { shape } = node.outputs[0]!;
  const to = { start: 0, strides: denseStrides(shape) };
  return { moves: [{ input: 0, sizes: shape, from: { start, strides }, to }] };
}

/** The first element of a box, given where it starts along each dim. */
export function startOf(starts: readonly Dim[], strides: readonly Dim[]): Dim {
  return starts.map((at, axis) => mul(at, strides[axis]!)).reduce(add, 0);
}
