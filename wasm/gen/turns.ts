// Text by which a kernel takes two tiles in turns, 256 columns of each, where `apart` is not 0. The tiles lie far from each
// other in memory: processors fetch ahead of each stream, so two keep more lines under way than one
// (bench/results/kernels.md), where trials find so (assembly/machine/read_trial.ts). Kernels of several rows, which are slower than memory, take one at a time.

/** Bytes of scales of the cells of a turn, where blocks are cells: of 256 columns. */
export const TURN_SCALES = 32;

/** The name of a sum of the tile that waits. */
function waiting(sum: string): string {
  return `other_${sum}`;
}

/** Statements before the first turn: `w` is the first tile, the other one lies `apart` behind it. */
export function turnsStart(sums: readonly string[]): string[] {
  return [
    "let other = w + apart, isFirst = true;",
    ...sums.map((sum) => `let ${waiting(sum)} = f32x4.splat(0);`),
  ];
}

/**
 * Statements after a turn, whose activations' scales began at `start`: the other tile is next, after the first one at the
 * same columns.
 *
 * @param back Statements that take pointers back by `done` bytes of scales.
 */
export function turnEnd(sums: readonly string[], back: readonly string[]): string[] {
  return [
    "if (apart) {",
    "const at = w; w = other; other = at;",
    ...sums.map((sum) => `const was_${sum} = ${sum}; ${sum} = ${waiting(sum)};`),
    ...sums.map((sum) => `${waiting(sum)} = was_${sum};`),
    "if (isFirst) {",
    "const done = scale - start;",
    "scale = start;",
    ...back,
    "}",
    "isFirst = !isFirst;",
    "}",
  ];
}

/** Statements after the last turn: sums of both tiles go to `to`, those of the second `outApart` behind. */
export function turnsStores(sums: readonly string[], to: (sum: string) => string): string[] {
  return [
    ...sums.map((sum) => `v128.store(${to(sum)}, ${sum});`),
    "if (apart) {",
    ...sums.map((sum) => `v128.store(outApart + ${to(sum)}, ${waiting(sum)});`),
    "}",
  ];
}
