/**
 * ONNX graphs alone: loaded, run, and nothing of language models.
 *
 * @example
 * ```ts ignore
 * import { loadGraph } from "@troodon/troodon/graph";
 *
 * using graph = await loadGraph("model.onnx");
 * const { logits } = await graph.run({ x: { data: new Float32Array(6), dims: [2, 3] } });
 * console.log(logits);
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
export type {
  GraphMap,
  GraphTensor,
  GraphValue,
  KeptTensor,
  TensorData,
} from "./running/graph_tensor.ts";
export type { HostData } from "../graph/graph.ts";
export type { ModelProgress, Precision, SourceOptions } from "../decode/model.ts";
export type { HubFile } from "../formats/hub/hub_files.ts";
export type { PullProgress } from "../formats/hub/progress.ts";
export type { PullChoice } from "../formats/hub/pull.ts";
export type { DeviceName } from "../run/backend.ts";
export type { PriorityOptions } from "../run/pacer.ts";
export type { GpuProvider } from "../../gpu/capabilities.ts";
export {
  DeviceError,
  type ErrorDetails,
  FormatError,
  ResourceError,
  SourceError,
  TroodonError,
  UnsupportedError,
} from "../errors.ts";
