// Pairs of narrow matrices, which both ways of storing adapters come to, and what a pair must be.

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";

/** The two narrow matrices for one matrix of the model, or for a stack of matrices (experts). */
export interface LowRankPair {
  /** A: [r, K], of a stack [E, r, K]; of an embedding its rows by token, [vocabulary, r]. */
  readonly down: TensorInfo;
  /** B: [N, r], of a stack [E, N, r]. */
  readonly up: TensorInfo;
  /** alpha / r, or what the adapter says instead. */
  readonly factor: number;
  /** For an embedding. */
  readonly isTable: boolean;
}

/** What was found of a pair. */
export interface Halves {
  down?: TensorInfo;
  up?: TensorInfo;
  isTable?: boolean;
}

/** What a reader finds in a file. */
export interface AdapterContent {
  /** Container of the models that it fits: `gguf`, or `safetensors` and its relatives. */
  readonly convention: "gguf" | "huggingface";
  /** By name of the matrix, as the adapter calls it. */
  readonly pairs: ReadonlyMap<string, LowRankPair>;
  /** The architecture that it was made for, where it says so. */
  readonly architecture?: string | undefined;
  /** What it asks for and does not happen; one sentence each. */
  readonly warnings?: readonly string[];
}

/**
 * Joins A and B tensors by the matrix that they are for, and checks that their ranks are equal.
 *
 * @throws {FormatError} If one of a pair is missing, no matrix, or has another rank.
 */
export function joinPairs(
  halves: ReadonlyMap<string, Readonly<Halves>>,
  factorOf: (name: string, rank: number) => number,
): Map<string, LowRankPair> {
  const pairs = new Map<string, LowRankPair>();
  for (const [name, { down, up, isTable = false }] of halves) {
    const one = (down ?? up)!;
    const fail = (message: string): never => {
      throw new FormatError(message, { file: one.source.name, place: `tensor ${one.name}` });
    };
    if (!down || !up) return fail(`has no partner: ${name} needs A and B`);
    const dims = down.shape.length;
    if (dims !== up.shape.length || dims < 2 || dims > (isTable ? 2 : 3)) {
      return fail(`has shape [${one.shape}] where a matrix is needed`);
    }
    if (dims === 3 && down.shape[0] !== up.shape[0]) {
      return fail(`is for ${down.shape[0]} matrices, and ${up.name} for ${up.shape[0]}`);
    }
    const rank = down.shape.at(isTable ? -1 : -2)!;
    if (up.shape.at(-1) !== rank) {
      return fail(
        `has rank ${rank}, and ${up.name} with shape [${up.shape}] has ${up.shape.at(-1)}`,
      );
    }
    pairs.set(name, { down, up, factor: factorOf(name, rank), isTable });
  }
  return pairs;
}

/** An adapter that asks for more than pairs of matrices. */
export function refuseTensor(
  file: string,
  { tensor, what }: { readonly tensor: string; readonly what: string },
): never {
  throw new UnsupportedError(`${what} is not built`, {
    file,
    place: `tensor ${tensor}`,
    remedy: "Merge the adapter into the model with the tool that made it",
  });
}
