// embed(): one vector a text. Rows of the last layer become one by pooling; vectors have length 1 unless the
// caller wants them as they are. Texts of one call are computed many at a time by an encoder, one after the other by
// a decoder (Qwen3-Embedding, and any language model).

import {
  type EncoderCallOptions,
  type EncoderRuntime,
  encodeSequences,
} from "../decode/encoder_run.ts";
import { LoadedModel } from "../decode/loaded_model.ts";
import type { Model } from "../decode/model.ts";
import type { Pooling, Runtime, WholeTexts } from "../decode/runtime.ts";
import type { Session } from "../decode/session.ts";
import { UnsupportedError } from "../errors.ts";
import { checkTexts, encoderOf, maskIdOf, tokensOf } from "./encoder_text.ts";
import { meanOfRows, unitVector } from "./vectors.ts";
import { checkOptionKeys, type OptionKeys } from "../option_keys.ts";

/**
 * Options of {@linkcode embed}.
 * @category Encoders
 */
export interface EmbedOptions extends EncoderCallOptions {
  /**
   * How the rows of a text become one vector: `mean` of all, its first row (`cls`), its last, or that of its
   * mask token. Default: the vector that the model makes itself (CLIP, SigLIP), what its files say, else `mean` of an encoder and `last` of a decoder, which has no
   * `cls` and no `mask`; its `mean` takes a step for each token.
   */
  readonly pooling?: Pooling;
  /** Whether vectors are scaled to length 1, so that their product is the cosine. Default true. */
  readonly normalize?: boolean;
}

const EMBED_KEYS: OptionKeys<EmbedOptions> = {
  pooling: true,
  normalize: true,
  adapters: true,
  signal: true,
};

/**
 * Vectors of texts, near each other where the texts mean alike.
 *
 * A text longer than the model takes (`max_seq_length`, else its context) is cut.
 *
 * @param model An encoder, or a decoder that was loaded with `embeddings: true`.
 * @param texts Texts, or token ids with special tokens as the model wants them.
 * @returns One vector for each text, as wide as the model.
 * @throws {UnsupportedError} If the model is no encoder, and no decoder that gives out its states.
 * @throws {RangeError} On a bad option, on bad ids, or where `mask` finds no mask token.
 *
 * @example
 * ```ts
 * import { embed, load } from "@troodon/troodon";
 * import { assertAlmostEquals } from "@std/assert";
 *
 * using model = await load("encoder");
 * const [a, b] = await embed(model, [[1, 15, 47, 2], [1, 30, 2]]); // ids; texts where it has a tokenizer
 * assertAlmostEquals(Math.hypot(...a!), 1, 1e-6);
 * console.log(a!.reduce((sum, x, i) => sum + x * b![i]!, 0)); // cosine
 * ```
 * @category Encoders
 */
export async function embed(
  model: Model,
  texts: readonly (string | readonly number[])[],
  options: EmbedOptions = {},
): Promise<Float32Array[]> {
  checkOptionKeys(options, { of: "embed()", known: EMBED_KEYS });
  checkTexts(texts, "embed");
  const decoder = decoderOf(model);
  if (decoder) return await embedByDecoder(model, decoder, { texts, options });
  const runtime = encoderOf(model, { use: "embed texts" });
  const { pooling = runtime.encoder.pooling, normalize = true } = options;
  if (!Object.hasOwn(POOLINGS, pooling)) {
    throw new RangeError(
      `Cannot use pooling "${pooling}": it is one of ${Object.keys(POOLINGS).join(", ")}`,
    );
  }
  const { whole } = runtime.encoder;
  if (whole && options.pooling === undefined) {
    return await embedWhole(runtime, { texts, whole, options });
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

/** Vectors that the model makes of whole texts itself, in the space of those of pictures (CLIP, SigLIP). */
async function embedWhole(
  runtime: EncoderRuntime,
  { texts, whole, options }: {
    readonly texts: readonly (string | readonly number[])[];
    readonly whole: WholeTexts;
    readonly options: EmbedOptions;
  },
): Promise<Float32Array[]> {
  const { normalize = true } = options;
  const sequences = texts.map((text) => {
    const ids = tokensOf(runtime, text), { padded } = whole;
    const filled = Array.from(
      { length: Math.max(0, (padded?.length ?? 0) - ids.length) },
      () => padded!.id,
    );
    const tokens = [...ids, ...filled];
    return { tokens, wanted: tokens.length === 0 ? [] : [whole.rowOf(tokens)] };
  });
  const vectors: Float32Array[] = [];
  await encodeSequences(runtime, {
    sequences,
    read: ({ head }) => void vectors.push(normalize ? unitVector(head.slice()) : head.slice()),
  }, options);
  return vectors;
}

/** The runtime of a decoder that gives out states; undefined: the model is none. */
function decoderOf(model: Model): Runtime | undefined {
  const runtime = model instanceof LoadedModel ? model.runtime : undefined;
  if (runtime?.network !== "decoder") return undefined;
  if (runtime.pooling) return runtime;
  throw new UnsupportedError("cannot embed texts as it was loaded: a decoder keeps its states", {
    file: runtime.name,
    remedy: "Load it with embeddings: true, or an encoder such as minilm",
  });
}

async function embedByDecoder(
  model: Model,
  runtime: Runtime,
  { texts, options }: {
    readonly texts: readonly (string | readonly number[])[];
    readonly options: EmbedOptions;
  },
): Promise<Float32Array[]> {
  const { pooling = runtime.pooling!, normalize = true, adapters, signal } = options;
  if (pooling !== "last" && pooling !== "mean") {
    throw new RangeError(`Cannot use pooling "${pooling}" of a decoder: it is last or mean`);
  }
  using session = model.createSession();
  if (adapters) session.useAdapters(adapters);
  const vectors: Float32Array[] = [];
  for (const [i, text] of texts.entries()) {
    const ids = typeof text === "string" ? runtime.tokenizer().encode(text) : text;
    const tokens = ids.slice(0, session.capacity);
    if (tokens.length === 0) {
      throw new RangeError(`Cannot embed text ${i + 1} of ${texts.length}: it has no tokens`);
    }
    const vector = pooling === "last"
      ? await lastState(session, tokens, signal)
      : await meanState(session, tokens, { width: runtime.hidden, signal });
    vectors.push(normalize ? unitVector(vector) : vector);
  }
  return vectors;
}

async function lastState(
  session: Session,
  tokens: readonly number[],
  signal: AbortSignal | undefined,
): Promise<Float32Array> {
  await session.sync(tokens, { signal });
  return session.embedding().slice();
}

async function meanState(
  session: Session,
  tokens: readonly number[],
  { width, signal }: { readonly width: number; readonly signal: AbortSignal | undefined },
): Promise<Float32Array> {
  session.rewind(0);
  const rows = new Float32Array(tokens.length * width);
  for (const [i, token] of tokens.entries()) {
    await session.eval([token], { signal });
    rows.set(session.embedding(), i * width);
  }
  return meanOfRows(rows, width);
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
