// Steps on the GPU: send the inputs, submit one command buffer, take the outputs, or of a row of logits as much as will
// be looked at (logits.ts). In decoding every step is encoded like the one before, so its commands are made while the
// GPU still works on that one; only submitting and waiting are left between two tokens.

import type { Gpu } from "../../../gpu/gpu.ts";
import { isSameEnv, type Program } from "../../../gpu/program.ts";
import type { Readback, ReadbackUse } from "../../../gpu/readback.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import type { RankedWish } from "../backend.ts";
import type { GpuLogits, LogitsKind } from "./logits.ts";
import { type GpuOutput, inWords, rowOf, takeOutputs } from "./outputs.ts";
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
  /** Bytes of the outputs. */
  readonly bytes: readonly number[];
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
    const { commands, bytes } = isPrepared ? prepared! : encode(parts, bindings, kind);
    prepared = undefined;
    const total = totalOf(bytes);
    values.writeInputs();
    if (total > 0) readback.stamp();
    device.queue.submit([commands]);
    // What is done twice is likely done a third time.
    if (last && isSameEnv(last, bindings)) prepared = encode(parts, bindings, kind);
    last = bindings;
    if (total === 0) return;
    return readback.read(total, takeResults(parts, kind, bytes));
  };
}

/** Runs a step; the promise is there where results cannot be taken at once. */
export type RunStep = (bindings: DimEnv, wish?: RankedWish) => void | Promise<void>;

/** Takes what was fetched: outputs, or what is known of a row of logits. */
function takeResults(
  { outputs, logits }: StepParts,
  kind: LogitsKind,
  bytes: readonly number[],
): ReadbackUse {
  return kind === "row"
    ? (range, at) => takeOutputs(outputs, bytes, range, at)
    : (range, at) => logits!.take(kind, range, at, rowOf(outputs[0]!));
}

function encode(parts: StepParts, bindings: DimEnv, kind: LogitsKind): Encoded {
  const { gpu, program, outputs, readback, logits } = parts;
  const encoder = gpu.device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  program.encode(pass);
  if (kind === "best") logits!.feedback.encode(pass);
  if (kind === "top") logits!.top.encode(pass);
  pass.end();
  const source = logits?.source(kind);
  const bytes = source
    ? [source.bytes]
    : outputs.map(({ count, elementBytes }) => count(bindings) * elementBytes);
  const sources = source
    ? [source]
    : outputs.map(({ source }, i) => ({ ...source, bytes: inWords(bytes[i]!) }));
  const wanted = sources.filter(({ bytes }) => bytes > 0);
  if (wanted.length > 0) readback.copy(encoder, wanted);
  return { bindings, kind, commands: encoder.finish(), bytes };
}

function totalOf(bytes: readonly number[]): number {
  return bytes.reduce((sum, count) => sum + inWords(count), 0);
}

/** Medians, in ms, over some steps. */
export type HostTimes = Readonly<Record<"encode" | "inputs" | "submit" | "wait and read", number>>;

const HOST_STEPS = 20;
/** What a greedy answer wants. */
const BEST: RankedWish = { best: Int32Array.of(1), repeats: 0 };

/** Measures the parts of a greedy answer's step on the host, one behind the other. */
export async function timeHost(parts: StepParts, given: DimEnv): Promise<HostTimes> {
  const { gpu: { device }, program, values, readback, reach, logits } = parts;
  const bindings = reach.ofInputs(given);
  const kind = logits?.kindOf(given, BEST) ?? "row";
  const times: Record<keyof HostTimes, number[]> = {
    "encode": [],
    "inputs": [],
    "submit": [],
    "wait and read": [],
  };
  program.bind(bindings);
  for (let i = 0; i < HOST_STEPS; i++) {
    const marks = [performance.now()];
    const { commands, bytes } = encode(parts, bindings, kind);
    marks.push(performance.now());
    values.writeInputs();
    readback.stamp();
    marks.push(performance.now());
    device.queue.submit([commands]);
    marks.push(performance.now());
    await readback.read(totalOf(bytes), takeResults(parts, kind, bytes));
    marks.push(performance.now());
    Object.values(times).forEach((list, n) => list.push(marks[n + 1]! - marks[n]!));
  }
  const middle = (list: number[]) => list.sort((a, b) => a - b)[list.length >> 1]!;
  return Object.fromEntries(
    Object.entries(times).map(([name, list]) => [name, middle(list)]),
  ) as HostTimes;
}
