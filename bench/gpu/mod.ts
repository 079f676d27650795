// `deno task bench gpu`: whole steps of models of known shapes with random weights on this machine's WebGPU device.
// Decoding is measured one token at a time (each is read before the next is submitted) and with steps submitted
// ahead, the latter also for many queries at once; all ask for the most probable token, as a greedy answer does. A second
// of decoding comes before what counts, because clocks and compilers take their time. Loading includes making the random
// weights. Kernels are measured by GPU timestamps within such a step. Each part runs in a process of its own. Single
// kernels on rotating weights: bench/gpu/kernels.ts.

import { gpuOption } from "../../engine/cli/gpu_flag.ts";
import type { DimEnv } from "../../engine/graph/dim/mod.ts";
import { openDevice } from "../../engine/run/devices.ts";
import { type PreparedModel, prepareModel } from "../../engine/models/prepare.ts";
import { type PlanExecutable, prepareExecutable } from "../../engine/run/executable.ts";
import { createGpuBackend, type GpuPlan } from "../../engine/run/gpu/backend.ts";
import { addRows, clearStep, createStep, type Step, WANTED } from "../../engine/run/step.ts";
import { type Gpu, openGpu } from "../../gpu/gpu.ts";
import { startChild } from "../../tools/support/children.ts";
import { type Figure, machineName, median } from "../support/figures.ts";
import { type LlamaShape, SHAPES, syntheticLlama } from "./synthetic.ts";
import { timeHost, timeStep } from "./timing.ts";

/** What to measure. */
export interface GpuBenchOptions {
  /** Names of shapes. */
  readonly models: readonly string[];
  /** Rounds that count; the first one is thrown away. */
  readonly rounds: number;
  /** Lengths of prompts. */
  readonly prompts: readonly number[];
  /** Tokens of a decode run. */
  readonly decode: number;
  /** Positions before decoding begins. */
  readonly contexts: readonly number[];
  /** Steps ahead. */
  readonly ahead: number;
  readonly precision: "fast" | "exact";
  /** Whose WebGPU, as `--gpu` says it. */
  readonly gpu: string;
}

const BATCH = 512;
/** Queries in one step. */
const QUERIES = [8, 32];
/** Work before something is measured. */
const BUSY_MS = 700;
/** Decoding before it is measured. */
const WARM_MS = 1000;
/** What takes longer is not loaded twice. */
const PATIENCE_MS = 4000;
/** Timed steps of the table of kernels. */
const TIMED = 5;

interface Bench {
  readonly gpu: Gpu;
  readonly shape: LlamaShape;
  readonly prepared: PreparedModel;
  readonly options: GpuBenchOptions;
}

/** What is measured in one process: a driver that hangs takes no other figures with it. */
export const PARTS = ["plain", "ahead", "batch", "kernels"] as const;
/** One of {@linkcode PARTS}. */
export type Part = typeof PARTS[number];

/** All figures, handed out as they are measured; what takes longer than `timeout` seconds is given up. */
export async function* gpuBench(
  options: GpuBenchOptions,
  { parts = PARTS, timeout }: { readonly parts?: readonly Part[]; readonly timeout: number },
): AsyncGenerator<Figure> {
  for (const model of options.models) {
    for (const part of parts) yield* inProcess({ ...options, models: [model] }, part, timeout);
  }
}

async function* inProcess(
  options: GpuBenchOptions,
  part: Part,
  timeout: number,
): AsyncGenerator<Figure> {
  const child = startChild(Deno.execPath(), {
    args: ["run", "--allow-all", "bench/gpu/part.ts", part, JSON.stringify(options)],
    cwd: new URL("../../", import.meta.url),
    stdout: "piped",
    stderr: "inherit",
  });
  const timer = setTimeout(() => {
    console.error(`${part} of ${options.models} is stuck after ${timeout} s: given up`);
    child.kill("SIGKILL");
  }, timeout * 1000);
  try {
    const lines = child.stdout.pipeThrough(new TextDecoderStream())
      .pipeThrough(new TextLineStream());
    for await (const line of lines) if (line.startsWith("{")) yield JSON.parse(line) as Figure;
    await child.status;
  } finally {
    clearTimeout(timer);
  }
}

