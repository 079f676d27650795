// What the parts of a derivation share: what is asked for, the engine graph in the making, and the nodes
// that have no translation so far.

import type { GraphBuilder } from "../../graph/builder.ts";
import type { ModelContext, ScopedNode } from "./prepare.ts";
import type { Entry } from "./tensor.ts";
import type { Values } from "./engine_values.ts";

/** What a segment starts from. */
export interface SegmentRequest {
  readonly context: ModelContext;
  /** For messages. */
  readonly name: string;
  /** Nodes to derive, in order. */
  readonly nodes: readonly ScopedNode[];
  /** What is there. */
  readonly entries: ReadonlyMap<string, Entry>;
  /** Names of the results that are wanted in the end. */
  readonly outputs: readonly string[];
}

/** What deriving nodes shares. */
export interface Derivation {
  readonly request: SegmentRequest;
  readonly builder: GraphBuilder;
  readonly values: Values;
  readonly problems: string[];
}
