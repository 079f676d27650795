// WASM kernels of the ops that put elements elsewhere. Each is one box copied to another, or a few such:
// an op says which boxes, and here it becomes instructions.

import type { Operand, WasmKernel, WasmLowering } from "../kernel.ts";
import { add, type Dim, mul, product } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { getOp } from "../../../ops/mod.ts";
import { inBytes, movableBytes, numbered } from "./strided.ts";
import { countOf, emit, outputAddress } from "./lower.ts";
import { type Move, moveLoop, type Moves } from "../../../ops/moves.ts";

const RANK = 6;

function movesOf(node: Node): Moves | undefined {
  return getOp(node.op).moves?.(node);
}

/** The kernel of an op whose nodes are moves. */
export function moveKernel(name: string): WasmKernel {
  return {
    name,
    when({ node }) {
      if (movableBytes(node.outputs[0]!) === undefined) return false;
      const moves = movesOf(node)?.moves;
      return moves !== undefined && moves.every((move) => moveLoop(move).sizes.length <= RANK);
    },
    lower(lowering) {
      const { node } = lowering;
      const { moves, fill } = movesOf(node)!;
      const bytes = movableBytes(node.outputs[0]!)!;
      const y = outputAddress(lowering);
      if (fill) {
        const value = fill.input === undefined ? 0 : lowering.address(node.inputs[fill.input]!);
        emit(lowering, {
          name: "fill",
          operands: { value, y, bytes, count: countOf(node.outputs[0]!) },
        });
      }
      for (const move of moves) emitMove(lowering, move, bytes);
    },
  };
}

function emitMove(lowering: WasmLowering, move: Move, bytes: number): void {
  const { node } = lowering;
  const { sizes, strides } = moveLoop(move);
  const [from, to] = strides.map((operand) => inBytes(operand, bytes)) as [Dim[], Dim[]];
  const place = (address: number, start: Dim): Operand => add(address, mul(start, bytes));
  const ends = {
    x: place(lowering.address(node.inputs[move.input]!), move.from.start),
    y: place(outputAddress(lowering), move.to.start),
  };
  const operands = {
    ...ends,
    ...numbered("n", sizes, { rank: RANK, missing: 1 }),
    ...numbered("x", from, { rank: RANK, missing: 0 }),
    ...numbered("y", to, { rank: RANK, missing: 0 }),
  };
  const isTurned = bytes === 4 && from.at(-2) === 4 && from.at(-1) !== 4 && to.at(-1) === 4;
  if (isTurned) emit(lowering, { name: "move_turned", operands });
  else emit(lowering, { name: "move", operands: { ...operands, bytes } });
}

/** Sizes before and behind an axis, multiplied. */
export function aroundDims(
  shape: readonly Dim[],
  axis: number,
): { readonly outer: Dim; readonly inner: Dim } {
  return { outer: product(shape.slice(0, axis)), inner: product(shape.slice(axis + 1)) };
}
