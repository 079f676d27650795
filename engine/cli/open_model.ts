// Loads the model of a command: the default one when none is named. Fetching shows its own progress;
// reading the weights does so when it takes a while.

import { defaultModel } from "../formats/hub/catalogue.ts";
import { load } from "../models/load.ts";
import type { LoadOptions, Model, ModelProgress } from "../decode/model.ts";
import { checkLoad } from "./check_options.ts";
import type { Context } from "./command.ts";
import { readExcludedKernels } from "./excluded_kernels.ts";
import { fetchModel, type SourceFlags } from "./fetch.ts";
import { type GpuFlag, gpuOption } from "./gpu_flag.ts";
import { inFlags } from "./option_names.ts";
import { type SpecFlag, specOption } from "./spec_flag.ts";

const PATIENCE_MS = 700;
const REDRAW_MS = 100;

/** A loaded model and the name that the user gave it. */
export interface OpenedModel extends Disposable {
  readonly name: string;
  readonly model: Model;
}

/** Fetches if need be, then loads; a Ctrl-C stops either. */
export async function openModel(
  name: string = defaultModel,
  { flags, options, context }: {
    readonly flags: SourceFlags & SpecFlag & GpuFlag;
    readonly options: LoadOptions;
    readonly context: Pick<Context, "terminal" | "signal">;
  },
): Promise<OpenedModel> {
  const { terminal, signal } = context;
  checkLoad(options);
  const spec = await specOption(flags);
  const gpu = await gpuOption(flags);
  const path = await fetchModel(name, { flags, pick: context });
  const excludeKernels = await readExcludedKernels(flags["cache-dir"]);
  const start = performance.now();
  let drawn = 0;
  const draw = ({ received, total }: ModelProgress): void => {
    const now = performance.now();
    if (!terminal.progress || now - Math.max(start + PATIENCE_MS, drawn) < REDRAW_MS) return;
    drawn = now;
    const share = total ? `  ${Math.floor(received / total * 100)} %` : "";
    terminal.err(`\r\x1b[Kloading ${name}${share}`);
  };
  const wipe = (): void => {
    if (drawn > 0) terminal.err("\r\x1b[K");
    drawn = 0;
  };
  try {
    const model = await load(path, {
      ...options,
      ...spec,
      ...gpu,
      excludeKernels,
      signal,
      onProgress: draw,
    });
    wipe();
    for (const note of model.notes) terminal.err(`note: ${inFlags(note)}\n`);
    return { name, model, [Symbol.dispose]: () => model.dispose() };
  } finally {
    wipe();
  }
}
