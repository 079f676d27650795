// Text for four activation rows that lie interleaved (assembly/matmul/fours.ts): a vector has four columns of each of the
// four, and turned by 0, 1, 2 and 3 rows it meets a vector of four weight rows in all sixteen ways. That is one load, with
// one check of bounds, and three shuffles, where rows that lie by themselves need four of both or a splatted load each;
// and only one vector of activations is alive at a time.
//   of turn k: lane j is weight row j times activation row (j + k) % 4
// Two rows lie there twice, so two turns are enough.

/** Turns of a vector of four rows, and of two that lie there twice. */
export const TURNS: readonly number[] = [0, 1, 2, 3];
export const TWO_TURNS: readonly number[] = [0, 1];

/** The vector `name` turned by `k` rows. */
export function turned(name: string, k: number): string {
  if (k === 0) return name;
  return `v128.shuffle<i32>(${name}, ${name}, ${TURNS.map((lane) => (lane + k) & 3).join(", ")})`;
}

/** Statements that define {name}0 and so on, what `value` is in its turns. */
export function allTurns(name: string, value: string, turns: readonly number[]): string[] {
  return turns.map((k) => `const ${name}${k} = ${k === 0 ? value : turned(`${name}0`, k)};`);
}

/** Vectors of four weight rows, one for each activation row, out of the sums of all turns. */
export function untwisted(sums: readonly string[]): string[] {
  if (sums.length === 2) {
    return TWO_TURNS.map((r) => `v128.shuffle<i32>(${sums[r]}, ${sums[1 - r]}, 0, 5, 2, 7)`);
  }
  // Of each row lanes 0 and 1 are those of one blend, 2 and 3 of another: each is taken twice.
  const blend = (even: number) =>
    `v128.shuffle<i32>(${sums[even]}, ${sums[(even - 1) & 3]}, 0, 5, 2, 7)`;
  return TURNS.map((r) => `v128.shuffle<i32>(${blend(r)}, ${blend((r + 2) & 3)}, 0, 1, 6, 7)`);
}
