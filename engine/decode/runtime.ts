// What sessions need of a loaded model, and the one place where steps are run. The executable is shared by
// all sessions of a model, so a step (write inputs, run, copy logits) holds the lock; between steps the
// thread is given up. Nothing here allocates: inputs and outputs are views made once.

import type { HostData } from "../graph/op.ts";
import type { ModelMemory } from "../models/memory.ts";
import type { Executable } from "../plan/backend.ts";
import type { ChatTemplate } from "../text/chat_template.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import { createLock, type Lock } from "./lock.ts";

/** A prepared model with its limits. */
export interface Runtime {
  /** Path or name, for messages. */
  readonly name: string;
  readonly executable: Executable;
  /** Positions a session holds. */
  readonly capacity: number;
  /** Rows of a step, and rows of it that may have logits. */
  readonly batch: number;
  readonly logitRows: number;
  readonly vocabulary: number;
  /** Length of the hidden state when the graph gives it out, else 0. */
  readonly hidden: number;
  /** SHA-256 of model and cache layout, 32 bytes: saved sessions carry it. */
  readonly fingerprint: Uint8Array;
  /** @throws {UnsupportedError} If the model's files hold none. */
  tokenizer(): Tokenizer;
  readonly chatTemplate: ChatTemplate | undefined;
  /** For the figures of a generation. */
  readonly loadMs: number;
  readonly memory: ModelMemory;
  readonly lock: Lock;
}

/** Adds the lock to the rest. */
export function createRuntime(parts: Omit<Runtime, "lock">): Runtime {
  return { ...parts, lock: createLock() };
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
}

/** Runs one chunk and hands the outputs to `read` before anyone else may run. */
export async function runChunk(
  { executable, lock }: Runtime,
  chunk: Chunk,
  read?: (executable: Executable) => void,
): Promise<void> {
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
    await executable.run({ M: rows, L: chunk.logits });
    read?.(executable);
  } finally {
    release();
  }
}
