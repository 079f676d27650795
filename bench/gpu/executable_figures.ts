// The executable of a model, below sessions and sampling: prompts, decoding one token at a time and ahead, many queries, and
// the time of its kernels. All ask for the most probable token, as a greedy answer does.

import { closing } from "../../engine/byte_source.ts";
import { gpuOption } from "../../engine/cli/gpu_flag.ts";
import { openModel } from "../../engine/models/open_model.ts";
import { type PreparedModel, prepareModel } from "../../engine/models/prepare.ts";
import { openDevice } from "../../engine/run/devices.ts";
import { type PlanExecutable, prepareExecutable } from "../../engine/run/executable.ts";
import { createGpuBackend, type GpuPlan } from "../../engine/run/gpu/backend.ts";
import { addRows, clearStep, createStep, type Step, WANTED } from "../../engine/run/step.ts";
import { type Gpu, openGpu } from "../../gpu/gpu.ts";
import { type Figure, median } from "../support/figures.ts";
import { figureMaker, type MakeFigure, rateFigures } from "./figures.ts";
import { type Part, type PartOptions, QUERIES } from "./mod.ts";
import { textIds } from "./models.ts";
import { readTime } from "./read.ts";
import { createGpuTimer } from "./timer.ts";
import { timeHost, timeKinds } from "./timing.ts";

const BATCH = 512;
/** Work before something is measured. */
const BUSY_MS = 700;
/** Decoding before it is measured. */
const WARM_MS = 1000;
/** What takes longer is not loaded twice. */
const PATIENCE_MS = 4000;
/** Reads that are the limit which kernels are held against, and the memory that they go over. */
const READS = 8, READ_BYTES = 512 << 20;

interface Bench {
  readonly gpu: Gpu;
  readonly prepared: PreparedModel;
  readonly options: PartOptions;
  readonly figure: MakeFigure;
  /** Tokens of a text. */
  readonly ids: readonly number[];
}

/** The figures of one part, in this process. */
export async function* executableFigures(part: Part, options: PartOptions): AsyncGenerator<Figure> {
  const { contexts, prompts, decode, precision, model } = options;
  const { gpu: provider } = await gpuOption({ gpu: options.gpu });
  const opening = performance.now();
  const gpu = await openGpu(provider ? { provider } : {});
  const openMs = performance.now() - opening;
  const longest = Math.max(...contexts, ...prompts);
  const file = await openModel(model.path);
  using _file = closing(file);
  const prepared = await prepareModel(file, {
    options: part === "batch"
      ? { contextLength: Math.max(decode, BATCH), sessions: Math.max(...QUERIES), precision }
      : { contextLength: longest + decode + BATCH, batch: BATCH, precision },
    kernels: await openDevice("gpu", { gpu: provider }),
  });
  const { vocabulary } = prepared.params;
  const ids = await textIds(model, { count: longest + BATCH, vocabulary });
  const bench = { gpu, prepared, options, figure: figureMaker(gpu, options), ids };
  if (part === "batch") yield* batchFigures(bench);
  else {
    const start = performance.now();
    const executable = await prepare(bench, part === "ahead" ? options.ahead : 0);
    const loadMs = performance.now() - start;
    const loads = [["open the device", openMs], ["load the weights of", loadMs]] as const;
    if (part === "plain") { for (const [name, ms] of loads) yield bench.figure(name, "ms", ms); }
    yield* loadedFigures(bench, { part, executable, loadMs });
  }
  gpu.dispose();
}

async function* loadedFigures(
  bench: Bench,
  { part, executable: first, loadMs }: {
    readonly part: Part;
    readonly executable: Measured;
    readonly loadMs: number;
  },
): AsyncGenerator<Figure> {
  const { options, figure, gpu } = bench, { prompts, contexts } = options;
  let executable = first;
  await keepBusy(bench, executable);
  if (part === "plain") {
    if (loadMs < PATIENCE_MS) {
      executable.dispose();
      const again = performance.now();
      executable = await prepare(bench, 0);
      const name = `load again, ${gpu.pipelines.count} shaders compiled,`;
      yield figure(name, "ms", performance.now() - again);
    }
    await keepBusy(bench, executable);
    for (const length of prompts) {
      const rates = await rounds(options, async () => (
        length / await prefill(bench, executable, { length, position: 0 }) * 1000
      ));
      yield figure(`prefill ${length}`, "tokens/s", median(rates));
    }
  }
  const how = part === "ahead" ? `${options.ahead} ahead` : "one at a time";
  const limit = part === "kernels" ? await readLimit(gpu) : 0;
  for (const context of contexts) {
    await keepBusy(bench, executable);
    if (part === "kernels") yield* kernelFigures(bench, executable, { context, rows: 1, limit });
    else yield* decodeFigures(bench, executable, { context, how });
  }
  if (part === "kernels") {
    const sizes = new Set(prompts.map((length) => Math.min(length, BATCH)));
    for (const rows of sizes) yield* kernelFigures(bench, executable, { context: 0, rows, limit });
  }
  executable.dispose();
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

/** Results of the rounds that count. */
async function rounds(
  { rounds }: PartOptions,
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
async function keepBusy(bench: Bench, executable: Measured): Promise<void> {
  const end = performance.now() + BUSY_MS;
  while (performance.now() < end) await prefill(bench, executable, { length: BATCH, position: 0 });
}

/** Computes so many tokens of the text; the milliseconds that it takes, the last one's best token included. */
async function prefill(
  { ids }: Bench,
  { step, run }: Measured,
  { length, position }: { readonly length: number; readonly position: number },
): Promise<number> {
  const start = performance.now();
  for (let done = 0; done < length; done += BATCH) {
    const from = position + done, tokens = ids.slice(from, from + Math.min(BATCH, length - done));
    const isLast = done + BATCH >= length;
    clearStep(step);
    addRows(step, { tokens, position: from, slot: 0, wanted: isLast ? 1 : WANTED.nothing });
    await run(step);
  }
  return performance.now() - start;
}

/** Most probable token. */
function best(logits: Float32Array): number {
  let at = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i]! > logits[at]!) at = i;
  return at;
}

