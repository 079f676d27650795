// Runs sequences through an encoder: as many whole ones as fit lie one behind the other in a step, without
// padding. What comes out is handed over sequence by sequence as views that the next step overwrites.

import { adapterScales } from "./adapter_scales.ts";
import { addRows, type Step, WANTED } from "../run/step.ts";
import type { EncoderFacts, Runtime } from "./runtime.ts";

/** A text, or a pair, in ids. */
export interface Sequence {
  readonly tokens: readonly number[];
  /** Index of the first token of the second text; none: all are of the first. */
  readonly second?: number;
  /** Indices of the tokens whose head output is wanted, rising. */
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

/**
 * Options of all that encodes.
 * @category Encoders
 */
export interface EncoderCallOptions {
  /**
   * How much each adapter counts in this call, by name; those not named count nothing. Default: the scales
   * with which the model was loaded.
   */
  readonly adapters?: Readonly<Record<string, number>>;
  /** Stops between two pieces of a long step, with its reason. */
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
  { sequences, read }: {
    readonly sequences: readonly Sequence[];
    readonly read: (encoded: Encoded, index: number) => void;
  },
  { adapters, signal }: EncoderCallOptions = {},
): Promise<void> {
  const { batch, logitRows, encoder } = runtime;
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
    const step = sequences.slice(from, to), first = from;
    await runtime.queue.run({
      signal,
      write: (table) =>
        step.forEach((sequence, text) => addText(table, sequence, { text, scales })),
      read(executable) {
        let row = 0;
        for (const [index, { tokens, wanted: [asked, ...more] = [] }] of step.entries()) {
          const headOf = encoder.head === "vectors" ? executable.vectors : executable.logits;
          const head = encoder.head && asked !== undefined
            ? headOf!(row + asked, 1 + more.length)
            : NONE;
          read({ hidden: executable.hidden(row, tokens.length), head }, first + index);
          row += tokens.length;
        }
      },
    });
    from = to;
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

function addText(
  step: Step,
  { tokens, second = tokens.length, wanted = [] }: Sequence,
  { text, scales }: { readonly text: number; readonly scales: readonly number[] },
): void {
  const start = step.count;
  addRows(step, { tokens, slot: text, scales, wanted: WANTED.hidden, wantedRows: tokens.length });
  step.types.fill(1, start + second, step.count);
  for (const index of wanted) step.wanted[start + index] = WANTED.logits;
}
