// Steps on the GPU: send the inputs, submit one command buffer, take the outputs, or of rows of logits as much as will
// be looked at (logits.ts); where that is nothing, nothing is waited for, so that the steps of a prompt follow each other
// without a gap. In decoding every step is encoded like the one before, so its commands are made while the GPU still works
// on that one; only submitting and waiting are left between two tokens. Of a step that nobody has foreseen the GPU begins
// with the first dispatches while the others are encoded. A step of an encoder lets events through before it encodes the next
// one, and before it waits: steps of other models are handed over meanwhile, and their next ones encoded, so that the device
// goes on with them (a picture and a text at once). One of many rows lets them through before it waits, so that the next need
// not wait for a turn of the event loop.

import type { Gpu } from "../../../gpu/gpu.ts";
import { isSameEnv, type Program } from "../../../gpu/program.ts";
import { bytesOfAll, type Readback, type ReadbackUse } from "../../../gpu/readback.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import { pause } from "../../pause.ts";
import type { RankedWish } from "../backend.ts";
import type { GpuLogits, LogitsPick } from "./logits.ts";
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
  /** Whether a run lets events through before its results are waited for. */
  readonly pauses?: boolean;
}

/** Commands that wait to be submitted. */
interface Encoded {
  readonly bindings: DimEnv;
  /** Absent: all outputs whole. */
  readonly pick: LogitsPick | undefined;
  readonly commands: GPUCommandBuffer;
  /** Bytes that they bring, and what takes them. */
  readonly bytes: number;
  readonly take: ReadbackUse;
}

/** Dispatches that a device may begin with while the others of a step are encoded, if those are as many at least. */
const HEAD = 24;

/** Rows from which on a step takes a device longer than a turn of the event loop takes this thread. */
const LONG = 128;

/** Steps in a row that nobody waits for: a longer prompt can still be stopped, and does not fill the queue. */
const MOST_QUEUED = 8;

/** Makes the function that runs a step. */
export function createStep(parts: StepParts): RunStep {
  const { gpu: { device }, program, values, readback, reach, logits, pauses } = parts;
  let last: DimEnv | undefined;
  // Of the last step: decoding asks each time.
  let isLong = false;
  let prepared: Encoded | undefined;
  let queued = 0;

  /** Waits for what was submitted so far. */
  function catchUp(): void | Promise<void> {
    const encoder = device.createCommandEncoder();
    readback.copy(encoder, []);
    readback.stamp();
    device.queue.submit([encoder.finish()]);
    return readback.read(0, () => {});
  }

  /** Submits the first dispatches of a step that is bound; how many they are. */
  function submitHead(): number {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    program.encode(pass, { first: 0, count: HEAD });
    pass.end();
    device.queue.submit([encoder.finish()]);
    return HEAD;
  }

  async function readLater(
    { bytes, take }: Pick<Encoded, "bytes" | "take">,
    encodeNext: () => void,
  ): Promise<void> {
    await pause();
    encodeNext();
    // To read may take until all that was handed over is done.
    await pause();
    await readback.read(bytes, take);
  }

  return (given, wish) => {
    const bindings = reach.ofInputs(given);
    const pick = logits?.pickOf(given, wish);
    program.bind(bindings);
    const isPrepared = prepared && prepared.pick === pick &&
      isSameEnv(prepared.bindings, bindings);
    values.writeInputs(bindings);
    const first = !isPrepared && program.activeCount >= 2 * HEAD ? submitHead() : 0;
    const { commands, bytes, take } = isPrepared
      ? prepared!
      : encode(parts, { bindings, pick, first });
    prepared = undefined;
    if (bytes > 0) readback.stamp();
    device.queue.submit([commands]);
    // What is done twice is likely done a third time.
    const isUsual = last !== undefined && isSameEnv(last, bindings);
    if (!isUsual) isLong = Object.values(given).some((size) => size >= LONG);
    const encodeNext = () => {
      if (isUsual) prepared = encode(parts, { bindings, pick });
    };
    last = bindings;
    queued = bytes > 0 ? 0 : (queued + 1) % MOST_QUEUED;
    if (bytes > 0 && pauses) return readLater({ bytes, take }, encodeNext);
    encodeNext();
    if (bytes > 0 && isLong) return pause().then(() => readback.read(bytes, take));
    if (bytes > 0) return readback.read(bytes, take);
    if (queued === 0) return catchUp();
  };
}

/** Runs a step; the promise is there where results cannot be taken at once. */
export type RunStep = (
  bindings: DimEnv,
  wish?: RankedWish,
  signal?: AbortSignal,
) => void | Promise<void>;

/** Encodes a step, from a dispatch on, that brings its outputs, or of rows of logits as much as will be looked at. */
export function encode(
  parts: StepParts,
  { bindings, pick, first = 0 }: Pick<Encoded, "bindings" | "pick"> & { readonly first?: number },
): Encoded {
  const { gpu, program, readback, logits } = parts;
  const encoder = gpu.device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  program.encode(pass, { first, count: program.activeCount - first });
  if (pick) logits!.encode(pass, pick);
  pass.end();
  const { sources, bytes, take } = copiesOfStep(parts, { bindings, pick });
  if (bytes > 0) readback.copy(encoder, sources);
  return { bindings, pick, commands: encoder.finish(), bytes, take };
}

/** What a step brings: its outputs, or of rows of logits as much as will be looked at. */
export function copiesOfStep(
  { outputs, logits }: Pick<StepParts, "outputs" | "logits">,
  { bindings, pick }: Pick<Encoded, "bindings" | "pick">,
): OutputCopies {
  return pick ? copiesOf(logits!, pick, outputs[0]!) : outputCopies(outputs, bindings);
}

function copiesOf(logits: GpuLogits, pick: LogitsPick, output: GpuOutput): OutputCopies {
  const sources = logits.sources(pick), source = rowOf(output);
  return {
    sources,
    bytes: bytesOfAll(sources),
    take: (range, at) => logits.take(pick, pick.rows, { range, at, source }),
  };
}
