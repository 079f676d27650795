// Models whose rotations depend on how long the whole text is (longrope): when a text outgrows the length
// where other frequencies begin, or is rewound below it, every cached key is rotated wrongly. This wraps
// an executable of such a model: it keeps the tokens of each slot, writes the input `spans`, and runs the
// earlier tokens of a slot again when the frequencies change. Sessions and batches above know nothing
// of it. Any other model's executable is handed through untouched.

import { UnsupportedError } from "../errors.ts";
import type { DimEnv } from "../graph/dim/mod.ts";
import type { Graph } from "../graph/graph.ts";
import type { Backend, PreparedPlan } from "./backend.ts";

const SPANS = "spans";

/** What is known of a slot. */
interface Timeline {
  readonly tokens: Int32Array;
  /** Leading rows that came from a saved state: their tokens are not known. */
  restored: number;
  /** Whether the cached rows were rotated for a long text. */
  isLong: boolean;
}

/** Rows of one slot in a step. */
interface Rows {
  first: number;
  end: number;
}

/** A backend whose executables rotate again by themselves. */
export function withSpans(backend: Backend): Backend {
  return {
    ...backend,
    async prepare(plan, options) {
      const executable = await backend.prepare(plan, options);
      const beyond = changeOf(plan.graph);
      return beyond === undefined ? executable : rotateAgain(executable, beyond);
    },
  };
}

/** Length beyond which a graph rotates otherwise; undefined if it never does. */
function changeOf({ inputs, nodes }: Graph): number | undefined {
  const spans = inputs.find(({ name }) => name === SPANS);
  return spans && nodes.find((node) => node.inputs.includes(spans))?.attributes.beyond as number;
}

function rotateAgain(inner: PreparedPlan, beyond: number): PreparedPlan {
  const { limits, graph } = inner.plan;
  const capacity = graph.states[0]!.shape[0] as number;
  const timelines = new Map<number, Timeline>();
  const [tokens, positions, slots, spans] = ["tokens", "positions", "slots", SPANS].map((name) =>
    inner.input(name) as Int32Array
  ) as [Int32Array, Int32Array, Int32Array, Int32Array];

  function rowsBySlot(count: number): Map<number, Rows> {
    const found = new Map<number, Rows>();
    for (let row = 0; row < count; row++) {
      const position = positions[row]!;
      const rows = found.get(slots[row]!) ?? { first: position, end: position + 1 };
      rows.first = Math.min(rows.first, position);
      rows.end = Math.max(rows.end, position + 1);
      found.set(slots[row]!, rows);
    }
    return found;
  }

  /** Runs the first `count` tokens of a slot again, as part of a text of `span` tokens. */
  async function runAgain(slot: number, timeline: Timeline, count: number, span: number) {
    if (Math.min(timeline.restored, count) > 0) {
      throw new UnsupportedError(
        `a restored session cannot go across ${beyond} tokens, where the rotations of ${graph.name} change`,
        { remedy: "Rewind it to 0 and give it the whole text" },
      );
    }
    const most = limits.M!;
    for (let from = 0; from < count; from += most) {
      const rows = Math.min(most, count - from);
      for (let row = 0; row < rows; row++) {
        tokens[row] = timeline.tokens[from + row]!;
        positions[row] = from + row;
        slots[row] = slot;
        spans[row] = span;
      }
      await inner.run({ M: rows, L: 0 });
    }
    timeline.isLong = span > beyond;
  }

  async function run(bindings: DimEnv): Promise<void> {
    const count = bindings.M!;
    const step = [tokens, positions, slots].map((view) => view.slice(0, count));
    const bySlot = rowsBySlot(count);
    for (const [slot, { first, end }] of bySlot) {
      const timeline = timelines.get(slot);
      if (!timeline || end > capacity) continue; // the device names what is wrong
      timeline.restored = Math.min(timeline.restored, first);
      const isLong = end > beyond;
      if (isLong !== timeline.isLong) await runAgain(slot, timeline, first, end);
      timeline.isLong = isLong;
    }
    [tokens, positions, slots].forEach((view, i) => view.set(step[i]!));
    for (let row = 0; row < count; row++) spans[row] = bySlot.get(slots[row]!)!.end;
    await inner.run(bindings);
    for (let row = 0; row < count; row++) {
      timelines.get(slots[row]!)!.tokens[positions[row]!] = tokens[row]!;
    }
  }

  return {
    ...inner,
    run,
    openSlot() {
      const slot = inner.openSlot();
      timelines.set(slot, { tokens: new Int32Array(capacity), restored: 0, isLong: false });
      return slot;
    },
    closeSlot(slot) {
      timelines.delete(slot);
      inner.closeSlot(slot);
    },
    async readState(slot, count) {
      // What is saved is rotated as its length says, so that reading it back needs no more than the length.
      const timeline = timelines.get(slot);
      if (timeline && timeline.isLong !== count > beyond) {
        await runAgain(slot, timeline, count, count);
      }
      return await inner.readState(slot, count);
    },
    async writeState(slot, count, bytes) {
      await inner.writeState(slot, count, bytes);
      const timeline = timelines.get(slot);
      if (timeline) Object.assign(timeline, { restored: count, isLong: count > beyond });
    },
  };
}
