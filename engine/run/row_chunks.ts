// Steps of many rows over groups of devices that follow each other: where no other step is under way, the rows go in
// chunks, each a run of its own, so that a group works on one while the next group is at the chunk before. A prompt alone
// keeps all groups at work in this way. Each group takes runs in the order in which they come, so a chunk finds the keys
// and values of those before it. What is wanted of a step is all in its last chunk.

import { type Step, type StepLane, WANTED } from "./step.ts";

/** Fewest rows of a chunk: with fewer, a device reads its weights for too little. */
export const LEAST_ROWS = 64;

/** Where the chunks of a step begin, of at most so many; the rows that want something are in one. */
export function chunkStarts({ count, wanted }: Step, most: number): number[] {
  const chunks = Math.max(1, Math.min(most, Math.floor(count / LEAST_ROWS)));
  const rows = Math.ceil(count / chunks), starts = [];
  let first = 0;
  while (first < count && wanted[first] === WANTED.nothing) first++;
  for (let start = 0; start === 0 || start <= first && start < count; start += rows) {
    starts.push(start);
  }
  return starts;
}

interface RowRange {
  readonly from: number;
  readonly to?: number | undefined;
}

/** Some rows of a step, as a step; default: all behind `from`. */
export function stepRows(step: Step, { from, to = step.count }: RowRange): Step {
  const part = <T extends Int32Array | Float32Array>(column: T) => column.subarray(from, to) as T;
  return {
    ...{ ...step, count: to - from, feedback: 0 },
    ...{ tokens: part(step.tokens), positions: part(step.positions), slots: part(step.slots) },
    ...{ types: part(step.types), sources: part(step.sources), wanted: part(step.wanted) },
    offsets: step.offsets.map(part),
    scales: step.scales.map(part),
  };
}

/**
 * Lanes that run steps in chunks where no other of them is under way.
 *
 * @param helpers Run the chunks before the last one.
 */
export function inChunks(lanes: readonly StepLane[], helpers: readonly StepLane[]): StepLane[] {
  let underWay = 0;
  const runChunks = async (
    lane: StepLane,
    step: Step,
    { starts, signal }: { readonly starts: readonly number[]; readonly signal?: AbortSignal },
  ) => {
    underWay++;
    try {
      const runs = starts.map(async (start, i) => {
        const isLast = i === starts.length - 1;
        const chunk = starts.length > 1 ? stepRows(step, { from: start, to: starts[i + 1] }) : step;
        await (isLast ? lane : helpers[i]!).run(chunk, signal);
      });
      for (const ran of await Promise.allSettled(runs)) {
        if (ran.status === "rejected") throw ran.reason;
      }
    } finally {
      underWay--;
    }
  };
  return lanes.map((lane): StepLane => {
    // The row of the step at hand that is the first of the lane's own.
    let first = 0;
    return {
      ...lane,
      best: (row) => lane.best(row - first),
      logits: (row, count) => lane.logits(row - first, count),
      ...lane.vectors && { vectors: (row, count) => lane.vectors!(row - first, count) },
      hidden: (row, count) => lane.hidden(row - first, count),
      run(step, signal) {
        const starts = underWay > 0 ? [0] : chunkStarts(step, helpers.length + 1);
        first = starts.at(-1)!;
        return runChunks(lane, step, { starts, ...signal && { signal } });
      },
    };
  });
}
