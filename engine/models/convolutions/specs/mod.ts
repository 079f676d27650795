// The specs of convolutions, by the types of the configs that mean them.

import type { WeightFile } from "../../../formats/source.ts";
import { convRule, type ConvSpec } from "../conv_spec.ts";
import resnet from "./resnet.json" with { type: "json" };

const SPECS: readonly { readonly name: string; readonly matches: readonly string[] }[] = [resnet];

/** The spec of a file's network of convolutions; undefined if it holds another network. */
export function convSpecOf({ kind, metadata }: WeightFile): ConvSpec | undefined {
  if (kind !== "safetensors" && kind !== "pickle") return undefined;
  const type = metadata.get("model_type");
  const found = SPECS.find(({ matches }) => matches.includes(String(type)));
  return found && convRule(found, { file: `${found.name}.json`, path: "" });
}
