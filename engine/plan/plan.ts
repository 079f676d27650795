// What the planner hands to a backend: an order of nodes cut into waves, and a place in one arena for
// every activation. Sizes are taken at the maximum binding, so a plan is valid for every smaller one and
// nothing is allocated after start (spec TL-4, TL-5, MD-8).

import type { DimEnv } from "../graph/dim/mod.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";

/** One node in execution order. Views (`OpRecord.view`) are no steps: nothing runs for them. */
export interface PlanStep {
  /** What runs. */
  readonly node: Node;
  /**
   * Nodes of one wave may run without a barrier between them, except that one may take the rows of others
   * before it in the wave, which must then be there (chains.ts). Liveness
   * is counted in waves, so no two values that are live in the same wave share memory.
   */
  readonly wave: number;
}

/** Where an activation lives. */
export interface Placement {
  /** The activation; views of it lie there too. */
  readonly value: Value;
  /** Byte offset in the arena, aligned. */
  readonly offset: number;
  /** Bytes at the maximum binding. */
  readonly bytes: number;
  /** First wave in which it is live: the one that makes it. */
  readonly first: number;
  /** Last wave in which it is live, inclusive. */
  readonly last: number;
}

/**
 * How the arena is laid out: `gbs` greedy by size into one block (MD-8, the default), `shared` greedy by
 * size into shared objects, `literal` Transformer-Lite's rule of established sizes (TL-4), `naive` no
 * reuse.
 */
export type MemoryPolicy = "gbs" | "shared" | "literal" | "naive";

/** A schedule and a memory layout. */
export interface Plan {
  /** What was planned. */
  readonly graph: Graph;
  /** How the arena was laid out. */
  readonly policy: MemoryPolicy;
  /** Every offset is a multiple of it. */
  readonly alignment: number;
  /** Maximum of every symbol; sizes are taken here. */
  readonly limits: DimEnv;
  /** Nodes in order of execution, waves ascending. */
  readonly steps: readonly PlanStep[];
  /** Number of waves. */
  readonly waves: number;
  /**
   * By value id: whose memory a view or an in-place result is, however long the chain; a value that is
   * not listed has its own. Use `rootOf`.
   */
  readonly roots: ReadonlyMap<number, Value>;
  /** By value id, for every activation that has its own memory. */
  readonly placements: ReadonlyMap<number, Placement>;
  /** Bytes of the arena. */
  readonly arenaBytes: number;
  /** Sum of all activations, each rounded up to the alignment, for comparison. */
  readonly naiveBytes: number;
  /** Largest sum of live bytes over all waves. */
  readonly lowerBoundBytes: number;
}

/** The value whose memory `value` lies in: itself unless it is a view or an in-place result. */
export function rootOf(plan: Plan, value: Value): Value {
  return plan.roots.get(value.id) ?? value;
}
