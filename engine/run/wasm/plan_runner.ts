// Runs of a plan on the WASM machine: its parts in order, programs and steps of the host, in one go, or in pieces where that is
// asked for or where somebody may stop it.

import type { ProfileEntry, Program } from "../../../wasm/program.ts";
import type { WaveRange } from "../../../wasm/program_ranges.ts";
import { DeviceError } from "../../errors.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import type { Plan } from "../../plan/plan.ts";
import type { PreparedPlan } from "../backend.ts";
import type { PlanUse } from "../plan_use.ts";
import { createPieces, type PiecedRun, type PiecedWork } from "../pieces.ts";
import type { WasmBestLogits } from "./best_logits.ts";
import { createHostClock } from "./host_steps.ts";
import type { LoweredPart } from "./lowering.ts";
import type { WeightStream } from "./weight_stream.ts";

/** What a run consists of beside the parts. */
export interface PlanRunnerOptions {
  readonly plan: Plan;
  readonly use: PlanUse;
  /** Of bindings, and of what stands in inputs. */
  readonly checks: readonly ((bindings: DimEnv) => void)[];
  readonly best: WasmBestLogits | undefined;
  readonly stream: WeightStream | undefined;
  /** Milliseconds of a piece; absent: runs are not cut. */
  readonly maxMs: number | undefined;
  /** Whether time is measured. */
  readonly profile: boolean;
}

/** What runs a plan, and what its kernels took since that was last asked. */
export interface PlanRunner {
  readonly run: PreparedPlan["run"];
  profile(): ProfileEntry[];
}

/** Makes the runner of lowered parts. */
export function createPlanRunner(
  parts: readonly LoweredPart[],
  { plan, use, checks, best, stream, maxMs, profile }: PlanRunnerOptions,
): PlanRunner {
  const clock = createHostClock();
  // Slots of streamed weights are right for the next run at the end of one alone.
  const runAll = partsRunner(parts, { maxMs, mayStop: !stream, runPart });

  function runProgram(program: Program, bindings: DimEnv, range?: WaveRange): void {
    try {
      program.run(bindings, range);
    } catch (cause) {
      throw new DeviceError((cause as Error).message, { place: plan.graph.name, cause });
    }
  }

  function runPart(part: LoweredPart, bindings: DimEnv, range?: WaveRange): void {
    if (range) use.checkAlive(); // others may have had a turn
    if (!("runOnHost" in part)) runProgram(part, bindings, range);
    else if (profile) clock.run(part, bindings);
    else part.runOnHost(bindings);
  }

  return {
    run(bindings, wish, signal) {
      use.checkRun(bindings);
      for (const check of checks) check(bindings);
      best?.forget();
      stream?.refresh();
      const end = () => void (wish && best?.find(bindings, wish, runProgram));
      const done = runAll(bindings, signal);
      if (done) return done.then(end);
      end();
    },
    profile() {
      const programs = best ? [...parts, best.program] : parts;
      return [
        ...programs.flatMap((part) => "profile" in part ? part.profile() : []),
        ...clock.take(),
      ];
    },
  };
}

/** Runs a part, or some waves of it. */
type RunPart = (part: LoweredPart, bindings: DimEnv, range?: WaveRange) => void;

/** What runs all parts: in pieces where that is asked for, or where somebody may stop it; else in one go. */
function partsRunner(
  parts: readonly LoweredPart[],
  { maxMs, mayStop, runPart }: {
    readonly maxMs: number | undefined;
    readonly mayStop: boolean;
    readonly runPart: RunPart;
  },
): PiecedRun {
  const work = workOfParts(parts, runPart);
  const paced = maxMs === undefined ? undefined : createPieces(work, maxMs);
  let stoppable: PiecedRun | undefined;
  return (bindings, signal) => {
    const heard = mayStop ? signal : undefined;
    const inPieces = paced ?? (heard && (stoppable ??= createPieces(work)));
    if (inPieces) return inPieces(bindings, heard);
    for (const part of parts) runPart(part, bindings);
  };
}

/** Waves of programs and steps of the host, in order. */
function workOfParts(
  parts: readonly LoweredPart[],
  run: RunPart,
): PiecedWork {
  let count = 0;
  const items = parts.map((part) => {
    const first = count;
    count += "runOnHost" in part ? 1 : part.waves;
    return { part, first, end: count };
  });
  return {
    count,
    run(bindings, range) {
      for (const { part, first, end } of items) {
        const from = Math.max(first, range.first), to = Math.min(end, range.first + range.count);
        if (from < to) run(part, bindings, { first: from - first, count: to - from });
      }
    },
  };
}
