// What a pass is: a named, pure function from graph to graph. It never changes its argument, and its
// result is verified like any other graph. A pass that knows ops says which of their attributes it knows, and
// sees no node that has others (match.ts): what it does not know it cannot drop.

import type { Attributes, Graph, Node, TensorType, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { type MatchContext, matchContext, type Reads } from "./match.ts";
import type { Visit } from "./rewrite.ts";

/** A node that a pass would make. */
export type NodeDraft = Pick<Node, "op" | "inputs" | "outputs" | "attributes">;

/** What passes may know about where the graph will run. */
export interface PassContext {
  /**
   * `exact`: float32 activations; `fast`: 8-bit activations, and float weights in 7 bit, where there is a kernel;
   * `strict`: exact, but LF8 on both sides where weights are, and a row has the same bits in whatever step.
   */
  readonly precision: "exact" | "fast" | "strict";
  /**
   * True if large matrices of floats may be rounded to 7 bit while they are loaded, a symbol if those may that multiply
   * as many rows; absent: they may not.
   */
  readonly roundsWeights?: boolean | string;
  /**
   * True if copies of rows cost the device next to nothing, so that rows which are wanted are picked before the last
   * products; `once`: they do cost, as dispatches of a GPU do in every decode step, so it is done where one copy is enough.
   * Default false.
   */
  readonly picksRowsEarly?: boolean | "once" | undefined;
  /**
   * False if no kernel of a product or an attention norms, rotates, gates or adds what stands beside it, so that passes
   * need not look for it; absent: they ask node by node.
   */
  readonly fusesNeighbours?: boolean;
  /** False if rows are never few, as those of pictures; absent: they may be. */
  readonly hasFewRows?: boolean;
  /** True if the device has kernels of which each row has the same bits in whatever step; absent: all of its are such. */
  readonly goesRowByRow?: boolean;
  /** True if the device has a kernel for this op, for whatever nodes of it. */
  hasKernel(op: string): boolean;
  /** True if the device has a kernel for this node, which no graph has yet; asked before one is made. */
  takes(node: NodeDraft): boolean;
}

/** A node of an op, as `PassContext.takes` is asked about it. */
export function draftOf(
  op: string,
  { inputs, given = {} }: {
    readonly inputs: readonly (Value | undefined)[];
    readonly given?: Attributes | undefined;
  },
): NodeDraft {
  const record = getOp(op), attributes = record.attributes(given);
  const outputs = record.infer(inputs, attributes).map((type) => draftValue(type));
  return { op, inputs, attributes, outputs };
}

/** Puts a node as it was drafted, with values of the graph before, in the place of the visited one. */
export function makeDraft({ node, op, moved }: Visit, draft: NodeDraft): readonly Value[] {
  return op(
    draft.op,
    draft.inputs.map((value) => value && moved(value)),
    draft.attributes,
    node.name,
    draft.outputs,
  );
}

/** A value that no graph has yet. */
export function draftValue(
  type: TensorType,
  given: Partial<Pick<Value, "role" | "tensor">> = {},
): Value {
  return { id: -1, name: "", role: "activation", ...type, ...given };
}

/** A pass. */
export interface Pass {
  /** As in dumps and messages. */
  readonly name: string;
  /** What it knows of which ops; `everything`: it moves nodes as they are, whatever they do. */
  readonly reads: Reads | "everything";
  /** Gives the changed graph, or the same one if nothing changes. */
  run(graph: Graph, context: PassContext): Graph;
}

/** How passes are run. */
export interface PassRun {
  readonly passes: readonly Pass[];
  readonly context: PassContext;
  /** Called with every intermediate graph, e.g. to print or verify it. */
  readonly observe?: ((pass: string, graph: Graph) => void) | undefined;
}

/** Runs passes one after the other. */
export function runPasses(graph: Graph, { passes, context, observe }: PassRun): Graph {
  return passes.reduce((current, pass) => {
    const next = pass.run(current, context);
    observe?.(pass.name, next);
    return next;
  }, graph);
}

/** What a pass that recognises ops is made of. */
export interface PassDefinition {
  readonly name: string;
  readonly reads: Reads;
  /** False where the pass has nothing to do, e.g. because the device lacks what it makes; default: always. */
  suits?(context: PassContext): boolean;
  /** Gives the changed graph, or undefined if nothing changes. */
  run(seen: MatchContext, context: PassContext): Graph | undefined;
}

/** What a pass is made of that puts something else in the place of nodes. */
export interface Replacement<Found> extends Omit<PassDefinition, "run"> {
  /** What it knows of a node that it replaces; undefined: the node stays. */
  match(node: Node, seen: MatchContext, context: PassContext): Found | undefined;
  /** Gives what stands for the outputs of such a node. */
  replace(visit: Visit, found: Found): readonly Value[];
}

/** Makes a pass that replaces nodes; what is left without readers goes with dead_code. */
export function defineReplacement<Found>({ match, replace, ...rest }: Replacement<Found>): Pass {
  return definePass({
    ...rest,
    run(seen, context) {
      const found = new Map<Node, Found>();
      for (const node of seen.nodes) {
        const result = match(node, seen, context);
        if (result !== undefined) found.set(node, result);
      }
      if (found.size === 0) return undefined;
      return seen.rewrite((visit) => {
        const known = found.get(visit.node);
        return known === undefined ? visit.copy() : replace(visit, known);
      });
    },
  });
}

/** Makes a pass that sees of a graph what it reads. */
export function definePass({ name, reads, suits = () => true, run }: PassDefinition): Pass {
  return {
    name,
    reads,
    run: (graph, context) =>
      suits(context) ? run(matchContext(graph, reads), context) ?? graph : graph,
  };
}