/** Cuts text into lines. */
class TextLineStream extends TransformStream<string, string> {
  constructor() {
    let rest = "";
    super({
      transform(text, controller) {
        const lines = (rest + text).split("\n");
        rest = lines.pop()!;
        for (const line of lines) controller.enqueue(line);
      },
      flush(controller) {
        if (rest) controller.enqueue(rest);
      },
    });
  }
}

/** The figures of one part for one model, in this process. */
export async function* partFigures(part: Part, options: GpuBenchOptions): AsyncGenerator<Figure> {
  const [name] = options.models;
  const shape = SHAPES.find((candidate) => candidate.name === name);
  if (!shape) {
    const known = SHAPES.map((candidate) => candidate.name).join(", ");
    throw new RangeError(`Cannot measure "${name}": it is one of ${known}`);
  }
  const opening = performance.now();
  const gpu = await openGpu(await providerOf(options));
  const openMs = performance.now() - opening;
  const { contexts, prompts, decode, precision } = options;
  const contextLength = Math.max(...contexts, ...prompts) + decode + BATCH;
  const prepared = await prepareModel(
    syntheticLlama(shape),
    {
      options: {
        ...{ contextLength, batch: BATCH, precision },
        ...part === "batch" &&
          { contextLength: Math.max(decode, BATCH), sessions: Math.max(...QUERIES) },
      },
      kernels: await openDevice("gpu", {}),
    },
  );
  const bench = { gpu, shape, prepared, options };
  if (part === "batch") {
    yield* batchFigures(bench);
    return gpu.dispose();
  }
  const figure = figureMaker(bench);
  const start = performance.now();
  let executable = await prepare(bench, part === "ahead" ? options.ahead : 0);
  const loadMs = performance.now() - start;
  await keepBusy(executable);
  if (part === "plain") {
    yield figure("open the device", "ms", openMs);
    yield figure("load, weights made on the host", "ms", loadMs);
    if (loadMs < PATIENCE_MS) {
      executable.dispose();
      const again = performance.now();
      executable = await prepare(bench, 0);
      yield figure(
        `load again, ${gpu.pipelines.count} shaders compiled`,
        "ms",
        performance.now() - again,
      );
    }
    await keepBusy(executable);
    for (const length of prompts) {
      const rates = await rounds(
        options,
        async () => length / await prefill(executable, length, 0),
      );
      yield figure(`prefill ${length}`, "tokens/s", median(rates) * 1000);
    }
  }
  const how = part === "ahead" ? `${options.ahead} ahead` : "one at a time";
  for (const context of contexts) {
    await keepBusy(executable);
    if (part === "kernels") yield* kernelFigures(bench, executable, { context, rows: 1 });
    else yield* decodeFigures(bench, executable, context, how);
  }
  if (part === "kernels") {
    for (const length of prompts) {
      const rows = Math.min(length, BATCH);
      yield* kernelFigures(bench, executable, { context: 0, rows });
    }
  }
  executable.dispose();
  gpu.dispose();
}

async function providerOf({ gpu }: GpuBenchOptions) {
  const { gpu: provider } = await gpuOption({ gpu });
  return { ...provider && { provider } };
}

/** What is measured, with the table of its steps. */
interface Measured extends PlanExecutable<GpuPlan> {
  readonly step: Step;
}

async function prepare({ gpu, prepared }: Bench, stepsAhead: number): Promise<Measured> {
  const backend = createGpuBackend({ gpu, stepsAhead, warmUp: true });
  const executable = await prepareExecutable(backend, { plan: prepared.plan, slots: 1 });
  executable.openSlot();
  return { ...executable, step: createStep(BATCH) };
}

