// What graphs do on a GPU, for benches: a device whose prepared plans are kept, so that the dispatches of their runs can be
// counted and timed one by one.

import { type Device, type DeviceOptions, openDevice } from "../../engine/run/devices.ts";
import type { DimEnv } from "../../engine/graph/dim/mod.ts";
import { createGpuBackend, type GpuPlan } from "../../engine/run/gpu/backend.ts";
import { besideHost } from "../../engine/run/parts/beside.ts";
import { type DispatchTime, timeStep } from "../gpu/timing.ts";
import { median } from "./figures.ts";

/** A part of a graph that runs on the GPU, and the sizes of its last run. */
export interface WatchedPlan {
  readonly plan: GpuPlan;
  bindings: DimEnv | undefined;
}

/** A device of WebGPU that tells of the plans that it made ready. */
export async function openWatchedGpu(
  options: DeviceOptions = {},
): Promise<{ readonly device: Device; readonly watched: readonly WatchedPlan[] }> {
  const device = await openDevice("gpu", options);
  const gpu = createGpuBackend({ provider: options.gpu });
  const watched: WatchedPlan[] = [];
  const backend = besideHost({
    ...gpu,
    async prepare(given, more) {
      const plan = await gpu.prepare(given, more);
      const one: WatchedPlan = { plan, bindings: undefined };
      watched.push(one);
      const { holder } = plan;
      return {
        ...plan,
        run(bindings, wish) {
          one.bindings = bindings;
          return plan.run(bindings, wish);
        },
        ...holder && {
          holder: {
            ...holder,
            run(bindings, transfers) {
              one.bindings = bindings;
              return holder.run(bindings, transfers);
            },
          },
        },
      };
    },
  }, async () => (await openDevice("wasm", { shared: true })).backend);
  return { device: { ...device, backend }, watched };
}

/** Time of a plan's dispatches: the median of some runs, each dispatch in a pass of its own. */
export async function dispatchTimes(
  { plan, bindings }: WatchedPlan,
  rounds: number,
): Promise<DispatchTime[]> {
  const runs: DispatchTime[][] = [];
  for (let i = 0; i < rounds; i++) runs.push(await timeStep(plan, bindings!));
  return runs[0]!.map((time, i) => ({ ...time, ms: median(runs.map((run) => run[i]!.ms)) }));
}

/** The same by kernel, most time first, as lines of text. */
export function byKernel(times: readonly DispatchTime[], most = 12): string[] {
  const sums = new Map<string, { ms: number; count: number }>();
  for (const { name, shader, ms } of times) {
    const key = name === shader ? name : `${name} (${shader})`;
    const { ms: before = 0, count = 0 } = sums.get(key) ?? {};
    sums.set(key, { ms: before + ms, count: count + 1 });
  }
  return [...sums].sort(([, a], [, b]) => b.ms - a.ms).slice(0, most).map(([name, { ms, count }]) =>
    `  ${ms.toFixed(3).padStart(9)} ms  ${String(count).padStart(4)} × ${name}`
  );
}
