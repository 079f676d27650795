// Some waves of a program at a time: a head of its own for each range, which shares instructions, counters and times with
// the whole. A wave is what stands between two barriers, so whoever runs all ranges in order has run the program.

import { INSTRUCTION, LINE, PROGRAM } from "./layout.ts";
import type { Machine } from "./machine.ts";

/** Some waves of a program. */
export interface WaveRange {
  readonly first: number;
  readonly count: number;
}

/** A program that is in memory. */
export interface RangedProgram {
  /** The first instruction of each wave, and their number. */
  readonly starts: readonly number[];
  /** Addresses of instructions, of the lines of counters, and of times; 0: none are taken. */
  readonly code: number;
  readonly counters: number;
  readonly times: number;
  /** A view of the lines. */
  readonly words: Uint32Array;
  readonly alone: boolean;
}

/** Runs ranges. */
export interface Ranges {
  /** Runs one; `apply` is called when operands may be changed. */
  run(range: WaveRange, apply: (() => void) | undefined): void;
  /** Gives their memory back, when no thread looks at any program. */
  drop(): void;
}

/** Heads that are kept, beside one for each wave. */
const MOST_HEADS = 256;

/** Makes what runs ranges of a program. */
export function createRanges(
  machine: Machine,
  { starts, code, counters, times, words, alone }: RangedProgram,
): Ranges {
  const count = starts.at(-1)!;
  const heads = new Map<number, number>();

  function headOf({ first, count: some }: WaveRange): number {
    const key = first * starts.length + some, known = heads.get(key);
    if (known !== undefined) return known;
    if (heads.size >= MOST_HEADS + starts.length) drop();
    const from = starts[first]!, own = starts[first + some]! - from;
    const head = machine.allocate(PROGRAM.BYTES), header = machine.u32(head, PROGRAM.BYTES >> 2);
    header[PROGRAM.COUNT >> 2] = header[PROGRAM.LINES >> 2] = own;
    header[PROGRAM.CODE >> 2] = code + from * INSTRUCTION.BYTES;
    header[PROGRAM.COUNTERS >> 2] = counters + from * LINE;
    header[PROGRAM.TIMES >> 2] = times && times + 8 * from;
    heads.set(key, head);
    return head;
  }

  function drop(): void {
    // A thread that comes late may still look at one.
    machine.settle();
    for (const head of heads.values()) machine.release(head);
    heads.clear();
  }

  return {
    run(range, apply) {
      // A thread that comes late counts by operands, and the counters of other waves keep the number of its run.
      if (apply) machine.settle();
      const { first, count: some } = range, end = starts[first + some]!;
      const clock = times && end < count ? machine.f64(times, count + 1) : undefined;
      const next = clock?.[end];
      if (clock) clock[end] = 0;
      machine.run(headOf(range), () => {
        // Waves count what is finished behind the counters of all instructions.
        for (let wave = first; wave < first + some; wave++) {
          words[(count + wave) * LINE >> 2] = 0;
        }
        apply?.();
      }, alone);
      if (!clock) return;
      // A head has its time of waiting behind those of its own instructions.
      clock[count]! += clock[end]!;
      clock[end] = next!;
    },
    drop,
  };
}
