// The specs of sight, by the types of the configs that mean them.

import { metadataAt } from "../../metadata.ts";
import type { WeightFile } from "../../../formats/source.ts";
import { sightRule, type SightSpec } from "../sight_spec.ts";
import gemma3 from "./gemma3.json" with { type: "json" };
import idefics3 from "./idefics3.json" with { type: "json" };
import llava from "./llava.json" with { type: "json" };
import qwen2_5_vl from "./qwen2_5_vl.json" with { type: "json" };

/** What choosing needs of a spec of sight. */
interface SightFile {
  readonly name: string;
  readonly matches: readonly string[];
  readonly gguf?: {
    readonly projectors: readonly string[];
    readonly use?: Readonly<Record<string, object>>;
  };
}

const SPECS: readonly SightFile[] = [
  gemma3,
  idefics3,
  llava,
  qwen2_5_vl,
];

/** The spec of sight of a model's files; undefined if they hold a language model alone, or something else. */
export function sightSpecOf({ kind, metadata }: WeightFile): SightSpec | undefined {
  if (kind !== "safetensors" || metadataAt(metadata, "vision_config") === undefined) {
    return undefined;
  }
  const type = metadata.get("model_type");
  const found = SPECS.find(({ matches }) => matches.includes(String(type)));
  return found && checked(found);
}

/** The spec of sight of a projector in a file of GGUF, with what its converter changed. */
export function specOfProjector(type: string): SightSpec | undefined {
  const found = SPECS.find(({ gguf }) => gguf?.projectors.includes(type));
  if (!found) return undefined;
  const parts = found as unknown as Readonly<Record<string, object>>;
  const changes = Object.entries(found.gguf?.use ?? {})
    .map(([key, change]) => [key, { ...parts[key], ...change }]);
  return checked({ ...found, ...Object.fromEntries(changes) });
}

function checked(file: SightFile): SightSpec {
  return sightRule(file, { file: `${file.name}.json`, path: "" });
}
