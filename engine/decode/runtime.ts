// What sessions need of a loaded model, and the one place where steps are run. The executable is shared by
// all sessions of a model, so a step (write inputs, run, copy logits) holds the lock; between steps the
// thread is given up. Nothing here allocates: inputs and outputs are views made once.

import type { DimEnv } from "../graph/dim/mod.ts";
import type { HostData } from "../ops/op.ts";
import type { ModelMemory } from "./memory.ts";
import type { PreparedPlan, StepWish } from "../run/backend.ts";
import type { ChatTemplate } from "../text/chat_template.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import { createLock, type Lock } from "./lock.ts";

/** A prepared model with its limits. */
export interface Runtime {
  /** Path or name, for messages. */
  readonly name: string;
  readonly executable: PreparedPlan;
  /** Positions a session holds. */
  readonly capacity: number;
  /** Rows of a step, and rows of it that may have logits. */
  readonly batch: number;
  readonly logitRows: number;
  readonly vocabulary: number;
  /** So many best tokens of a row have logits, the others −Infinity; absent: all have. */
  readonly candidates?: number | undefined;
  /** Length of the hidden state when the graph gives it out, else 0. */
  readonly hidden: number;
  /** What the model is made of, and what that kind adds. */
  readonly network: Network;
  /** Of encoders. */
  readonly encoder: EncoderFacts | undefined;
  /** Of encoder-decoders. */
  readonly source: SourceMemory | undefined;
  /** Adapters of the executable, by index. */
  readonly adapters: readonly AdapterInfo[];
  /** SHA-256 of model and cache layout, 32 bytes: saved sessions carry it. */
  fingerprint(): Promise<Uint8Array>;
  /** @throws {UnsupportedError} If the model's files hold none. */
  tokenizer(): Tokenizer;
  readonly chatTemplate: ChatTemplate | undefined;
  /** For the figures of a generation. */
  readonly loadMs: number;
  readonly memory: ModelMemory;
  readonly lock: Lock;
  /** Logits that are still on the device alone. */
  readonly unread: UnreadRow;
}

/** The row of logits of the last step, where its session has left it on a device that has it at hand. */
export interface UnreadRow {
  /** The session's. */
  slot: number;
  /** Copies it into the session; absent: nothing was left. */
  read: (() => void) | undefined;
}

/** Kinds of models: one that continues, one that reads, and one that reads and then writes. */
export type Network = "decoder" | "encoder" | "encoder-decoder";

/** An adapter in memory. */
export interface AdapterInfo {
  /** By which generations speak of it. */
  readonly name: string;
  /** How much it counts, unless a generation says otherwise. */
  readonly scale: number;
  /** Matrices of the model that it changes. */
  readonly matrices: number;
}

/** How sequences go into an encoder and what comes out. */
export interface EncoderFacts {
  /** Most tokens of a sequence, special ones included. */
  readonly maxTokens: number;
  /** How rows become one vector, unless the caller says. */
  readonly pooling: Pooling;
  /** Output beside `hidden`. */
  readonly head: "logits" | "scores" | undefined;
  /** Columns of it. */
  readonly headWidth: number;
  /** Names of the columns of `scores`. */
  readonly labels: readonly string[];
  /** Labels exclude each other, or each may hold. */
  readonly isMultiLabel: boolean;
  /** Whether tokens have types. */
  readonly hasTypes: boolean;
  /** End tokens between two texts. */
  readonly pairSeparators: number;
}

/** How the rows of a sequence become one vector. */
export type Pooling = "mean" | "cls" | "last" | "mask";

/** Sources of the sessions of an encoder-decoder. */
export interface SourceMemory {
  /** Tokens of each slot's source; 0: none was encoded. */
  readonly lengths: Int32Array;
  /** Most tokens of a source. */
  readonly capacity: number;
  /** With what every target begins. */
  readonly start: readonly number[];
  /** How translations are asked for. */
  readonly translation: TranslationRule | undefined;
}

