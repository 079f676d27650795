// A graph that looks at pictures, to who uses it.

import type { PictureTower } from "../../decode/pictures/tower.ts";
import type { LoadedGraph } from "../../onnx/running/graph_types.ts";

/**
 * A graph that looks at pictures; dispose of it when it is no longer needed.
 * @category Pictures
 */
export interface ImageGraph extends Disposable {
  /** How it looks at them. */
  readonly tower: PictureTower;
  /** The graph itself. */
  readonly graph: LoadedGraph;
  /** What was taken for granted, for want of a file that says it. */
  readonly notes: readonly string[];
}
