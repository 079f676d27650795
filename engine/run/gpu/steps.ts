// Steps on the GPU: send the inputs, submit one command buffer, take the outputs, or of a row of logits as much as will
// be looked at (logits.ts). In decoding every step is encoded like the one before, so its commands are made while the
// GPU still works on that one; only submitting and waiting are left between two tokens.

import type { Gpu } from "../../../gpu/gpu.ts";
import { isSameEnv, type Program } from "../../../gpu/program.ts";
import type { Readback, ReadbackUse } from "../../../gpu/readback.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import type { RankedWish } from "../backend.ts";
import type { GpuLogits, LogitsKind } from "./logits.ts";
import { type GpuOutput, type OutputCopies, outputCopies, rowOf } from "./outputs.ts";
import type { Reach } from "./cache_reach.ts";
import type { GpuValues } from "./values.ts";

/** What steps are made of. */
export interface StepParts {
  readonly gpu: Gpu;
  readonly program: Program<DimEnv>;
  readonly values: GpuValues;
  readonly outputs: readonly GpuOutput[];
  readonly readback: Readback;
  readonly reach: Reach;
  readonly logits: GpuLogits | undefined;
}

/** Commands that wait to be submitted. */
interface Encoded {
  readonly bindings: DimEnv;
  readonly kind: LogitsKind;
  readonly commands: GPUCommandBuffer;
  /** Bytes that they bring, and what takes them. */
  readonly bytes: number;
  readonly take: ReadbackUse;
}

/** Makes the function that runs a step. */
export function createStep(parts: StepParts): RunStep {
  const { gpu: { device }, program, values, readback, reach, logits } = parts;
  let last: DimEnv | undefined;
  let prepared: Encoded | undefined;
  return (given, wish) => {
    const bindings = reach.ofInputs(given);
    const kind = logits?.kindOf(given, wish) ?? "row";
    program.bind(bindings);
    const isPrepared = prepared?.kind === kind && isSameEnv(prepared.bindings, bindings);
    const { commands, bytes, take } = isPrepared ? prepared! : encode(parts, { bindings, kind });
    prepared = undefined;
    values.writeInputs();
    if (bytes > 0) readback.stamp();
    device.queue.submit([commands]);
    // What is done twice is likely done a third time.
    if (last && isSameEnv(last, bindings)) prepared = encode(parts, { bindings, kind });
    last = bindings;
    if (bytes > 0) return readback.read(bytes, take);
  };
}

/** Runs a step; the promise is there where results cannot be taken at once. */
export type RunStep = (bindings: DimEnv, wish?: RankedWish) => void | Promise<void>;

/** Encodes a step that brings its outputs, or of a row of logits as much as will be looked at. */
export function encode(
  parts: StepParts,
  { bindings, kind }: { readonly bindings: DimEnv; readonly kind: LogitsKind },
): Encoded {
  const { gpu, program, outputs, readback, logits } = parts;
  const encoder = gpu.device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  program.encode(pass);
  if (kind === "best") logits!.feedback.encode(pass);
  if (kind === "top") logits!.top.encode(pass);
  pass.end();
  const found = logits?.source(kind);
  const { sources, bytes, take }: OutputCopies = found
    ? {
      sources: [found],
      bytes: found.bytes,
      take: (range, at) => logits!.take(kind, range, at, rowOf(outputs[0]!)),
    }
    : outputCopies(outputs, bindings);
  if (bytes > 0) readback.copy(encoder, sources);
  return { bindings, kind, commands: encoder.finish(), bytes, take };
}