/** See the spec's key `translation`. */
export interface TranslationRule {
  readonly prompt?: string | undefined;
  readonly sourceToken?: string | undefined;
  readonly targetToken?: string | undefined;
}

/** Adds the lock to the rest. */
export function createRuntime(parts: Omit<Runtime, "lock" | "unread">): Runtime {
  return { ...parts, lock: createLock(), unread: { slot: 0, read: undefined } };
}

/** Runs a step for its holder; what another session has left on the device is read before it goes. */
export async function runStep(
  { executable, unread }: Runtime,
  bindings: DimEnv,
  { slot, wish }: { readonly slot?: number | undefined; readonly wish?: StepWish | undefined } = {},
): Promise<void> {
  const { read } = unread;
  unread.read = undefined;
  if (slot !== unread.slot) read?.();
  await executable.run(bindings, wish);
}

/** A run of tokens of one slot. */
export interface Chunk {
  readonly tokens: ArrayLike<number>;
  /** Range of `tokens` to run; at most `batch` long. */
  readonly from: number;
  readonly to: number;
  /** Position of the token at `from`. */
  readonly position: number;
  readonly slot: number;
  /** How many of the last rows want logits. */
  readonly logits: number;
  /** What of them will be looked at; absent: all. */
  readonly wish?: StepWish | undefined;
}

/** Runs one chunk and hands the outputs to `read` before anyone else may run. */
export async function runChunk(
  runtime: Runtime,
  chunk: Chunk,
  read?: (executable: PreparedPlan) => void,
): Promise<void> {
  const { executable, lock, source } = runtime;
  const release = await lock.acquire();
  try {
    const rows = chunk.to - chunk.from;
    const tokens = executable.input("tokens") as Int32Array;
    const positions = executable.input("positions") as Int32Array;
    const slots = executable.input("slots") as Int32Array;
    for (let row = 0; row < rows; row++) {
      tokens[row] = chunk.tokens[chunk.from + row]!;
      positions[row] = chunk.position + row;
      slots[row] = chunk.slot;
    }
    const wanted: HostData = executable.input("logit_rows");
    for (let row = 0; row < chunk.logits; row++) wanted[row] = rows - chunk.logits + row;
    if (source) {
      const length = sourceLength(source, chunk.slot);
      (executable.input("memory_slots") as Int32Array).fill(chunk.slot, 0, rows);
      (executable.input("memory_ends") as Int32Array).fill(length, 0, rows);
    }
    await runStep(runtime, { M: rows, L: chunk.logits, ...source && { E: 0 } }, chunk);
    read?.(executable);
  } finally {
    release();
  }
}

/**
 * Length of the source that a slot holds.
 *
 * @throws {TypeError} If it holds none.
 */
export function sourceLength({ lengths }: SourceMemory, slot: number): number {
  const length = lengths[slot]!;
  if (length > 0) return length;
  throw new TypeError("Cannot compute: this session has no source text yet; call encode first");
}

/** Runs the encoder over a source and keeps what the decoder needs of it in a slot. */
export async function encodeSource(
  runtime: Runtime,
  source: SourceMemory,
  { tokens, slot }: { readonly tokens: ArrayLike<number>; readonly slot: number },
): Promise<void> {
  const { executable, lock } = runtime;
  const release = await lock.acquire();
  try {
    const count = tokens.length;
    const input = (name: string) => executable.input(`source_${name}`) as Int32Array;
    input("tokens").set(Array.from(tokens));
    const positions = input("positions");
    for (let row = 0; row < count; row++) positions[row] = row;
    input("starts").fill(0, 0, count);
    input("ends").fill(count, 0, count);
    input("slots").fill(slot, 0, count);
    source.lengths[slot] = 0;
    await runStep(runtime, { E: count, M: 0, L: 0 }, { slot });
    source.lengths[slot] = count;
  } finally {
    release();
  }
}
