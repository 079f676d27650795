// What a pass is: a named, pure function from graph to graph. It never changes its argument, and its
// result is verified like any other graph.

import type { Graph } from "../../graph/graph.ts";

/** What passes may know about where the graph will run. */
export interface PassContext {
  /**
   * `exact`: float32 activations; `fast`: 8-bit activations, and float weights in 7 bit, where there is a kernel;
   * `strict`: exact, but LF8 on both sides where weights are.
   */
  readonly precision: "exact" | "fast" | "strict";
  /** True if the device multiplies 8-bit activations by weights of this number format. */
  hasIntegerKernel(format: string): boolean;
  /**
   * True if the device multiplies 8-bit activations by weights of this float format that it rounds to 7 bit
   * while it loads them; absent: never.
   */
  roundsWeights?(format: string): boolean;
  /**
   * True if copies of rows cost the device next to nothing, so that rows which are wanted are picked before the last
   * products; absent: they do cost, as dispatches of a GPU do in every decode step.
   */
  readonly picksRowsEarly?: boolean;
  /** True if the device has a kernel for this op; asked before a fused op is used. */
  hasKernel(op: string): boolean;
}

/** A pass. */
export interface Pass {
  /** As in dumps and messages. */
  readonly name: string;
  /** Gives the changed graph, or the same one if nothing changes. */
  run(graph: Graph, context: PassContext): Graph;
}
