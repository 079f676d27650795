// What `serve` and `worker` take: models with names, and the bounds of what they may use.

import type { LoadOptions } from "../decode/model.ts";
import { SourceError } from "../errors.ts";
import { defaultModel } from "../formats/hub/catalogue.ts";
import { pathKind } from "../io.ts";
import { type Flags, type ParsedLine, UsageError } from "./args.ts";
import { LOAD_FLAGS, loadOptions, parseAdapter, SESSION_FLAGS, sessionOptions } from "./flags.ts";
import { otherGpu } from "./gpu_flag.ts";
import { specOption } from "./spec_flag.ts";
import { TEMPLATE_FLAGS, templateOption } from "./template_flag.ts";
import type { WorkerSettings } from "../serve/host/messages.ts";
import type { Context } from "./command.ts";

/** How models are held ready. */
export const MODELS_FLAGS = {
  ...SESSION_FLAGS,
  "max-memory": {
    type: "string",
    value: "SIZE",
    help: "most memory for models, as 2G or 800M: the least recently used goes first (no limit)",
  },
  ...TEMPLATE_FLAGS,
  ...LOAD_FLAGS,
} as const satisfies Flags;

/** The flags, parsed. */
export type ModelsFlags = ParsedLine<typeof MODELS_FLAGS>["flags"];

/** A model as it was named. */
export interface NamedModel {
  readonly name: string;
  readonly source: string;
}

/**
 * Models by name: `NAME=MODEL`, a name of the catalogue, or a path or address, which are called as their file without
 * its ending. Without any, the default model.
 *
 * @throws {UsageError} If two have one name.
 */
export function namedModels(positionals: readonly string[]): NamedModel[] {
  const given = positionals.length > 0 ? positionals : [defaultModel];
  const models = given.map((text) => {
    const [, name, source] = /^([\w.-]+)=(.+)$/.exec(text) ?? [];
    return name !== undefined ? { name, source: source! } : { name: fileName(text), source: text };
  });
  const twice = models.find(({ name }, index) =>
    models.findIndex((one) => one.name === name) < index
  );
  if (!twice) return models;
  throw new UsageError(
    `Two models are called ${twice.name}: name one of them, as NAME=${twice.source}`,
  );
}

function fileName(source: string): string {
  const path = source.replace(/[?#].*$/, "").replace(/@[^/]*$/, "").replace(/\/+$/, "");
  const last = path.split(/[/\\]/).at(-1)!;
  return last.replace(/\.(gguf|onnx|safetensors|bin|pth?)$/, "") || source;
}

/**
 * What a worker needs to know. Fetches what is not on this machine, with progress.
 *
 * @throws {UsageError | SourceError | FormatError} On flags and files that cannot be used.
 */
export async function workerSettings(
  models: readonly NamedModel[],
  { flags, context }: {
    readonly flags: ModelsFlags;
    readonly context: Pick<Context, "terminal" | "signal">;
  },
): Promise<WorkerSettings> {
  // Not before the worker has begun to read its code.
  const { fetchModel } = await import("./fetch.ts");
  const { readExcludedKernels } = await import("./excluded_kernels.ts");
  const { checkLoad } = await import("./check_options.ts");
  const gpu = otherGpu(flags), dawn = gpu === "dawn" ? undefined : gpu;
  const maxMemory = bytesOf(flags["max-memory"]);
  const options: LoadOptions = {
    ...loadOptions(flags),
    ...sessionOptions(flags),
    ...await specOption(flags),
    ...await templateOption(flags),
    excludeKernels: await readExcludedKernels(flags["cache-dir"]),
  };
  // Clients are not told of paths, so here is where one that is wrong is named.
  checkLoad(options);
  checkPaths([...flags.lora?.map((text) => parseAdapter(text).path) ?? [], flags.mmproj, dawn]);
  const entries = [];
  for (const { name, source } of models) {
    entries.push({ name, source: await fetchModel(source, { flags, pick: context }), options });
  }
  return { entries, gpu, maxMemory };
}

function checkPaths(paths: readonly (string | undefined)[]): void {
  const file = paths.find((path) => path !== undefined && pathKind(path) === undefined);
  if (file === undefined) return;
  throw new SourceError("no such file or folder", { file, remedy: "Check the path" });
}

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
};

/**
 * Bytes of a size as people write it; `M` and `MiB` are 2²⁰.
 *
 * @throws {UsageError} If it is none.
 */
export function bytesOf(size: string | undefined): number | undefined {
  if (size === undefined) return undefined;
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$/i.exec(size) ?? [];
  const bytes = Number(number) * UNITS[unit.toUpperCase()]!;
  if (bytes >= 1) return Math.floor(bytes);
  throw new UsageError(`--max-memory takes a size as 2G or 800M: got "${size}"`);
}
