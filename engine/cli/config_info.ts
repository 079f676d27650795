// What `troodon info` says of a config.json without weights.

import type { WeightFile } from "../formats/source.ts";
import type { ConfigDescription } from "../models/config_file.ts";
import type { Nearest } from "../models/nearest_spec.ts";
import { paint, showTable } from "./format.ts";

/** As JSON; `spec` are the blocks. */
export function configJson(
  { name: file }: WeightFile,
  { architecture, params, blocks, warnings, nearest }: ConfigDescription,
): unknown {
  return {
    ...{ file, architecture, params, warnings, nearest },
    ...blocks && { spec: Object.fromEntries(blocks) },
  };
}

/** As text. */
export function configText(
  { name }: WeightFile,
  { architecture, params, blocks = [], warnings, nearest, colours }: ConfigDescription & {
    readonly colours: boolean;
  },
): string {
  const head = (text: string): string => paint(colours, { style: "bold", text });
  const facts = [["file", name], ["architecture", architecture]];
  if (params) {
    const { vocabulary, context, layers, hidden, feedForward, heads, headDim, kvHeads } = params;
    facts.push(
      ["vocabulary", `${vocabulary}`],
      ["context", `${context} tokens`],
      ["layers", `${layers}, ${hidden} wide, feed-forward ${feedForward}`],
      ["attention", `${heads} heads of ${headDim}, ${kvHeads} for keys and values`],
    );
  }
  return [
    showTable(facts),
    ...blocks.length > 0 ? [head("\nBlocks"), showTable(blocks)] : [],
    ...warnings.map((warning) =>
      `\n${paint(colours, { style: "yellow", text: "warning:" })} ${warning}`
    ),
    ...params ? [] : [`\n${head("No family of this name is built")}`, ...differences(nearest)],
    "\nThis is said by the configuration alone: tensors and memory are not known.",
  ].join("\n");
}

function differences(nearest: Nearest | undefined): string[] {
  if (!nearest) return ["and none resembles it."];
  const { families, keys, absent, refused } = nearest;
  const rows = [
    ["nearest", families.join(", ")],
    ["keys that it does not know", keys.join(", ") || "none"],
    ["keys of its own that are missing", absent.join(", ") || "none"],
    ["values that it does not build", refused.join(", ") || "none"],
  ];
  return [showTable(rows)];
}
