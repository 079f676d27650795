// How long the parts of a step take on the GPU, and what the host does. Each dispatch is in a pass of its own with a
// timestamp at both ends, or all that are alike are in one pass, again and again: clocks of some devices tick every 65 µs,
// and passes add some time of their own.

import { BUFFER_USAGE } from "../../gpu/constants.ts";
import type { GpuMemory } from "../../gpu/gpu.ts";
import type { Program, ProgramDispatch } from "../../gpu/program.ts";
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
      const weightBytes = weightBytesOf(storage);
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
  values.writeInputs(bindings);
  return await timeDispatches(gpu, program);
}

/** Dispatches of a step that are alike, in all layers. */
export interface KindTime {
  /** Kernel, shader, and what its weights take. */
  readonly name: string;
  readonly calls: number;
  /** Of weights that all of them read. */
  readonly bytes: number;
  /** Of all of them, once. */
  readonly ms: number;
}

interface Encoded {
  readonly pipeline: GPUComputePipeline;
  readonly group: GPUBindGroup;
  readonly counts: readonly [number, number, number];
}

/** Kernels that read some rows of their weights only. */
const READS_ROWS = /^gpu_(embed|select_rows|gather)/;
/** Least milliseconds of a pass, and most rounds of what is in it. */
const LEAST_PASS_MS = 4, MOST_ROUNDS = 500;

/**
 * Times the dispatches of a step by kind: those of all layers one behind the other, so that weights are not found in a
 * cache which a layer alone would fit, in as many rounds as a coarse clock needs. What they compute means nothing.
 */
export async function timeKinds(
  { stepParts: { gpu, program, values, reach, logits } }: GpuPlan,
  bindings: DimEnv,
): Promise<KindTime[]> {
  logits?.forget();
  program.bind(reach.ofInputs(bindings));
  values.writeInputs(bindings);
  const kinds = new Map<string, { bytes: number; readonly all: Encoded[] }>();
  program.encodeApart((_, index) => {
    const { name, shader, storage } = program.dispatches[index]!;
    const bytes = READS_ROWS.test(name) ? 0 : weightBytesOf(storage);
    const key = `${name} ${shader.name} of ${(bytes / 1e6).toFixed(2)} MB`;
    const kind = kinds.get(key) ?? { bytes: 0, all: [] };
    kinds.set(key, kind);
    kind.bytes += bytes;
    return recorder((encoded) => kind.all.push(encoded));
  });
  const times: KindTime[] = [];
  for (const [name, { bytes, all }] of kinds) {
    times.push({ name, calls: all.length, bytes, ms: await timePass(gpu, all) });
  }
  return times;
}

/** What looks like a pass and keeps its one dispatch. */
function recorder(keep: (encoded: Encoded) => void): GPUComputePassEncoder {
  const encoded: { -readonly [K in keyof Encoded]?: Encoded[K] } = {};
  const pass: Partial<GPUComputePassEncoder> = {
    setPipeline: (pipeline) => void (encoded.pipeline = pipeline),
    setBindGroup: (_: number, group: GPUBindGroup | null) => void (encoded.group = group!),
    dispatchWorkgroups: (x, y = 1, z = 1) => void (encoded.counts = [x, y, z]),
    end: () => keep(encoded as Encoded),
  };
  return pass as GPUComputePassEncoder;
}

/** Milliseconds of all these dispatches, once. */
async function timePass(gpu: GpuMemory, all: readonly Encoded[]): Promise<number> {
  const { device } = gpu;
  const querySet = device.createQuerySet({ type: "timestamp", count: 2 });
  const usage = BUFFER_USAGE.QUERY_RESOLVE | BUFFER_USAGE.COPY_SRC;
  const resolved = gpu.createBuffer("timestamps", 16, usage);
  const timed = async (rounds: number): Promise<number> => {
    const encoder = device.createCommandEncoder();
    const timestampWrites = { querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 };
    const pass = encoder.beginComputePass({ timestampWrites });
    for (let round = 0; round < rounds; round++) {
      for (const { pipeline, group, counts } of all) {
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(...counts);
      }
    }
    pass.end();
    encoder.resolveQuerySet(querySet, 0, 2, resolved, 0);
    device.queue.submit([encoder.finish()]);
    const bytes = await readOnce(gpu, [{ buffer: resolved, offset: 0, bytes: 16 }]);
    const [start, end] = new BigUint64Array(bytes.buffer);
    return Number(end! - start!) / 1e6 / rounds;
  };
  try {
    const look = await timed(2);
    return await timed(Math.min(MOST_ROUNDS, Math.ceil(LEAST_PASS_MS / Math.max(look, 1e-4))));
  } finally {
    querySet.destroy();
    gpu.destroyBuffer(resolved);
  }
}

/** Bytes of read-only memory that a dispatch is bound to: its weights. */
function weightBytesOf(storage: ProgramDispatch<DimEnv>["storage"]): number {
  return Object.values(storage)
    .reduce((sum, { access, bytes }) => access === "read" ? sum + bytes : sum, 0);
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
    values.writeInputs(bindings);
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
