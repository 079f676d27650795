// Models whose rotations depend on how long the whole text is (longrope): when a text outgrows the length
// where other frequencies begin, or is rewound below it, every cached key is rotated wrongly. This stands before the
// steps of such a model: it keeps the tokens of each slot, says of each row whether its text is a long one, and runs the
// earlier tokens of a slot again when that changes. Sessions and batches above know nothing of it.

import { UnsupportedError } from "../errors.ts";
import type { Plan } from "../plan/plan.ts";
import { addRows, clearStep, createStep, type Step } from "./step.ts";

/** What is known of a slot. */
interface Timeline {
  readonly slot: number;
  readonly tokens: Int32Array;
  /** Of adapters. */
  readonly scales: number[];
  /** Leading rows that came from a saved state: their tokens are not known. */
  restored: number;
  /** Whether the cached rows were rotated for a long text. */
  isLong: boolean;
  /** Positions that the step at hand has of it. */
  first: number;
  end: number;
}

/** Keeps the rotations of all slots. */
export interface SpanKeeper {
  open(slot: number): void;
  close(slot: number): void;
  /** Runs a step, after what it changes. */
  run(step: Step): Promise<void>;
  /** Says how long the text of each row is, as far as it matters: decoding does not change it from step to step. */
  write(spans: Int32Array, step: Step): void;
  /** What is saved is rotated as its length says, so that reading it back needs no more than the length. */
  beforeRead(slot: number, count: number): Promise<void>;
  /** To be called before the rows of a slot are those of another one too. */
  fork(from: number, to: number): void;
  /** To be called when rows of a saved state are in a slot. */
  restored(slot: number, count: number): void;
}

/** What it is made of. */
export interface SpanParts {
  /** Length from which on texts are long. */
  readonly beyond: number;
  readonly adapters: number;
  /** Runs a step as it is. */
  readonly compute: (step: Step) => void | Promise<void>;
}

/** Makes it for all slots of a plan. */
export function createSpanKeeper(
  { graph, limits }: Plan,
  { beyond, adapters, compute }: SpanParts,
): SpanKeeper {
  const capacity = graph.states[0]!.shape[0] as number;
  const timelines = new Map<number, Timeline>();
  const again = createStep(limits.M!, adapters);
  const touched: Timeline[] = [];

  /** Runs the first `count` tokens of a slot again. */
  async function runAgain(timeline: Timeline, count: number, isLong: boolean): Promise<void> {
    if (Math.min(timeline.restored, count) > 0) {
      throw new UnsupportedError(
        `a restored session cannot go across ${beyond} tokens, where the rotations of ${graph.name} change`,
        { remedy: "Rewind it to 0 and give it the whole text" },
      );
    }
    const { tokens, scales, slot } = timeline;
    timeline.isLong = isLong;
    try {
      for (let from = 0; from < count; from += limits.M!) {
        const to = Math.min(from + limits.M!, count);
        clearStep(again);
        addRows(again, { tokens, from, to, position: from, slot, scales });
        await compute(again);
      }
    } catch (error) {
      timeline.isLong = !isLong;
      throw error;
    }
  }

  function touch({ slots, positions, count }: Step): void {
    touched.length = 0;
    for (let row = 0; row < count; row++) {
      const timeline = timelines.get(slots[row]!), position = positions[row]!;
      if (!timeline || position >= capacity) continue; // the device names what is wrong
      if (!touched.includes(timeline)) {
        touched.push(timeline);
        timeline.first = timeline.end = position;
      }
      timeline.first = Math.min(timeline.first, position);
      timeline.end = Math.max(timeline.end, position + 1);
    }
  }

  return {
    async run(step) {
      touch(step);
      for (const timeline of touched) {
        timeline.restored = Math.min(timeline.restored, timeline.first);
        const isLong = timeline.end > beyond;
        if (isLong !== timeline.isLong) await runAgain(timeline, timeline.first, isLong);
      }
      await compute(step);
      for (let row = 0; row < step.count; row++) {
        const { tokens, scales } = timelines.get(step.slots[row]!)!;
        tokens[step.positions[row]!] = step.tokens[row]!;
        for (let i = 0; i < adapters; i++) scales[i] = step.scales[i]![row]!;
      }
    },
    write(spans, { slots, count }) {
      for (let row = 0; row < count; row++) {
        spans[row] = timelines.get(slots[row]!)?.isLong ? beyond + 1 : beyond;
      }
    },
    open: (slot) =>
      void timelines.set(slot, {
        ...{ slot, tokens: new Int32Array(capacity), scales: [] },
        ...{ restored: 0, isLong: false, first: 0, end: 0 },
      }),
    close: (slot) => void timelines.delete(slot),
    async beforeRead(slot, count) {
      const timeline = timelines.get(slot), isLong = count > beyond;
      if (timeline && timeline.isLong !== isLong) await runAgain(timeline, count, isLong);
    },
    fork(from, to) {
      const { tokens, scales, restored, isLong } = timelines.get(from)!;
      const own = { tokens: tokens.slice(), scales: [...scales], restored, isLong };
      timelines.set(to, { ...own, slot: to, first: 0, end: 0 });
    },
    restored(slot, count) {
      const timeline = timelines.get(slot);
      if (timeline) Object.assign(timeline, { restored: count, isLong: count > beyond });
    },
  };
}
