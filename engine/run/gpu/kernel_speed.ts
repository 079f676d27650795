// How long kernels take on a device, by the cases of their ops: the largest case that a kernel takes, again and again in
// one pass between two timestamps, often enough that the clock of the device, which some round to 65 µs, does not matter.
// Such a case is small beside a layer of a model, so this tells a driver that is slow from one that is not, no more.

import { BUFFER_USAGE } from "../../../gpu/constants.ts";
import { readOnce } from "../../../gpu/readback.ts";
import { UnsupportedError } from "../../errors.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { ops } from "../../ops/mod.ts";
import type { OpCase } from "../../ops/op_case.ts";
import type { OpRecord } from "../../ops/op.ts";
import { withCase } from "../case_run.ts";
import { kernelNames } from "../kernel_choice.ts";
import type { GpuBackend, GpuPlan } from "./backend.ts";

/** Speed of a kernel. */
export interface KernelSpeed {
  readonly kernel: string;
  /** What it was measured on. */
  readonly case: string;
  /** Of one run of the case, with what it needs around the op. */
  readonly microseconds: number;
}

/** Runs of a first look, and least milliseconds and most runs of what counts. */
const LOOK = 8, LEAST_MS = 2, MOST_RUNS = 2000;

/** What is timed. */
export interface KernelSpeedOptions {
  /** Names of the kernels; default: all. */
  readonly wanted?: (kernel: string) => boolean;
  /** Hears the name of a kernel before it is timed. */
  readonly onBegin?: ((kernel: string) => void) | undefined;
}

/** Times kernels of the device; nothing where it has no timestamps. */
export async function* timeKernels(
  backend: GpuBackend,
  { wanted = () => true, onBegin }: KernelSpeedOptions = {},
): AsyncGenerator<KernelSpeed> {
  for (const op of ops.values()) {
    const kernels = kernelNames(backend.kernels, op.name).filter(wanted);
    if (kernels.length === 0) continue;
    const cases = (op.cases?.(createCaseRandom(1)) ?? [])
      .toSorted((a, b) => bytesOfCase(b) - bytesOfCase(a));
    for (const kernel of kernels) {
      onBegin?.(kernel);
      const speed = await timeLargest(backend, { op, kernel, cases });
      if (speed) yield speed;
    }
  }
}

async function timeLargest(
  backend: GpuBackend,
  { op, kernel, cases }: {
    readonly op: OpRecord;
    readonly kernel: string;
    readonly cases: readonly OpCase[];
  },
): Promise<KernelSpeed | undefined> {
  for (const opCase of cases) {
    try {
      const use = async (executable: GpuPlan) => {
        await executable.run(opCase.bindings ?? {});
        return await timeRuns(executable);
      };
      const ms = await withCase(backend, { op, opCase, kernel, use });
      return ms === undefined
        ? undefined
        : { kernel, case: opCase.name, microseconds: Math.round(1e5 * ms) / 100 };
    } catch (error) {
      if (!(error instanceof UnsupportedError)) return undefined; // its check says what is wrong
    }
  }
}

function bytesOfCase({ inputs }: OpCase): number {
  return inputs.reduce((sum, input) => {
    if (input?.role === "weight") return sum + input.bytes.length;
    if (input?.role === "state") return sum;
    return sum + (input?.data.byteLength ?? 0);
  }, 0);
}

/** Milliseconds of one of many runs of what ran last; undefined without timestamps. */
async function timeRuns({ stepParts: { gpu, program } }: GpuPlan): Promise<number | undefined> {
  if (!gpu.capabilities.timestamp || program.activeCount === 0) return undefined;
  const { device } = gpu, { QUERY_RESOLVE, COPY_SRC } = BUFFER_USAGE;
  const querySet = device.createQuerySet({ type: "timestamp", count: 2 });
  const buffer = gpu.createBuffer("timestamps", 16, QUERY_RESOLVE | COPY_SRC);
  const timed = async (runs: number): Promise<number> => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass({
      timestampWrites: { querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 },
    });
    for (let run = 0; run < runs; run++) program.encode(pass);
    pass.end();
    encoder.resolveQuerySet(querySet, 0, 2, buffer, 0);
    device.queue.submit([encoder.finish()]);
    const bytes = await readOnce(gpu, [{ buffer, offset: 0, bytes: 16 }]);
    const [start, end] = new BigUint64Array(bytes.buffer);
    return Number(end! - start!) / 1e6;
  };
  try {
    const look = await timed(LOOK) / LOOK;
    const runs = Math.min(MOST_RUNS, Math.ceil(LEAST_MS / Math.max(look, 1e-6)));
    return runs <= LOOK ? look : await timed(runs) / runs;
  } finally {
    querySet.destroy();
    gpu.destroyBuffer(buffer);
  }
}