/** Milliseconds of each of `count` greedy steps after `context` positions of the text, and their tokens. */
async function decode(
  { ids }: Pick<Bench, "ids">,
  executable: Measured,
  { context, count }: { readonly context: number; readonly count: number },
): Promise<{ readonly times: number[]; readonly distinct: Set<number> }> {
  const { step } = executable;
  const times: number[] = [], distinct = new Set<number>();
  const tokens = [ids[context]!];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    if (i > 0) tokens[0] = executable.best(0)?.ids[0] ?? best(executable.logits(0));
    distinct.add(tokens[0]!);
    clearStep(step);
    addRows(step, { tokens, position: context + i, slot: 0, wanted: 1 });
    step.feedback = count - i - 1;
    await executable.run(step);
    times.push(performance.now() - start);
  }
  return { times, distinct };
}

/** Tokens a second of many greedy answers, a row of each in every step. */
async function* batchFigures(bench: Bench): AsyncGenerator<Figure> {
  const { gpu, options, prepared: { plan }, ids } = bench, { decode: length, ahead } = options;
  const backend = createGpuBackend({ gpu, stepsAhead: ahead, warmUp: true });
  const executable = await prepareExecutable(backend, { plan, slots: Math.max(...QUERIES) });
  const slots = Array.from({ length: Math.max(...QUERIES) }, () => executable.openSlot());
  const step = createStep(slots.length);
  async function answers(count: number): Promise<number> {
    const start = performance.now(), tokens = slots.map((slot) => ids[7 * slot]!);
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
    yield bench.figure(`decode of ${count} queries, ${ahead} ahead,`, "tokens/s", median(rates));
  }
  executable.dispose();
}

async function* decodeFigures(
  bench: Bench,
  executable: Measured,
  { context, how }: { readonly context: number; readonly how: string },
): AsyncGenerator<Figure> {
  const { options, figure } = bench, count = options.decode;
  if (context > 0) await prefill(bench, executable, { length: context, position: 0 });
  const end = performance.now() + WARM_MS;
  while (performance.now() < end) await decode(bench, executable, { context, count });
  const rates: number[] = [], steps: number[] = [];
  let distinct = 0;
  for (let round = 0; round < options.rounds; round++) {
    const start = performance.now();
    const run = await decode(bench, executable, { context, count });
    rates.push(count / (performance.now() - start) * 1000);
    steps.push(...run.times);
    distinct = run.distinct.size;
  }
  yield* rateFigures(figure, { name: `decode at ${context}, ${how}`, rates, steps, distinct });
  if (executable.prepared.foreseenSteps > 0) {
    const name = `decode at ${context}, ${how}: steps foreseen`;
    yield figure(name, "", executable.prepared.foreseenSteps);
    return;
  }
  const times = await timeHost(executable.prepared, { M: 1, L: 1 });
  for (const [name, ms] of Object.entries(times)) {
    yield figure(`at ${context}: host, ${name}`, "ms", ms);
  }
}

/** Bytes a millisecond that a plain read gets of this device. */
async function readLimit(gpu: Gpu): Promise<number> {
  if (!gpu.capabilities.timestamp || gpu.capabilities.isSoftware) return 0;
  const poolBytes = Math.min(READ_BYTES, gpu.capabilities.maxBindingBytes);
  const timer = await createGpuTimer(gpu, {
    ...{ poolBytes, roomBytes: 1 << 16, rounds: 3, warmTurns: 20_000 },
  });
  return poolBytes / await readTime(timer, poolBytes / READS, READS) * 1000;
}

/** Time of a step by kernel, and what part of the measured reading of memory its weights make. */
async function* kernelFigures(
  bench: Bench,
  executable: Measured,
  { context, rows, limit }: {
    readonly context: number;
    readonly rows: number;
    readonly limit: number;
  },
): AsyncGenerator<Figure> {
  const { figure, gpu } = bench;
  if (!gpu.capabilities.timestamp) return;
  if (rows === 1) await decode(bench, executable, { context, count: 1 });
  else await prefill(bench, executable, { length: rows, position: context });
  const kinds = await timeKinds(executable.prepared, { M: rows, L: 1 });
  const where = rows === 1 ? `at ${context}` : `prompt of ${rows}`;
  const whole = kinds.reduce((sum, { ms }) => sum + ms, 0);
  const { dispatches } = executable.prepared;
  yield figure(`GPU time of a step, ${where}, ${dispatches} dispatches`, "ms", whole);
  for (const { name, calls, bytes, ms } of kinds) {
    const rate = bytes / ms, hasRate = bytes > 1e5;
    const speed = hasRate ? `, ${(rate / 1e6).toFixed(0)} GB/s` : "";
    const part = `${(100 * ms / whole).toFixed(0)} % of the step`;
    const share = hasRate && limit > 0 ? rate / limit : null;
    yield figure(`${where}: ${calls} × ${name}${speed}, ${part}`, "ms", ms, share);
  }
}
