// The public door to ONNX graphs: a path becomes something that runs on tensors. What opens and runs graphs is
// fetched when one is loaded (loaded_graph.ts).

import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";
import { fetchModel } from "../../formats/hub/pull.ts";
import { SOURCE_KEYS } from "../../formats/hub/source_keys.ts";
import type { LoadedGraph, LoadGraphOptions } from "./graph_types.ts";

const LOAD_KEYS: OptionKeys<LoadGraphOptions> = {
  device: true,
  gpu: true,
  priority: true,
  maxSubmitMs: true,
  threads: true,
  limits: true,
  precision: true,
  arena: true,
  excludeKernels: true,
  profile: true,
  maxActivationBytes: true,
  ...SOURCE_KEYS,
};

/**
 * Loads an ONNX graph.
 *
 * @param model A path, a `file://` or https URL, `owner/repo` of the hub or a file of it (`hf:owner/repo/model.onnx`),
 * or a name of the catalogue such as `silero-vad`. What is not on this machine is fetched into the cache once.
 * @throws {SourceError} If the file, or external data beside it, cannot be opened.
 * @throws {FormatError} If it is no well-formed ONNX model.
 * @throws {UnsupportedError} Listing every node, type and attribute that is not served.
 *
 * @example
 * ```ts
 * import { loadGraph } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using graph = await loadGraph("model.onnx");
 * const names = ["input_ids", "attention_mask", "position_ids"];
 * assertEquals(graph.inputs.map(({ name }) => name), names);
 * const one = { data: BigInt64Array.of(1n), dims: [1, 1] };
 * const results = await graph.run(Object.fromEntries(names.map((name) => [name, one])));
 * assertEquals(Object.keys(results), graph.outputs.map(({ name }) => name));
 * ```
 * @category ONNX graphs
 */
export async function loadGraph(
  model: string | URL,
  options: LoadGraphOptions = {},
): Promise<LoadedGraph> {
  checkOptionKeys(options, { of: "loadGraph()", known: LOAD_KEYS });
  // A hundred modules that nobody needs who runs a language model.
  const { openLoadedGraph } = await import("./loaded_graph.ts");
  return await openLoadedGraph(await fetchModel(model, options), options);
}
