// A tensor on its way into a number format, run by run: as many are encoded at a time as the pool has threads for,
// and all are handed on in the order of the rows.

import type { NumberFormat } from "../../quant/mod.ts";
import type { TensorInfo } from "../formats/source.ts";
import { readTensorRows, runsOf } from "../formats/tensor_rows.ts";
import type { EncodePool, PooledRun } from "./encode_pool.ts";
import type { EncodeJob } from "./encode_run.ts";

/** How {@linkcode encodeTensor} goes about it; `start` is the index of a run's first value. */
export interface EncodeTensorOptions {
  readonly pool: EncodePool;
  readonly job: EncodeJob;
  readonly signal?: AbortSignal | undefined;
  /** Called before a run is encoded; may throw, and may change its values. */
  before(start: number, values: Float32Array): void;
  /** Called with each result. */
  after(start: number, run: PooledRun): void;
  /** What is thrown where the format cannot hold a run. */
  fail(start: number, error: RangeError): Error;
}

interface StartedRun {
  readonly start: number;
  readonly result: Promise<PooledRun>;
}

/**
 * Encodes a tensor.
 *
 * @param source Format that it is stored in.
 */
export async function encodeTensor(
  tensor: TensorInfo,
  source: NumberFormat,
  { pool, job, signal, before, after, fail }: EncodeTensorOptions,
): Promise<void> {
  async function finish({ start, result }: StartedRun): Promise<void> {
    const run = await result.catch((error) => {
      throw error instanceof RangeError ? fail(start, error) : error;
    });
    after(start, run);
  }
  const started: StartedRun[] = [];
  pool.prepare(runsOf(tensor));
  try {
    for await (const { start, values } of readTensorRows(tensor, { format: source, signal })) {
      before(start, values);
      const result = pool.encode(job, values.slice());
      result.catch(() => {}); // It is looked at in its turn.
      started.push({ start, result });
      if (started.length >= pool.depth) await finish(started.shift()!);
    }
  } catch (error) {
    // What is wrong in rows before is what a single thread would have met.
    if (!signal?.aborted) { for (const run of started) await finish(run); }
    throw error;
  }
  for (const run of started) await finish(run);
}
