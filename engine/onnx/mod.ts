/**
 * ONNX graphs alone: loaded, run, and nothing of language models.
 *
 * @example
 * ```ts ignore
 * import { loadGraph } from "@troodon/troodon/graph";
 *
 * using graph = await loadGraph("model.onnx");
 * const { logits } = await graph.run({ x: new Float32Array([1, 2, 3]) });
 * console.log(logits!.dims);
 * ```
 *
 * @module
 */

export { type Arena, type ArenaOptions, createArena } from "./running/arena.ts";
export { loadGraph } from "./running/load_graph.ts";
export type {
  GraphMemory,
  GraphPort,
  GraphProfileEntry,
  LoadedGraph,
  LoadGraphOptions,
  RunGraphOptions,
} from "./running/graph_types.ts";
export type { GraphMap, GraphTensor, GraphValue, TensorData } from "./running/graph_tensor.ts";
export type { HostData } from "../graph/graph.ts";
export {
  DeviceError,
  type ErrorDetails,
  FormatError,
  ResourceError,
  SourceError,
  TroodonError,
  UnsupportedError,
} from "../errors.ts";
