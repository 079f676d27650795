// What a step of so many rows costs: as measured, between what was measured, or by a guess that is rather too good, so that
// it is tried. Kernels change with the number of rows, so that eight may take longer than nine; that is seen after a few
// trials, which go to twice as many rows at most each time. A figure that is old gets better by the while, and so is measured again now and then.

/** Costs of the steps of one model. */
export interface StepCosts {
  /** Milliseconds of a step; NaN as long as nothing is known. */
  of(rows: number): number;
  /** Most rows that may be tried. */
  readonly most: number;
  /** Takes in a measured step. */
  note(rows: number, ms: number): void;
}

/** Part of the first row's cost that each further one is guessed to add. */
const GUESS = 0.1;
/** Weight of a new figure that is lower, or higher: other programs make steps longer, nothing makes them shorter. */
const WEIGHT = { lower: 0.3, higher: 0.2 };
/** A figure counts as so many times what is known at most. */
const OUTLIER = 2;
/** Part of a figure that is forgotten with every step, and in all at most. */
const FORGOTTEN = { step: 0.002, most: 0.3 };

/** Costs that are measured. */
export function measuredCosts(most: number): StepCosts {
  const known = new Float64Array(most + 1), at = new Float64Array(most + 1);
  const costs = new Float64Array(most + 1).fill(NaN);
  let steps = 0, isStale = false, tried = 1;

  function figure(rows: number): number {
    const forgotten = Math.min(FORGOTTEN.most, (steps - at[rows]!) * FORGOTTEN.step);
    // No more rows are ever cheaper than one.
    return Math.max(known[1]!, known[rows]! * (1 - forgotten));
  }

  function fill(): void {
    costs[1] = known[1]!;
    let last = 1;
    for (let rows = 2; rows <= most; rows++) {
      if (known[rows] === 0) continue;
      costs[rows] = figure(rows);
      const each = (costs[rows]! - costs[last]!) / (rows - last);
      for (let i = last + 1; i < rows; i++) costs[i] = costs[last]! + each * (i - last);
      last = rows;
    }
    for (let i = last + 1; i <= most; i++) costs[i] = costs[i - 1]! + GUESS * known[1]!;
    isStale = false;
  }

  return {
    of(rows) {
      if (known[1] === 0) return NaN;
      if (isStale) fill();
      return costs[rows]!;
    },
    get most() {
      return Math.min(most, 2 * tried);
    },
    note(rows, ms) {
      const old = known[rows]! || Math.min(ms, known[1]! > 0 ? rows * known[1]! : Infinity);
      const change = Math.min(ms, OUTLIER * old) - old;
      known[rows] = old + (change < 0 ? WEIGHT.lower : WEIGHT.higher) * change;
      tried = Math.max(tried, rows);
      at[rows] = ++steps;
      isStale = true;
    },
  };
}

/** Costs that no clock has a part in: the first row's is 1. */
export function nominalCosts(): StepCosts {
  return { most: Infinity, of: (rows) => 1 + GUESS * (rows - 1), note: () => {} };
}
