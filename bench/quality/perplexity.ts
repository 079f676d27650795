// Perplexity by number format, of models whose stream was turned so that their weights lie on no grid
// (turn.ts): stored.ts says how a format is scored.

import { benchedFormats } from "../formats/case.ts";
import { openModel } from "../../engine/models/open_model.ts";
import type { PerplexityResult } from "../../engine/pipelines/perplexity.ts";
import { deleteAtInterrupt } from "../../tools/support/children.ts";
import { type Figure, machineName, ratioOf } from "../support/figures.ts";
import { measureInJobs } from "./jobs.ts";
import { lossOf, type LossOptions } from "./stored.ts";
import { turnModel, type TurnOptions } from "./turn.ts";

/** What to measure. */
export interface PerplexityBenchOptions extends LossOptions {
  readonly models: readonly { readonly name: string; readonly path: string }[];
  /** Dimensions of the turned stream; undefined: the model's own. */
  readonly width: number | undefined;
  /** Seed of the turn. */
  readonly seed: number;
  readonly formats: readonly string[];
  /** Formats at a time, which share the threads. */
  readonly jobs: number;
  /** Folder for files of a few gigabytes; undefined: where temporary files go. */
  readonly folder?: string;
}

/** Formats that are measured unless some are named: all that can be stored, and some with codes chosen by rounding. */
export const QUALITY_FORMATS: readonly string[] = [
  ...benchedFormats().filter(({ encode }) => encode).map(({ name, rowFamily = name }) => rowFamily),
  ...["GPTQ:Q4_0", "GPTQ:Q4_B64T1", "GPTQ:INT4_G128", "GPTQ:E0M4_G128", "AWQ:INT4_G128"],
];

/** Figures of all models, handed out as they are measured. */
export async function* perplexityBench(options: PerplexityBenchOptions): AsyncGenerator<Figure> {
  const folder = await Deno.makeTempDir({
    prefix: "troodon-quality-",
    ...options.folder !== undefined && { dir: options.folder },
  });
  deleteAtInterrupt(folder);
  try {
    for (const model of options.models) yield* figuresOfModel(model, folder, options);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function* figuresOfModel(
  { name, path }: PerplexityBenchOptions["models"][number],
  folder: string,
  options: PerplexityBenchOptions,
): AsyncGenerator<Figure> {
  const turned = `${folder}/turned.gguf`;
  const { width, seed } = options;
  await writeTurned(path, turned, { ...width !== undefined && { width }, seed });
  const label = `${name}${width === undefined ? "" : ` at ${width}`}${
    seed === 1 ? "" : `, seed ${seed}`
  }`;
  const figure = (what: string, unit: string, value: number, float?: number): Figure => ({
    ...{ bench: "quality", case: `${what} ${label}`, unit, value },
    peer: float === undefined ? null : "float",
    peerValue: float ?? null,
    ratio: ratioOf(unit, value, float ?? null),
    share: null,
    machine: machineName(),
  });
  const original = await lossOf(path, options);
  const float = await lossOf(turned, options);
  yield figure("perplexity float", "perplexity", float.perplexity, original.perplexity);
  const { text, windows, formats, jobs } = options;
  const threads = Math.max(1, Math.floor(options.threads / jobs));
  const tasks = formats.map((format) => ({
    ...{ format, model: turned, folder, text, windows, threads },
  }));
  for await (const { task: { format }, result } of measureInJobs(tasks, jobs)) {
    if (typeof result === "string") {
      console.error(`${format} is left out of ${label}: ${result}`);
      continue;
    }
    const { bits, error, loss } = result;
    yield figure(`bits ${format}`, "bits/weight", bits);
    yield figure(`error ${format}`, "% of rms", error * 100);
    yield figure(`perplexity ${format}`, "perplexity", loss.perplexity, float.perplexity);
    if (windows > 1) yield figure(`spread ${format}`, "% of perplexity", 100 * spread(loss, float));
  }
  await Deno.remove(turned);
}

/** Standard error of the relative rise over floats, from how much it differs between windows. */
function spread(loss: PerplexityResult, float: PerplexityResult): number {
  const rises = loss.windows.map(({ nll, scored }, i) => (nll - float.windows[i]!.nll) / scored);
  const mean = rises.reduce((sum, rise) => sum + rise, 0) / rises.length;
  const squares = rises.reduce((sum, rise) => sum + (rise - mean) ** 2, 0);
  return loss.perplexity / float.perplexity *
    Math.sqrt(squares / (rises.length - 1) / rises.length);
}

/** Writes a model whose stream was turned. */
export async function writeTurned(path: string, to: string, options: TurnOptions): Promise<void> {
  const file = await openModel(path);
  try {
    await turnModel(file, to, options);
  } finally {
    file.close();
  }
}
