// How long each dispatch of a program takes: a pass for each, with a timestamp at both ends. For benches; the clock of
// some devices only ticks every microsecond, and passes add some time of their own.

import { BUFFER_USAGE } from "./constants.ts";
import type { GpuMemory } from "./gpu.ts";
import type { Program } from "./program.ts";
import { readOnce } from "./readback.ts";

/** Time of one dispatch. */
export interface DispatchTime {
  /** Kernel, and what its shader is called. */
  readonly name: string;
  readonly shader: string;
  /** Bytes of read-only memory that it is bound to: its weights. */
  readonly weightBytes: number;
  readonly ms: number;
}

/**
 * Runs a bound program once and measures its dispatches.
 *
 * @throws {TypeError} If the device has no timestamps.
 */
export async function timeDispatches<Env>(
  scope: GpuMemory,
  program: Program<Env>,
): Promise<DispatchTime[]> {
  const { device, capabilities } = scope;
  if (!capabilities.timestamp) throw new TypeError("Cannot measure: the device has no timestamps");
  const { dispatches, activeCount } = program;
  if (activeCount === 0) return [];
  // Every query must be written: resolving one that is not waits for ever on some drivers.
  const count = 2 * activeCount;
  const querySet = device.createQuerySet({ type: "timestamp", count });
  const usage = BUFFER_USAGE.QUERY_RESOLVE | BUFFER_USAGE.COPY_SRC;
  const resolved = scope.createBuffer("timestamps", 8 * count, usage);
  try {
    const encoder = device.createCommandEncoder();
    const measured: number[] = [];
    program.encodeApart((number, index) => {
      measured.push(index);
      return encoder.beginComputePass({
        timestampWrites: {
          querySet,
          beginningOfPassWriteIndex: 2 * number,
          endOfPassWriteIndex: 2 * number + 1,
        },
      });
    });
    encoder.resolveQuerySet(querySet, 0, count, resolved, 0);
    device.queue.submit([encoder.finish()]);
    const bytes = await readOnce(scope, [{ buffer: resolved, offset: 0, bytes: 8 * count }]);
    const times = new BigUint64Array(bytes.buffer);
    return measured.map((index, number) => {
      const { name, shader, storage } = dispatches[index]!;
      const weightBytes = Object.values(storage)
        .reduce((sum, { access, bytes }) => access === "read" ? sum + bytes : sum, 0);
      const ms = Number(times[2 * number + 1]! - times[2 * number]!) / 1e6;
      return { name, shader: shader.name, weightBytes, ms };
    });
  } finally {
    querySet.destroy();
    scope.destroyBuffer(resolved);
  }
}
