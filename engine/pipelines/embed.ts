// embed(): one vector a text. Rows of the last layer become one by pooling; vectors have length 1 unless the
// caller wants them as they are. Texts of one call are computed many at a time.

import { type EncoderCallOptions, encodeSequences } from "../decode/encoder_run.ts";
import type { Pooling } from "../decode/runtime.ts";
import type { Model } from "../decode/model.ts";
import { encoderOf, maskIdOf, tokensOf } from "./encoder_text.ts";
import { meanOfRows, unitVector } from "./vectors.ts";

/** Options of {@linkcode embed}. */
export interface EmbedOptions extends EncoderCallOptions {
  /**
   * How the rows of a text become one vector: `mean` of all, its first row (`cls`), its last, or that of its
   * mask token. Default: what the model's files say, else `mean`.
   */
  readonly pooling?: Pooling;
  /** Whether vectors are scaled to length 1, so that their product is the cosine. Default true. */
  readonly normalize?: boolean;
}

/**
 * Vectors of texts, near each other where the texts mean alike.
 *
 * A text longer than the model takes (`max_seq_length`, else its context) is cut.
 *
 * @param model An encoder.
 * @param texts Texts, or token ids with special tokens as the model wants them.
 * @returns One vector for each text, as wide as the model.
 * @throws {UnsupportedError} If the model is no encoder.
 * @throws {RangeError} On a bad option, on bad ids, or where `mask` finds no mask token.
 *
 * @example
 * ```ts
 * import { embed, load } from "@troodon/troodon";
 * import { assertAlmostEquals } from "@std/assert";
 *
 * using model = await load("tests/fixtures/models/bert");
 * const [a, b] = await embed(model, [[1, 15, 47, 2], [1, 30, 2]]); // ids; texts where it has a tokenizer
 * assertAlmostEquals(Math.hypot(...a!), 1, 1e-6);
 * console.log(a!.reduce((sum, x, i) => sum + x * b![i]!, 0)); // cosine
 * ```
 */
export async function embed(
  model: Model,
  texts: readonly (string | readonly number[])[],
  options: EmbedOptions = {},
): Promise<Float32Array[]> {
  const runtime = encoderOf(model, { use: "embed texts" });
  const { pooling = runtime.encoder.pooling, normalize = true } = options;
  if (!Object.hasOwn(POOLINGS, pooling)) {
    throw new RangeError(
      `Cannot use pooling "${pooling}": it is one of ${Object.keys(POOLINGS).join(", ")}`,
    );
  }
  const sequences = texts.map((text) => ({ tokens: tokensOf(runtime, text) }));
  const maskId = pooling === "mask" ? maskIdOf(runtime) : -1;
  const vectors: Float32Array[] = [];
  await encodeSequences(runtime, {
    sequences,
    read: ({ hidden }, index) => {
      const vector = POOLINGS[pooling]({
        hidden,
        width: runtime.hidden,
        tokens: sequences[index]!.tokens,
        maskId,
      });
      vectors.push(normalize ? unitVector(vector) : vector);
    },
  }, options);
  return vectors;
}

interface Rows {
  readonly hidden: Float32Array;
  readonly width: number;
  readonly tokens: readonly number[];
  readonly maskId: number;
}

const POOLINGS: Readonly<Record<Pooling, (rows: Rows) => Float32Array>> = {
  mean: ({ hidden, width, tokens }) => meanOfRows(hidden.subarray(0, tokens.length * width), width),
  cls: (rows) => rowAt(rows, 0),
  last: (rows) => rowAt(rows, rows.tokens.length - 1),
  mask: (rows) => {
    const index = rows.tokens.indexOf(rows.maskId);
    if (index < 0) throw new RangeError('Cannot use pooling "mask": the text has no mask token');
    return rowAt(rows, index);
  },
};

function rowAt({ hidden, width }: Rows, row: number): Float32Array {
  return hidden.slice(row * width, (row + 1) * width);
}
