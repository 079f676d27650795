// Steps in pieces (run/pacer.ts): each is a submission that is waited for, so that whoever else draws with the GPU is
// served between two of them. The same dispatches in the same order: results have the same bits.

import type { DimEnv } from "../../graph/dim/mod.ts";
import { pause } from "../../pause.ts";
import type { RankedWish } from "../backend.ts";
import { Pacer } from "../pacer.ts";
import type { LogitsPick } from "./logits.ts";
import { copiesOfStep, createStep, type RunStep, type StepParts } from "./steps.ts";

/** Makes the function that runs a step, whole or in pieces of so many milliseconds. */
export function createStepOf(parts: StepParts, maxSubmitMs: number | undefined): RunStep {
  return maxSubmitMs === undefined ? createStep(parts) : createPacedStep(parts, maxSubmitMs);
}

function createPacedStep(parts: StepParts, maxSubmitMs: number): RunStep {
  const { program, values, reach, logits } = parts;
  const pacer = new Pacer(maxSubmitMs);
  return async (given: DimEnv, wish?: RankedWish, signal?: AbortSignal) => {
    const bindings = reach.ofInputs(given);
    const pick = logits?.pickOf(given, wish);
    program.bind(bindings);
    values.writeInputs(bindings);
    const total = program.activeCount;
    pacer.begin(bindings, total);
    for (let first = 0; first < total;) {
      const count = pacer.take(first), start = performance.now();
      const isLast = first + count >= total;
      await submit(parts, { first, count }, isLast ? { bindings, pick } : undefined);
      pacer.took(first, { count, ms: performance.now() - start });
      first += count;
      if (isLast) break;
      await pause();
      signal?.throwIfAborted();
    }
  };
}

/** Submits some dispatches, and behind the last ones what the step brings; waits for them. */
async function submit(
  parts: StepParts,
  range: { readonly first: number; readonly count: number },
  end: { readonly bindings: DimEnv; readonly pick: LogitsPick | undefined } | undefined,
): Promise<void> {
  const { gpu: { device }, program, logits, readback } = parts;
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  program.encode(pass, range);
  if (end?.pick) logits!.encode(pass, end.pick);
  pass.end();
  const copies = end && copiesOfStep(parts, end);
  readback.copy(encoder, copies?.sources ?? []);
  readback.stamp();
  device.queue.submit([encoder.finish()]);
  await readback.read(copies?.bytes ?? 0, copies?.take ?? (() => {}));
}