function figureMaker({ gpu, shape, options }: Bench) {
  const how = `${options.precision === "exact" ? ", exact" : ""}${
    options.gpu === "built-in" ? "" : ", Dawn"
  }`;
  return (name: string, unit: string, value: number, share: number | null = null): Figure => ({
    bench: "gpu",
    case: `${name} ${shape.name}${how}`,
    unit,
    value,
    peer: null,
    peerValue: null,
    ratio: null,
    share,
    machine: `${gpu.capabilities.adapter}, ${machineName()}`,
  });
}

/** Results of the rounds that count. */
async function rounds(
  { rounds }: GpuBenchOptions,
  measure: () => Promise<number>,
): Promise<number[]> {
  const results: number[] = [];
  for (let round = -1; round < rounds; round++) {
    const value = await measure();
    if (round >= 0) results.push(value);
  }
  return results;
}

/** Works for a while: an idle GPU runs at a fifth of its clock, and takes its time to leave it. */
async function keepBusy(executable: Measured): Promise<void> {
  const end = performance.now() + BUSY_MS;
  while (performance.now() < end) await prefill(executable, BATCH, 0);
}

/** Computes `length` tokens from a position on; the milliseconds that it takes, last logits included. */
async function prefill(executable: Measured, length: number, from: number): Promise<number> {
  const { step } = executable;
  const logits = executable.plan.graph.outputs.find(({ name }) => name === "logits")!;
  const vocabulary = logits.shape.at(-1) as number;
  const start = performance.now();
  for (let done = 0; done < length; done += BATCH) {
    const rows = Math.min(BATCH, length - done), position = from + done;
    const tokens = Array.from({ length: rows }, (_, row) => (position + row) * 7919 % vocabulary);
    clearStep(step);
    addRows(step, { tokens, position, slot: 0, wanted: WANTED.logits });
    await executable.run(step);
  }
  return performance.now() - start;
}

/** Most probable token. */
function best(logits: Float32Array): number {
  let at = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i]! > logits[at]!) at = i;
  return at;
}

/** Milliseconds of each of `count` greedy steps after `context` positions. */
async function decode(
  executable: Measured,
  context: number,
  count: number,
): Promise<number[]> {
  const { step } = executable;
  const times: number[] = [];
  const tokens = [0];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    if (i > 0) tokens[0] = executable.best(0)?.ids[0] ?? best(executable.logits(0));
    clearStep(step);
    addRows(step, { tokens, position: context + i, slot: 0, wanted: 1 });
    step.feedback = count - i - 1;
    await executable.run(step);
    times.push(performance.now() - start);
  }
  return times;
}

/** Tokens a second of many greedy answers, a row of each in every step. */
async function* batchFigures(bench: Bench): AsyncGenerator<Figure> {
  const { gpu, options, prepared: { plan } } = bench, { decode: length, ahead } = options;
  const backend = createGpuBackend({ gpu, stepsAhead: ahead, warmUp: true });
  const executable = await prepareExecutable(backend, { plan, slots: Math.max(...QUERIES) });
  const slots = Array.from({ length: Math.max(...QUERIES) }, () => executable.openSlot());
  const step = createStep(slots.length);
  async function answers(count: number): Promise<number> {
    const start = performance.now(), tokens = slots.map((slot) => 7919 * slot % 1000);
    for (let position = 0; position < length; position++) {
      clearStep(step);
      for (let row = 0; row < count; row++) {
        addRows(step, { tokens: [tokens[row]!], position, slot: slots[row]!, wanted: 1 });
      }
      step.feedback = length - position - 1;
      await executable.run(step);
      for (let row = 0; row < count; row++) {
        tokens[row] = executable.best(row)?.ids[0] ?? best(executable.logits(row));
      }
    }
    return count * length / (performance.now() - start) * 1000;
  }
  for (const count of QUERIES) {
    const end = performance.now() + WARM_MS;
    do await answers(count); while (performance.now() < end);
    const rates = await rounds(options, () => answers(count));
    yield figureMaker(bench)(
      `decode of ${count} queries, ${ahead} ahead`,
      "tokens/s",
      median(rates),
    );
  }
  executable.dispose();
}

