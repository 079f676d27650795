// Steps whose weights come and go (spec LF-9 on WebGPU): a step is cut before every product that reads a streamed weight,
// and each piece is a submission, in front of which its weights are written to their slots. Writes and submissions keep
// their order in the queue, so a slot is overwritten when its last reader is done, and while the GPU computes a piece this
// thread reads the weights of the next ones, which the GPU arranges, or this thread where it can't. What is written waits in host memory for the GPU; so the queue is let
// run empty whenever so much has been written as the slots hold.
//
// Left out: mixtures, whose experts all stay; the best of logits and steps ahead, since a step is long.

import type { GpuMemory } from "../../../gpu/gpu.ts";
import {
  createProgram,
  isSameEnv,
  type Program,
  type ProgramDispatch,
} from "../../../gpu/program.ts";
import type { Readback } from "../../../gpu/readback.ts";
import { FormatError } from "../../errors.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import type { Plan } from "../../plan/plan.ts";
import type { StreamingFigures } from "../backend.ts";
import { unreadable } from "../streaming/files.ts";
import type { StreamPlan } from "../streaming/slots.ts";
import type { Reach } from "./cache_reach.ts";
import { type GpuOutput, outputCopies } from "./outputs.ts";
import type { RunStep } from "./steps.ts";
import type { GpuValues } from "./values.ts";
import { createMatrixLoader, type GpuWeights } from "./weights.ts";

/** What streamed steps are made of. */
export interface StreamedStepParts {
  readonly scope: GpuMemory;
  readonly plan: Plan;
  readonly stream: StreamPlan;
  readonly weights: GpuWeights;
  readonly values: GpuValues;
  readonly outputs: readonly GpuOutput[];
  readonly readback: Readback;
  readonly reach: Reach;
  /** The dispatches of each step of the plan. */
  readonly dispatches: readonly (readonly ProgramDispatch<DimEnv>[])[];
}

/** Streamed steps. */
export interface StreamedStep {
  readonly run: RunStep;
  /** Figures since the last call. */
  take(): StreamingFigures;
}

/** Dispatches behind the weights that the first of them read. */
interface Piece {
  readonly needs: readonly Value[];
  readonly program: Program<DimEnv>;
}

/** Less is written without a wait, each of which takes some 10 ms. */
const LEAST_UNDER_WAY = 256 << 20;

/** @throws {GpuFailure} If a shader is refused or there is no memory. */
export async function createStreamedStep(
  { scope, plan, stream, weights, values, outputs, readback, reach, dispatches }: StreamedStepParts,
): Promise<StreamedStep> {
  const { device } = scope, { queue } = device;
  const moving = new Set(stream.kinds.flatMap(({ weights }) => weights.map(({ id }) => id)));
  const pieces = await Promise.all(
    cut(plan, moving).map(async ({ needs, steps }): Promise<Piece> => ({
      needs,
      program: await createProgram(scope, {
        dispatches: steps.flatMap((step) => dispatches[step]!),
        eager: [],
      }),
    })),
  );
  const most = Math.max(LEAST_UNDER_WAY, stream.slotBytes);
  const load = createMatrixLoader(scope);
  let steps = 0, loadMs = 0, waitedMs = 0, underWay = 0;
  /** The last step's sizes, and what it takes when nothing is loaded. */
  let alone: { readonly bindings: DimEnv; readonly ms: number } | undefined;

  async function write(value: Value): Promise<void> {
    const begin = performance.now();
    try {
      await load(weights.matrices.get(value.id)!, value.tensor!);
    } catch (error) {
      throw error instanceof FormatError ? unreadable(value) : error;
    }
    loadMs += performance.now() - begin;
    underWay += value.tensor!.byteLength;
  }

  async function compute(
    given: DimEnv,
    isLoading: boolean,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const bindings = reach.ofInputs(given);
    values.writeInputs(bindings);
    for (const { needs, program } of pieces) {
      signal?.throwIfAborted();
      if (isLoading) { for (const value of needs) await write(value); }
      program.bind(bindings);
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      program.encode(pass);
      pass.end();
      queue.submit([encoder.finish()]);
      if (underWay < most) continue;
      underWay = 0;
      await queue.onSubmittedWorkDone();
    }
    const { sources, bytes, take } = outputCopies(outputs, bindings);
    if (bytes === 0) return;
    const encoder = device.createCommandEncoder();
    readback.copy(encoder, sources);
    readback.stamp();
    queue.submit([encoder.finish()]);
    await readback.read(bytes, take);
  }

  async function timed(
    bindings: DimEnv,
    isLoading: boolean,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    const begin = performance.now();
    await compute(bindings, isLoading, signal);
    return performance.now() - begin;
  }

  return {
    async run(bindings, _wish, signal) {
      // What it takes with whatever weights are there: rows that it stores are stored anew by the step itself.
      const known = alone && isSameEnv(alone.bindings, bindings);
      if (!known) alone = { bindings: { ...bindings }, ms: await timed(bindings, false, signal) };
      const before = loadMs, ms = await timed(bindings, true, signal);
      waitedMs += Math.max(0, Math.min(loadMs - before, ms - alone!.ms));
      steps++;
    },
    take() {
      const hidden = loadMs > 0 ? 1 - waitedMs / loadMs : 1;
      const figures = { steps, loadMs, waitedMs, hidden };
      steps = loadMs = waitedMs = 0;
      return figures;
    },
  };
}

/** Steps of a plan behind the streamed weights that the first of each run reads. */
function cut(
  plan: Plan,
  moving: ReadonlySet<number>,
): { readonly needs: Value[]; readonly steps: number[] }[] {
  const pieces: { needs: Value[]; steps: number[] }[] = [{ needs: [], steps: [] }];
  plan.steps.forEach(({ node }, step) => {
    const needs = node.inputs.filter((value) => value && moving.has(value.id)) as Value[];
    if (needs.length > 0) pieces.push({ needs, steps: [] });
    pieces.at(-1)!.steps.push(step);
  });
  return pieces;
}
