// fuse_norm: products of narrow rows normalise their input by themselves, where the device has a kernel for that:
//   matmul(norm(x, g) to q8, W, b) → matmul(x, W, b) of the normed x, with a gate or not.
//   matmul(layer norm(x, g, s), W, b, r) → matmul(x, W, b, r) of the centred x, with a function or not.
// Rows of 8 bit are normalised whole by every workgroup. For rows up to those of an 8B model that costs less than a dispatch
// of its own (bench/results/kernels.md); for a vocabulary of outputs it does not. Few rows of floats are centred while they
// are multiplied (gpu/kernels/matmul/centred.ts); many are normed by the product before (fuse_norm_behind.ts).

import type { Node } from "../../graph/graph.ts";
import { isLayerNorm, isRmsNorm } from "../../ops/records/norm.ts";
import type { MatchContext } from "./match.ts";
import { defineReplacement, draftOf, makeDraft, type NodeDraft, type Pass } from "./pass.ts";

/** Widest rows for which it pays. */
const MOST_COLUMNS = 4096;
const MOST_OUTPUTS = 32_768;
/** Rows of weights come in this many, so that results are whole groups. */
const GROUP_ROWS = 64;

/** Moves norms into the products behind them. */
export const fuseNorm: Pass = defineReplacement({
  name: "fuse_norm",
  reads: {
    matmul: ["gate", "to", "activation", "alpha"],
    norm: ["epsilon", "base", "centred", "to"],
  },
  suits: ({ fusesNeighbours }) => fusesNeighbours !== false,
  match(node, seen, { takes, hasFewRows = true }) {
    const normed = match(node, seen);
    if (normed?.attributes.centred && !hasFewRows) return undefined;
    return normed && takes(normed) ? normed : undefined;
  },
  replace: makeDraft,
});

function match({ op, inputs, attributes }: Node, seen: MatchContext): NodeDraft | undefined {
  const [rows, weight, bias, residual] = inputs;
  const norm = rows && seen.made.get(rows);
  if (op !== "matmul" || norm?.op !== "norm" || seen.uses.get(rows!) !== 1) return undefined;
  const [x, gain, shift] = norm.inputs;
  const { epsilon, base } = norm.attributes as Readonly<Record<string, number>>;
  if (isLayerNorm(norm)) {
    const given = { ...attributes, centred: true, epsilon: epsilon! };
    return draftOf("matmul", { inputs: [x, weight, bias, residual, gain, shift], given });
  }
  if (!isRmsNorm(norm, "q8")) return undefined;
  const [outputs, columns] = weight!.shape as [number, number];
  const fits = columns <= MOST_COLUMNS && outputs <= MOST_OUTPUTS && columns % GROUP_ROWS === 0 &&
    outputs % GROUP_ROWS === 0 && weight!.tensor;
  if (!fits) return undefined;
  const given = { ...attributes, normed: true, epsilon: epsilon!, base: base! };
  return draftOf("matmul", { inputs: [x, weight, bias, residual, gain], given });
}
