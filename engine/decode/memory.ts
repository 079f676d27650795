// Memory of a model by use, and the check that refuses a model that cannot fit before a byte of its
// weights is read. Free memory is only known with --allow-sys=systemMemoryInfo, which is never asked for.

import { mebibytes, ResourceError } from "../errors.ts";
import { freeMemory } from "../io.ts";
import type { StreamedBytes } from "../run/streaming/slots.ts";

/**
 * Memory of a model in bytes.
 * @category Models
 */
export interface ModelMemory {
  /** Weights as they lie in memory. */
  readonly weights: number;
  /** Activations, reused along the plan. */
  readonly activations: number;
  /** Keys and values of one session at its longest. */
  readonly sessionCache: number;
  /** Keys and values of all sessions: a pool of pages. */
  readonly cache: number;
  /** Tokens that the pool holds. */
  readonly cacheTokens: number;
  /** Sessions that may be open at once. */
  readonly sessions: number;
  /** Programs and tables. */
  readonly other: number;
  /** Of device `wasm`, where one WASM memory does not hold it: bytes planned in each. */
  readonly memories?: readonly number[];
  /** Where weights are streamed; absent: all are held. */
  readonly streamed?: StreamedBytes;
  /** All of it. */
  readonly total: number;
}

/** Adds the total. */
export function totalMemory(parts: Omit<ModelMemory, "total">): ModelMemory {
  const { weights, activations, cache, other } = parts;
  return { ...parts, total: weights + activations + cache + other };
}

/**
 * Refuses a model that is larger than the free memory. What a device can address is its own business.
 *
 * @param free Bytes that are free, undefined where unknown.
 * @throws {ResourceError} With what is needed, by use, and what there is.
 */
export function checkMemory(
  memory: ModelMemory,
  { file, free = freeMemory() }: { file: string; free?: number | undefined },
): void {
  if (free === undefined || memory.total <= free) return;
  const { weights, activations, cache, cacheTokens } = memory;
  const parts = [
    `weights ${mebibytes(weights)}`,
    `activations ${mebibytes(activations)}`,
    `caches of ${cacheTokens} tokens ${mebibytes(cache)}`,
  ].join(", ");
  throw new ResourceError(
    `needs ${mebibytes(memory.total)} of memory (${parts}), and ${mebibytes(free)} are free`,
    { file, remedy: "Take a smaller model, or lower contextLength, cacheTokens or batch" },
  );
}
