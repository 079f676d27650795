// Loads the model of a command: the default one when none is named, with a progress bar while it is
// fetched and read.

import { load } from "../models/load.ts";
import type { LoadOptions, Model } from "../models/model.ts";
import { defaultModel } from "../formats/hub/catalogue.ts";
import type { Context } from "./command.ts";
import { createProgressBar } from "./progress.ts";

/** Loads `name`; a Ctrl-C while loading stops it. */
export async function openModel(
  name: string | undefined,
  options: LoadOptions,
  { terminal, signal, quiet }: Pick<Context, "terminal" | "signal"> & { readonly quiet: boolean },
): Promise<Model> {
  const model = name ?? defaultModel;
  const bar = createProgressBar(terminal, quiet);
  // A cached model is ready before a bar could be read.
  const patience = 500;
  const start = performance.now();
  try {
    return await load(model, {
      ...options,
      signal,
      onProgress: ({ phase, loadedBytes, totalBytes }) => {
        if (phase === "load" && performance.now() - start < patience) return;
        const label = phase === "download" ? `Fetching ${model}` : `Loading ${model}`;
        bar.update(label, loadedBytes, totalBytes);
      },
    });
  } finally {
    bar.end();
  }
}
