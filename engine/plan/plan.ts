// What the planner hands to a backend: an order of nodes cut into waves, and a place in one arena for
// every activation. Sizes are taken at the maximum binding, so a plan is valid for every smaller one and
// nothing is allocated after start (spec TL-4, TL-5, MD-8).

import type { DimEnv } from "../graph/dim.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";

/** One node in execution order. */
export interface PlanStep {
  readonly node: Node;
  /**
   * Nodes of one wave do not depend on each other and may run without a barrier between them. Liveness
   * is counted in waves, so no two values that are live in the same wave share memory.
   */
  readonly wave: number;
}

/** Where an activation lives. */
export interface Placement {
  readonly value: Value;
  /** Byte offset in the arena, aligned. */
  readonly offset: number;
  /** Bytes at the maximum binding. */
  readonly bytes: number;
  /** First and last wave in which it is live, inclusive. */
  readonly first: number;
  readonly last: number;
}

/** A schedule and a memory layout. */
export interface Plan {
  readonly graph: Graph;
  /** Maximum of every symbol; sizes are taken here. */
  readonly limits: DimEnv;
  readonly steps: readonly PlanStep[];
  readonly placements: ReadonlyMap<number, Placement>;
  /** Bytes of the arena. */
  readonly arenaBytes: number;
  /** Sum of all activations, for comparison. */
  readonly naiveBytes: number;
  /** Largest sum of live bytes over all waves. */
  readonly lowerBoundBytes: number;
}
