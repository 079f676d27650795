// A configuration without weights: what a model would be, told from config.json alone. For whoever wonders whether a
// checkpoint would load, or adds its family, before gigabytes are fetched.

import { UnsupportedError } from "../errors.ts";
import { readConfig } from "../formats/safetensors/folder.ts";
import { parseModelSource } from "../formats/hub/source_name.ts";
import { openRemoteSource } from "../formats/hub/url_source.ts";
import type { WeightFile } from "../formats/source.ts";
import { listFolder, openFile, pathKind, siblingPath } from "../io.ts";
import type { LoadOptions } from "../decode/model.ts";
import { readModelParts } from "./build.ts";
import { describeFile } from "./describe_spec.ts";
import type { Hyperparameters } from "./hparams.ts";
import type { Nearest } from "./nearest_spec.ts";
import { chooseSpec, nearestFamily } from "./specs/mod.ts";
import { unknownKeysWarning } from "./unknown_keys.ts";

const CONFIG = "config.json";
const WEIGHTS = /\.(gguf|safetensors|bin|pt|pth|onnx|index\.json)$/;

/**
 * Opens a configuration by its path or address, or a folder that holds one and no weights; undefined where a name
 * means something else.
 *
 * @throws {FormatError} If it is no JSON object.
 */
export async function openConfig(
  name: string,
  { endpoint, signal }: LoadOptions,
): Promise<WeightFile | undefined> {
  const source = parseModelSource(name);
  const isRemote = source.kind === "url" || source.kind === "hf";
  if (source.kind !== "path" && !isRemote) return undefined;
  const isFolder = !isRemote && pathKind(name) === "folder";
  if (isFolder && !isConfigFolder(name)) return undefined;
  const path = isFolder ? siblingPath(`${name}/`, CONFIG) : name;
  if (!/(^|[\\/])config[^\\/]*\.json(@[^\\/]*)?$/.test(path)) return undefined;
  const metadata = await readConfig(async () =>
    isRemote ? await openRemoteSource(source, { endpoint, signal })! : openFile(path)
  );
  if (!metadata) return undefined;
  return { kind: "safetensors", name: path, metadata, tensors: new Map(), close: () => {} };
}

/** Weights may lie in folders of the folder, as those of ONNX do. */
function isConfigFolder(path: string): boolean {
  const names = listFolder(path);
  return names.includes(CONFIG) && !names.some((name) => WEIGHTS.test(name)) &&
    pathKind(siblingPath(`${path}/`, "onnx")) === undefined;
}

/** What is known of a model without its weights. */
export interface ConfigDescription {
  /** As the file calls it. */
  readonly architecture: string;
  /** Numbers of a model whose family is built. */
  readonly params?: Hyperparameters;
  /** Its blocks. */
  readonly blocks?: readonly (readonly [string, string])[];
  readonly warnings: readonly string[];
  /** Of one that is not built: the nearest family. */
  readonly nearest?: Nearest | undefined;
}

/**
 * What a configuration says, or what is nearest to it where no family is of its name.
 *
 * @throws {FormatError | UnsupportedError} If its family is built and its values are not.
 */
export function describeConfig(file: WeightFile, given?: unknown): ConfigDescription {
  const stated = file.metadata.get("model_type");
  let chosen;
  try {
    chosen = chooseSpec(file, given);
  } catch (error) {
    if (given !== undefined || !(error instanceof UnsupportedError)) throw error;
    const architecture = typeof stated === "string" ? stated : "not stated";
    return { architecture, warnings: [], nearest: nearestFamily(file) };
  }
  const { resolved, architecture } = chosen;
  const { params, resolved: own } = readModelParts(resolved, { stored: file, architecture });
  const warnings = unknownKeysWarning(file, { resolved: own, architecture });
  return { architecture, params, blocks: describeFile(file, given), warnings };
}
