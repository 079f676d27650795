// How long the parts of a step take on the GPU: each dispatch, in a pass of its own with a timestamp at both ends, and
// what the host does. The clock of some devices only ticks every microsecond, and passes add some time of their own.

import { BUFFER_USAGE } from "../../gpu/constants.ts";
import type { GpuMemory } from "../../gpu/gpu.ts";
import type { Program } from "../../gpu/program.ts";
import { readOnce } from "../../gpu/readback.ts";
import type { DimEnv } from "../../engine/graph/dim/mod.ts";
import type { RankedWish } from "../../engine/run/backend.ts";
import type { GpuPlan } from "../../engine/run/gpu/backend.ts";
import { encode } from "../../engine/run/gpu/steps.ts";

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

/** The same of the dispatches of a step, with the inputs at hand. */
export async function timeStep(
  { stepParts: { gpu, program, values, reach, logits } }: GpuPlan,
  bindings: DimEnv,
): Promise<DispatchTime[]> {
  logits?.forget();
  program.bind(reach.ofInputs(bindings));
  values.writeInputs();
  return await timeDispatches(gpu, program);
}

/** Medians, in ms, over some steps. */
export type HostTimes = Readonly<Record<"encode" | "inputs" | "submit" | "wait and read", number>>;

const HOST_STEPS = 20;
/** What a greedy answer wants. */
const BEST: RankedWish = { best: Int32Array.of(1), repeats: 0 };

/** Measures the parts of a greedy answer's step on the host, one behind the other. */
export async function timeHost({ stepParts }: GpuPlan, given: DimEnv): Promise<HostTimes> {
  const { gpu: { device }, program, values, readback, reach, logits } = stepParts;
  const bindings = reach.ofInputs(given);
  const pick = logits?.pickOf(given, BEST);
  const times: Record<keyof HostTimes, number[]> = {
    "encode": [],
    "inputs": [],
    "submit": [],
    "wait and read": [],
  };
  logits?.forget();
  program.bind(bindings);
  for (let i = 0; i < HOST_STEPS; i++) {
    const marks = [performance.now()];
    const { commands, bytes, take } = encode(stepParts, { bindings, pick });
    marks.push(performance.now());
    values.writeInputs();
    readback.stamp();
    marks.push(performance.now());
    device.queue.submit([commands]);
    marks.push(performance.now());
    await readback.read(bytes, take);
    marks.push(performance.now());
    Object.values(times).forEach((list, n) => list.push(marks[n + 1]! - marks[n]!));
  }
  const middle = (list: number[]) => list.sort((a, b) => a - b)[list.length >> 1]!;
  return Object.fromEntries(
    Object.entries(times).map(([name, list]) => [name, middle(list)]),
  ) as HostTimes;
}
