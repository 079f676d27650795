// Who gets how many rows of a step, when many ask for some: a pure rule, so that what it promises can be tested without
// a model. A step has so many rows, and so many of them may have logits. In this order:
//
// 1. whoever was passed over PATIENCE times in a row, the longest first: at most SHORT rows each
// 2. short runs: the next token of an answer, the few rows of a check, a short prompt
// 3. long prompts share what is left by their priority; what one does not need goes to the others
//
// So answers go on in every step while prompts are read beside them, and a short query that meets a long prompt is read
// in the very next step. Nobody is passed over more than PATIENCE times and once more for every step that the runs
// before it in 1 fill: where all short runs together fit a step, at most PATIENCE times.

/** A run of at most so many rows is short. */
export const SHORT = 16;
/** Whoever was passed over so many times comes before all others. */
export const PATIENCE = 4;

/** One who asks for rows. */
export interface Asking {
  /** Rows that are left of its run. */
  readonly rows: number;
  /** Of so many of the last of them something is wanted. */
  readonly wanted: number;
  /** A level more doubles the share of a long prompt. */
  readonly priority: number;
  /** How many steps in a row gave it nothing; is counted here. */
  waited: number;
  /** What the step takes of its rows: the result. */
  taken: number;
}

/** What a step holds. */
export interface StepRoom {
  /** Rows of it. */
  readonly rows: number;
  /** Rows of it of which something may be wanted. */
  readonly wanted: number;
}

/** Shares a step's rows; those who ask stand in the order in which they are to be served, best first. */
export function shareStep(asking: readonly Asking[], room: StepRoom): void {
  const left = { ...room };
  for (const one of asking) one.taken = 0;
  for (let waited = mostWaited(asking); waited >= PATIENCE; waited--) {
    for (const one of asking) if (one.waited === waited) give(one, SHORT, left);
  }
  for (const one of asking) if (one.taken === 0 && one.rows <= SHORT) give(one, SHORT, left);
  shareRest(asking, left);
  for (const one of asking) one.waited = one.taken > 0 ? 0 : one.waited + 1;
}

function mostWaited(asking: readonly Asking[]): number {
  let most = 0;
  for (const { waited } of asking) most = Math.max(most, waited);
  return most;
}

/** Long runs get rows by their weight, as often as somebody still takes some. */
function shareRest(asking: readonly Asking[], left: Left): void {
  for (let given = 1; given > 0 && left.rows > 0;) {
    given = 0;
    let weights = 0;
    for (const one of asking) if (takesMore(one, left)) weights += weightOf(one);
    const each = left.rows / weights;
    for (const one of asking) {
      if (left.rows > 0 && takesMore(one, left)) {
        given += give(one, Math.max(1, Math.floor(each * weightOf(one))), left);
      }
    }
  }
}

type Left = { rows: number; wanted: number };

function weightOf({ priority }: Asking): number {
  return 2 ** priority;
}

function takesMore(one: Asking, left: Left): boolean {
  return one.rows > SHORT && one.taken < one.rows && rowsFor(one, left) > 0;
}

/** How many more rows of a run a step can take: short of the first wanted one for which there is no room. */
function rowsFor({ rows, wanted, taken }: Asking, left: Left): number {
  const plain = Math.max(0, rows - wanted - taken);
  return Math.min(rows - taken, left.rows, plain + left.wanted);
}

/** Gives at most so many rows; how many it were. */
function give(one: Asking, most: number, left: Left): number {
  const { rows, wanted, taken } = one;
  const count = Math.min(most, rowsFor(one, left));
  if (count <= 0) return 0;
  const wantedOf = (end: number) => Math.max(0, end - (rows - wanted));
  one.taken += count;
  left.rows -= count;
  left.wanted -= wantedOf(taken + count) - wantedOf(taken);
  return count;
}
