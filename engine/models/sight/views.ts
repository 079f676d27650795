// One checkpoint of a model that sees as two files: that of its language model and that of its tower, each with the section
// of the config that is its own and with the names that its spec gives its tensors.

import type { MetadataValue, TensorInfo, WeightFile } from "../../formats/source.ts";
import { asObject } from "../../formats/strict_json.ts";
import type { SightSpec } from "./sight_spec.ts";

/** The files that one is seen as. */
export interface SightViews {
  readonly text: WeightFile;
  /** The tower's tensors by its own names, and all others that are not the language model's. */
  readonly tower: WeightFile;
}

/** Keys of the whole config that are the language model's too. */
const SHARED = ["tie_word_embeddings", "torch_dtype", "dtype"];
/** Keys of a config without sections that are for pictures. */
const OF_PICTURES = /^(vision|image|video|mm|projector|multimodal)_|_(token_id|token_index)$/;

/** Takes a checkpoint apart. */
export function sightViews(file: WeightFile, spec: SightSpec): SightViews {
  const { text, tower } = spec;
  const isTexts = (name: string) => lengthOf(name, text.prefixes) > lengthOf(name, tower.prefixes);
  const named = (isWanted: boolean, prefixes: Readonly<Record<string, string>>) =>
    new Map(
      [...file.tensors].flatMap(([name, tensor]): [string, TensorInfo][] =>
        isTexts(name) === isWanted ? [[renamed(name, prefixes), tensor]] : []
      ),
    );
  return {
    text: { ...file, metadata: textMetadata(file, text), tensors: named(true, text.prefixes) },
    tower: {
      ...file,
      metadata: towerMetadata(file, tower),
      tensors: named(false, tower.prefixes),
    },
  };
}

function textMetadata(
  { metadata }: WeightFile,
  { section, type, types = {}, defaults = {} }: SightSpec["text"],
): WeightFile["metadata"] {
  const own = section === undefined ? undefined : asObject(metadata.get(section));
  const entries = own
    ? [
      ...SHARED.flatMap((key) => metadata.has(key) ? [[key, metadata.get(key)!] as const] : []),
      ...Object.entries(own),
    ]
    : [...metadata].filter(([key]) => !OF_PICTURES.test(key));
  const values = new Map<string, MetadataValue>([
    ...Object.entries(defaults) as [string, MetadataValue][],
    ...entries,
  ]);
  const stated = own?.model_type;
  values.set("model_type", typeof stated === "string" ? types[stated] ?? stated : type);
  return values;
}

function towerMetadata(
  { metadata }: WeightFile,
  { section = "vision_config", type, defaults = {} }: SightSpec["tower"],
): WeightFile["metadata"] {
  return new Map<string, MetadataValue>([
    ...Object.entries(defaults) as [string, MetadataValue][],
    ...Object.entries(asObject(metadata.get(section)) ?? {}) as [string, MetadataValue][],
    ["model_type", type],
  ]);
}

/** Length of the longest beginning that a name has; -1: it has none. */
function lengthOf(name: string, prefixes: Readonly<Record<string, string>>): number {
  return Math.max(
    -1,
    ...Object.keys(prefixes).filter((one) => name.startsWith(one)).map((one) => one.length),
  );
}

function renamed(name: string, prefixes: Readonly<Record<string, string>>): string {
  const length = lengthOf(name, prefixes);
  return length < 0 ? name : prefixes[name.slice(0, length)]! + name.slice(length);
}
