// Texts beside the pictures of an ONNX graph: CLIP and SigLIP as one file that takes both (model.onnx), or as two
// (vision_model.onnx, text_model.onnx), as Optimum and transformers.js have them.

import type { MatchRule } from "../../decode/pictures/tower.ts";
import { FormatError } from "../../errors.ts";
import { pathKind } from "../../io.ts";
import { specFiles } from "../../models/specs/mod.ts";
import type { GraphTensor } from "../../onnx/running/graph_tensor.ts";
import type { LoadedGraph, LoadGraphOptions } from "../../onnx/running/graph_types.ts";
import { loadGraph } from "../../onnx/running/load_graph.ts";
import type { Tokenizer } from "../../text/tokenizer_types.ts";

/** Factor of cosines where no file says it: CLIP learns it, and is not let beyond this (Radford et al., 2021, section 2.5). */
const SCALE = 100;

/** Ids of texts as rows of one length. */
export interface TextRows {
  readonly ids: BigInt64Array;
  readonly mask: BigInt64Array;
  readonly dims: readonly [texts: number, tokens: number];
}

/** How a model compares, and to how many tokens its texts are filled up, by its config and the spec for that. */
export function textRule(config: Readonly<Record<string, unknown>>): {
  readonly kind: MatchRule["kind"];
  readonly scale: number;
  readonly length: number | undefined;
} {
  const spec: unknown = specFiles.find(({ matches }) =>
    matches.huggingface.includes(String(config.model_type))
  );
  const { pictures } = spec as { readonly pictures?: { readonly match?: string } } ?? {};
  if (pictures?.match !== "sigmoid") return { kind: "softmax", scale: SCALE, length: undefined };
  // Such models see what fills up, and were trained with it.
  const text = config.text_config as { readonly max_position_embeddings?: unknown } | undefined;
  return {
    kind: "sigmoid",
    scale: SCALE,
    length: Number(text?.max_position_embeddings ?? SHORT_TEXT),
  };
}

/** Tokens of a text, where a config of SigLIP leaves them out. */
const SHORT_TEXT = 64;

/** Texts as rows, filled up to the longest, or to `length`. */
export function textRows(
  tokenizer: Tokenizer,
  texts: readonly string[],
  { length, most }: { readonly length: number | undefined; readonly most: number },
): TextRows {
  const { prefixIds, suffixIds, padId, eosId } = tokenizer;
  const room = (length ?? most) - prefixIds.length - suffixIds.length;
  const rows = texts.map((text) => [
    ...prefixIds,
    ...tokenizer.encode(text, { special: true, addSpecial: false }).slice(0, room),
    ...suffixIds,
  ]);
  const width = length ?? rows.reduce((longest, row) => Math.max(longest, row.length), 1);
  const ids = new BigInt64Array(rows.length * width).fill(BigInt(padId ?? eosId ?? 0));
  const mask = new BigInt64Array(ids.length);
  for (const [i, row] of rows.entries()) {
    ids.set(row.map(BigInt), i * width);
    mask.fill(1n, i * width, i * width + row.length);
  }
  return { ids, mask, dims: [rows.length, width] };
}

/** Inputs of a graph for texts, by the names that it has. */
export function textInputs(
  { inputs }: LoadedGraph,
  { ids, mask, dims }: TextRows,
): Record<string, GraphTensor> {
  const known: Record<string, BigInt64Array> = { input_ids: ids, attention_mask: mask };
  return Object.fromEntries(
    inputs.filter(({ name }) => known[name])
      .map(({ name, type }) => [name, {
        ...{ type, dims: [...dims] },
        data: type === "int32" ? Int32Array.from(known[name]!, Number) : known[name]!,
      } as GraphTensor]),
  );
}

/** Opens the graph of texts that lies beside one of pictures, of the same precision; undefined where there is none. */
export async function openTextGraph(
  path: string,
  options: LoadGraphOptions,
): Promise<LoadedGraph | undefined> {
  const beside = path.replace(/vision_model([^/\\]*\.onnx)$/, "text_model$1");
  return beside === path || pathKind(beside) !== "file"
    ? undefined
    : await loadGraph(beside, options);
}

/** Vectors of texts, one row each. @throws {FormatError} If the graph gives none. */
export async function textVectors(
  graph: LoadedGraph,
  { rows, signal }: { readonly rows: TextRows; readonly signal: AbortSignal | undefined },
): Promise<Float32Array[]> {
  const name = ["text_embeds", "pooler_output"].find((name) =>
    graph.outputs.some((output) => output.name === name)
  );
  if (name === undefined) {
    throw new FormatError("gives no vectors of texts", { place: "text_embeds" });
  }
  const found = await graph.run(textInputs(graph, rows), { outputs: [name], signal });
  return rowsOf(found[name] as GraphTensor);
}

/** Rows of [rows, width]. */
export function rowsOf({ data, dims }: GraphTensor): Float32Array[] {
  const [count, width] = dims as [number, number];
  const values = data as Float32Array;
  return Array.from({ length: count }, (_, i) => values.slice(i * width, (i + 1) * width));
}
