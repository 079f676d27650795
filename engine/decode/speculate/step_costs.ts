// What a step of so many rows costs: as measured, between what was measured, or by a guess that is rather too good, so that
// it is tried: that a further row costs what a prompt's do, of which many share a step. Kernels change with the number
// of rows, so that eight may take longer than nine; that is seen after a few trials, which go to twice as many rows at
// most each time. A figure that is old gets better by the while, and so is measured again now and then.
//
// What is kept of a number of rows is how many times as long as one row they take, at the pace of the moment: other
// programs slow down all steps for a while, and one that was measured then is not to be compared with one that was not.

/** Costs of the steps of one model. */
export interface StepCosts {
  /** Milliseconds of a step; NaN as long as nothing is known. */
  of(rows: number): number;
  /** What it may take, where nothing like it was measured. */
  atMost(rows: number): number;
  /** Most rows that may be tried. */
  readonly most: number;
  /** Takes in a measured step. */
  note(rows: number, ms: number): void;
  /** Takes in a measured prompt. */
  notePrompt(rows: number, ms: number): void;
}

/** Part of the first row's cost that each further one is guessed to add where no prompt was measured. */
const GUESS = 0.1;
/**
 * Rows of a prompt that tell what a row of many costs; rows that may be tried at once when that is known; and how many
 * times as much a row of few may cost.
 */
const PROMPT = { least: 24, tried: 8, times: 3 };
/** Weight of a new figure: in the pace, from a step of one row or of several, and in what rows cost. */
const WEIGHT = { one: 0.3, several: 0.2, rows: 0.1 };
/** A figure counts as so many times what is known at most. */
const OUTLIER = 2;
/** Part of a figure that is forgotten with every step, and in all at most. */
const FORGOTTEN = { step: 0.002, most: 0.3 };

/** Costs that are measured. */
export function measuredCosts(most: number): StepCosts {
  /** By rows, in steps of one row: the mean of what was measured, how often, and in which step it was last. */
  const mean = new Float64Array(most + 1), count = new Float64Array(most + 1);
  const at = new Float64Array(most + 1);
  const costs = new Float64Array(most + 1);
  /** Milliseconds of a step of one row at present; of a row of prompts. */
  let pace = NaN, promptRow = NaN;
  let steps = 0, isStale = true, tried = 1, measured = 1;

  function fill(): void {
    let last = 1;
    costs[1] = 1;
    for (let rows = 2; rows <= most; rows++) {
      if (count[rows] === 0) continue;
      const forgotten = Math.min(FORGOTTEN.most, (steps - at[rows]!) * FORGOTTEN.step);
      // No more rows are ever cheaper than one.
      costs[rows] = Math.max(1, mean[rows]! * (1 - forgotten));
      const each = (costs[rows]! - costs[last]!) / (rows - last);
      for (let i = last + 1; i < rows; i++) costs[i] = costs[last]! + each * (i - last);
      last = rows;
    }
    const each = Math.min(1, promptRow / pace || GUESS);
    measured = last;
    for (let i = last + 1; i <= most; i++) costs[i] = costs[i - 1]! + each;
    isStale = false;
  }

  function mix(old: number, { figure, weight }: { figure: number; weight: number }): number {
    return old + weight * (Math.min(figure, OUTLIER * old) - old);
  }

  return {
    of(rows) {
      if (isStale) fill();
      return pace * costs[rows]!;
    },
    atMost(rows) {
      const known = this.of(Math.min(rows, measured));
      const each = Math.min(pace, PROMPT.times * promptRow || pace);
      return known + Math.max(0, rows - measured) * each;
    },
    get most() {
      return Math.min(most, Math.max(2 * tried, promptRow > 0 ? PROMPT.tried : 0));
    },
    note(rows, ms) {
      isStale = true;
      steps++;
      if (!(pace > 0)) {
        if (rows === 1) pace = ms;
        return;
      }
      if (rows > 1) {
        const weight = Math.max(WEIGHT.rows, 1 / ++count[rows]!);
        mean[rows] = mix(mean[rows] || rows / OUTLIER, { figure: ms / pace, weight });
        tried = Math.max(tried, rows);
        at[rows] = steps;
      }
      pace = rows === 1
        ? mix(pace, { figure: ms, weight: WEIGHT.one })
        : mix(pace, { figure: ms / mean[rows]!, weight: WEIGHT.several });
    },
    notePrompt(rows, ms) {
      if (rows < PROMPT.least) return;
      promptRow = promptRow > 0 ? Math.min(promptRow, ms / rows) : ms / rows;
      isStale = true;
    },
  };
}

/** Costs that no clock has a part in: the first row's is 1. */
export function nominalCosts(): StepCosts {
  const of = (rows: number) => 1 + GUESS * (rows - 1);
  return { most: Infinity, of, atMost: of, note() {}, notePrompt() {} };
}
