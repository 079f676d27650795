// Sentence vectors from an ONNX encoder as Optimum and sentence-transformers export it: ids, a mask of what
// is no padding, often types, and the last layer's rows, of which the mean over the mask is a sentence.
// Sequences of one call run together, padded to the longest.

import type { GraphTensor } from "../onnx/running/graph_tensor.ts";
import type { LoadedGraph } from "../onnx/running/graph_types.ts";
import { meanOfRows, unitVector } from "./vectors.ts";
import { checkOptionKeys, type OptionKeys } from "../option_keys.ts";

/**
 * Options of {@linkcode sentenceVectors}.
 * @category ONNX graphs
 */
export interface SentenceVectorOptions {
  /** Whether vectors are scaled to length 1; default true. */
  readonly normalize?: boolean | undefined;
  /** Id in the place of padding; default 0. The mask keeps it from being read. */
  readonly padId?: number | undefined;
  /** Stops between two pieces of a long run, with its reason. */
  readonly signal?: AbortSignal | undefined;
}

const KEYS: OptionKeys<SentenceVectorOptions> = { normalize: true, padId: true, signal: true };

const FILL: Readonly<Record<string, (id: number | undefined, padId: number) => number>> = {
  input_ids: (id, padId) => id ?? padId,
  attention_mask: (id) => id === undefined ? 0 : 1,
  token_type_ids: () => 0,
};

/**
 * Vectors of token sequences.
 *
 * @param graph Inputs `input_ids`, `attention_mask` and, if it wants them, `token_type_ids`, each int64
 * [batch, sequence]; first output float32 [batch, sequence, width].
 * @param sequences Ids with the special tokens that the model wants.
 * @returns One vector a sequence.
 * @throws {TypeError} If the graph takes other inputs, or gives something else.
 * @throws {RangeError} If a sequence is empty.
 *
 * @example
 * ```ts ignore
 * import { loadGraph, loadTokenizer, pullModel, sentenceVectors } from "@troodon/troodon";
 *
 * using graph = await loadGraph(await pullModel("minilm-int8"));
 * const tokenizer = await loadTokenizer("minilm");
 * const [vector] = await sentenceVectors(graph, [tokenizer.encode("The cat sleeps.")]);
 * ```
 * @category ONNX graphs
 */
export async function sentenceVectors(
  graph: LoadedGraph,
  sequences: readonly (readonly number[])[],
  options: SentenceVectorOptions = {},
): Promise<Float32Array[]> {
  checkOptionKeys(options, { of: "sentenceVectors()", known: KEYS });
  const { normalize = true, padId = 0, signal } = options;
  if (sequences.length === 0) return [];
  const empty = sequences.findIndex(({ length }) => length === 0);
  if (empty >= 0) throw new RangeError(`Cannot embed sequence ${empty}: it has no tokens`);
  signal?.throwIfAborted();
  const longest = Math.max(...sequences.map(({ length }) => length));
  const dims = [sequences.length, longest];
  const inputs = Object.fromEntries(graph.inputs.map(({ name }): [string, GraphTensor] => {
    const fill = Object.hasOwn(FILL, name) ? FILL[name] : undefined;
    if (!fill) throw new TypeError(`Cannot embed: the graph wants "${name}", which is not known`);
    const data = new BigInt64Array(sequences.length * longest);
    sequences.forEach((ids, row) => {
      for (let i = 0; i < longest; i++) data[row * longest + i] = BigInt(fill(ids[i], padId));
    });
    return [name, { data, dims }];
  }));
  const [output] = graph.outputs;
  const { [output!.name]: rows } = await graph.run(inputs, {
    outputs: [output!.name],
    ...signal && { signal },
  });
  const { data, dims: found } = rows as GraphTensor;
  if (!(data instanceof Float32Array) || found.length !== 3 || found[1] !== longest) {
    throw new TypeError(`Cannot embed: "${output!.name}" is no float32 [batch, sequence, width]`);
  }
  const width = found[2]!;
  return sequences.map(({ length }, i) => {
    const start = i * longest * width;
    const vector = meanOfRows(data.subarray(start, start + length * width), width);
    return normalize ? unitVector(vector) : vector;
  });
}