async function* decodeFigures(
  bench: Bench,
  executable: Measured,
  context: number,
  how: string,
): AsyncGenerator<Figure> {
  const { options } = bench;
  const figure = figureMaker(bench);
  if (context > 0) await prefill(executable, context, 0);
  const warm = Math.min(16, options.decode >> 1);
  const end = performance.now() + WARM_MS;
  while (performance.now() < end) await decode(executable, context, options.decode);
  const rates: number[] = [];
  let slowest: number[] = [];
  for (let round = -1; round < options.rounds; round++) {
    await decode(executable, context, warm);
    const start = performance.now();
    const times = await decode(executable, context + warm, options.decode - warm);
    if (round < 0) continue;
    rates.push((options.decode - warm) / (performance.now() - start) * 1000);
    slowest = [...slowest, ...times];
  }
  slowest.sort((a, b) => a - b);
  yield figure(`decode at ${context}, ${how}`, "tokens/s", median(rates));
  yield figure(
    `decode at ${context}, ${how}, step p95`,
    "ms",
    slowest[Math.floor(0.95 * slowest.length)]!,
  );
  if (executable.prepared.foreseenSteps > 0) {
    yield figure(
      `decode at ${context}, ${how}: steps foreseen`,
      "",
      executable.prepared.foreseenSteps,
    );
  } else yield* hostFigures(bench, executable, context);
}

/** What the host does in a step, apart. */
async function* hostFigures(
  bench: Bench,
  executable: Measured,
  context: number,
): AsyncGenerator<Figure> {
  const figure = figureMaker(bench);
  const times = await timeHost(executable.prepared, { M: 1, L: 1 });
  for (const [name, ms] of Object.entries(times)) {
    yield figure(`at ${context}: host, ${name}`, "ms", ms);
  }
}

/** Time of a decode step by kernel, and what part of the weights' bytes a second it makes. */
async function* kernelFigures(
  bench: Bench,
  executable: Measured,
  { context, rows }: { readonly context: number; readonly rows: number },
): AsyncGenerator<Figure> {
  const figure = figureMaker(bench);
  if (!bench.gpu.capabilities.timestamp) return;
  const bindings: DimEnv = { M: rows, L: 1 };
  const where = rows === 1 ? `at ${context}` : `prompt of ${rows}`;
  const totals = new Map<string, { ms: number[]; bytes: number; calls: number }>();
  const steps: number[] = [];
  for (let i = 0; i < TIMED; i++) {
    await (rows === 1 ? decode(executable, context, 1) : prefill(executable, rows, context));
    const times = await timeStep(executable.prepared, bindings);
    const step = new Map<string, { ms: number; bytes: number; calls: number }>();
    for (const { name, shader, ms, weightBytes } of times) {
      const key = `${name} ${shader} of ${(weightBytes / 1e6).toFixed(2)} MB`;
      const known = step.get(key) ?? { ms: 0, bytes: 0, calls: 0 };
      step.set(key, {
        ms: known.ms + ms,
        bytes: known.bytes + weightBytes,
        calls: known.calls + 1,
      });
    }
    steps.push([...step.values()].reduce((sum, { ms }) => sum + ms, 0));
    for (const [key, { ms, bytes, calls }] of step) {
      const known = totals.get(key) ?? { ms: [], bytes, calls };
      known.ms.push(ms);
      totals.set(key, known);
    }
  }
  const whole = median(steps);
  yield figure(
    `GPU time of a step, ${where}, ${executable.prepared.dispatches} dispatches`,
    "ms",
    whole,
  );
  for (const [key, { ms, bytes, calls }] of totals) {
    const time = median(ms);
    const rate = bytes > 1e5 ? `, ${(bytes / time / 1e6).toFixed(0)} GB/s` : "";
    yield figure(`${where}: ${calls} × ${key}${rate}`, "ms", time, time / whole);
  }
}
