// `deno task bench heartbeat`: how late the timer of the main thread gets while a model in a worker reads prompts and
// answers on all processors, with `priority: "low"` and without; and what the low priority costs (docs/beside-ui.md). The
// two take turns; gaps of all rounds are one sample. Left out: what a busy page does by itself.

import type { LoadOptions, Precision } from "../../mod.ts";
import { type Figure, machineName, median, ratioOf } from "../support/figures.ts";
import type { BenchModel } from "../support/models.ts";
import type { WorkerTask } from "./worker.ts";

/** What to measure. */
export interface HeartbeatOptions {
  readonly models: readonly BenchModel[];
  readonly device: "wasm" | "gpu";
  readonly threads: number;
  readonly precision: Precision;
  readonly rounds: number;
}

/** Milliseconds between two beats, as they are asked for. */
const BEAT_MS = 4;
const MAX_SUBMIT_MS = 8, PROMPT = 128, TOKENS = 32, ANSWERS = 4;

type Priority = "normal" | "low";

interface Measured {
  /** Milliseconds between two beats. */
  readonly gaps: number[];
  /** Tokens a second, by round. */
  readonly rates: number[];
}

/** Gaps at the 99th of 100 parts, and tokens a second. */
export async function* heartbeatBench(options: HeartbeatOptions): AsyncGenerator<Figure> {
  for (const { name, path, ids } of options.models) {
    const measured: Record<Priority, Measured> = {
      normal: { gaps: [], rates: [] },
      low: { gaps: [], rates: [] },
    };
    for (let round = 0; round < options.rounds; round++) {
      for (const priority of ["normal", "low"] as const) {
        await beside(taskOf({ path, ids }, priority, options), measured[priority]);
      }
    }
    const { normal, low } = measured;
    const figure = (what: string, unit: string, of: (one: Measured) => number): Figure => ({
      ...{ bench: "heartbeat", case: `${what}, ${name}, ${options.device}`, unit },
      ...{ value: of(low), peer: "priority normal", peerValue: of(normal), share: null },
      ...{ ratio: ratioOf(unit, of(low), of(normal)), machine: machineName() },
    });
    yield figure("99 of 100 gaps are below", "ms", ({ gaps }) => {
      return gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length * 0.99)] ?? NaN;
    });
    yield figure("prompts and answers", "tokens/s", ({ rates }) => median(rates));
  }
}

function taskOf(
  { path, ids }: Pick<BenchModel, "path" | "ids">,
  priority: Priority,
  { device, threads, precision }: HeartbeatOptions,
): WorkerTask {
  const options: LoadOptions = {
    ...{ device, precision, contextLength: 512, priority },
    ...device === "wasm" && { threads },
    ...priority === "low" && { maxSubmitMs: MAX_SUBMIT_MS },
  };
  // No prompt begins like another one.
  const prompts = Array.from({ length: ANSWERS + 1 }, (_, i) => [i + 1, ...ids.slice(1, PROMPT)]);
  return { path, options, prompts, tokens: TOKENS };
}

/** Beats while a worker does its task. */
async function beside(task: WorkerTask, { gaps, rates }: Measured): Promise<void> {
  const worker = new Worker(new URL("./worker.ts", import.meta.url).href, { type: "module" });
  const message = () => {
    return new Promise<unknown>((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = reject;
    });
  };
  let timer: ReturnType<typeof setInterval> | undefined;
  try {
    const ready = message();
    worker.postMessage(task);
    await ready;
    const done = message();
    let last = performance.now();
    timer = setInterval(() => {
      const now = performance.now();
      gaps.push(now - last);
      last = now;
    }, BEAT_MS);
    const ms = await done as number;
    rates.push(1000 * ANSWERS * (PROMPT + TOKENS) / ms);
  } finally {
    clearInterval(timer);
    worker.terminate();
  }
}
