// Runs sequences through an encoder: as many whole ones as fit lie one behind the other in a step, without
// padding. What comes out is handed over sequence by sequence as views that the next step overwrites.

import { adapterScales } from "./adapter_scales.ts";
import { pause } from "../pause.ts";
import type { EncoderFacts, Runtime } from "./runtime.ts";

/** A text, or a pair, in ids. */
export interface Sequence {
  readonly tokens: readonly number[];
  /** Index of the first token of the second text; none: all are of the first. */
  readonly second?: number;
  /** Indices of the tokens whose head output is wanted. */
  readonly wanted?: readonly number[];
}

/** What an encoder made of a sequence; views, valid during the call. */
export interface Encoded {
  /** f32[tokens, hidden]. */
  readonly hidden: Float32Array;
  /** f32[wanted, headWidth]. */
  readonly head: Float32Array;
}

/** A model that is an encoder. */
export interface EncoderRuntime extends Runtime {
  readonly encoder: EncoderFacts;
}

/** Options of all that encodes. */
export interface EncoderCallOptions {
  /**
   * How much each adapter counts in this call, by name; those not named count nothing. Default: the scales
   * with which the model was loaded.
   */
  readonly adapters?: Readonly<Record<string, number>>;
  /** Stops between two steps. */
  readonly signal?: AbortSignal;
}

/**
 * Encodes sequences in order.
 *
 * @param read Called once for each, with its index.
 * @throws {RangeError} On an empty or overlong sequence, on a bad id, and on an adapter that is not loaded.
 */
export async function encodeSequences(
  runtime: EncoderRuntime,
  sequences: readonly Sequence[],
  read: (encoded: Encoded, index: number) => void,
  { adapters, signal }: EncoderCallOptions = {},
): Promise<void> {
  const { executable, lock, batch, logitRows, encoder, hidden } = runtime;
  const scales = adapterScales(runtime, adapters);
  for (const sequence of sequences) check(runtime, sequence);
  for (let from = 0; from < sequences.length;) {
    signal?.throwIfAborted();
    let to = from, rows = 0, wanted = 0;
    while (to < sequences.length) {
      const { tokens, wanted: more = [] } = sequences[to]!;
      if (rows + tokens.length > batch || wanted + more.length > logitRows) break;
      rows += tokens.length;
      wanted += more.length;
      to++;
    }
    const release = await lock.acquire(signal);
    try {
      const step = sequences.slice(from, to);
      executable.setAdapterScales?.(0, scales);
      writeStep(runtime, step);
      await executable.run({ M: rows, ...encoder.head && { L: wanted } });
      const states = executable.output("hidden") as Float32Array;
      const outputs = encoder.head ? executable.output(encoder.head) as Float32Array : NONE;
      let row = 0, place = 0;
      for (const [index, sequence] of step.entries()) {
        const { tokens, wanted: asked = [] } = sequence;
        const end = row + tokens.length, last = place + asked.length;
        const views = {
          hidden: states.subarray(row * hidden, end * hidden),
          head: outputs.subarray(place * encoder.headWidth, last * encoder.headWidth),
        };
        read(views, from + index);
        row = end;
        place = last;
      }
    } finally {
      release();
    }
    from = to;
    if (from < sequences.length) await pause();
  }
}

const NONE = new Float32Array(0);

function check(
  { encoder: { maxTokens }, vocabulary, logitRows, batch }: EncoderRuntime,
  { tokens, wanted = [] }: Sequence,
): void {
  const most = Math.min(maxTokens, batch);
  if (tokens.length === 0 || tokens.length > most) {
    throw new RangeError(`Cannot encode ${tokens.length} tokens: a sequence has 1 to ${most}`);
  }
  if (wanted.length > logitRows) {
    throw new RangeError(
      `Cannot judge ${wanted.length} tokens of a sequence: load the model with logitRows: ${wanted.length}`,
    );
  }
  const bad = tokens.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= vocabulary);
  if (bad < 0) return;
  throw new RangeError(
    `Cannot compute token ${tokens[bad]} at index ${bad}: ids go from 0 to ${vocabulary - 1}`,
  );
}

function writeStep({ executable, encoder }: EncoderRuntime, step: readonly Sequence[]): void {
  const input = (name: string) => executable.input(name) as Int32Array;
  const [ids, positions, starts, ends] = ["tokens", "positions", "starts", "ends"].map(input);
  const types = encoder.hasTypes ? input("types") : undefined;
  const rows = encoder.head ? input("logit_rows") : undefined;
  let row = 0, place = 0;
  for (const { tokens, second = tokens.length, wanted = [] } of step) {
    for (const index of wanted) rows![place++] = row + index;
    starts!.fill(row, row, row + tokens.length);
    ends!.fill(row + tokens.length, row, row + tokens.length);
    for (let index = 0; index < tokens.length; index++, row++) {
      ids![row] = tokens[index]!;
      positions![row] = index;
      if (types) types[row] = index < second ? 0 : 1;
    }
  }
}
