// Results that take the memory of an input which nobody needs any more: ops that make element i of the
// result from element i of each input alone may overwrite one of the same shape. That keeps what fusing
// elementwise ops into their producers would keep, without a kernel for every pair (spec MD-9).

import { equal } from "../graph/dim/mod.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import type { PlanStep } from "./plan.ts";

/** Roots of a plan (aliases.ts) in which results also take over the memory of dying inputs. */
export function reuseInputs(
  graph: Graph,
  { steps, views }: {
    readonly steps: readonly PlanStep[];
    readonly views: ReadonlyMap<number, Value>;
  },
): ReadonlyMap<number, Value> {
  const taken = new Map<number, Value>();
  const rootOf = (value: Value): Value => {
    const root = views.get(value.id) ?? value;
    return taken.get(root.id) ?? root;
  };
  const last = lastReads(steps, rootOf);
  const kept = new Set(graph.outputs.map((value) => rootOf(value).id));
  for (const { node, wave } of steps) {
    const source = getOp(node.op).elementwise && dyingInput(node, wave, { last, kept, rootOf });
    if (!source) continue;
    const [output] = node.outputs as [Value];
    taken.set(output.id, source);
    const reads = last.get(output.id);
    last.set(source.id, reads ?? { wave, nodes: new Set([node]) });
    if (kept.has(output.id)) kept.add(source.id);
  }
  return new Map([
    ...[...views].map(([id, root]): [number, Value] => [id, taken.get(root.id) ?? root]),
    ...taken,
  ]);
}

/** The last wave in which a root is read, and by whom. */
interface LastRead {
  readonly wave: number;
  readonly nodes: ReadonlySet<Node>;
}

function lastReads(
  steps: readonly PlanStep[],
  rootOf: (value: Value) => Value,
): Map<number, LastRead> {
  const last = new Map<number, { wave: number; nodes: Set<Node> }>();
  for (const { node, wave } of steps) {
    for (const input of node.inputs) {
      if (!input) continue;
      const { id } = rootOf(input);
      const known = last.get(id);
      if (known?.wave === wave) known.nodes.add(node);
      else last.set(id, { wave, nodes: new Set([node]) });
    }
  }
  return last;
}

function dyingInput(
  node: Node,
  wave: number,
  { last, kept, rootOf }: {
    readonly last: ReadonlyMap<number, LastRead>;
    readonly kept: ReadonlySet<number>;
    readonly rootOf: (value: Value) => Value;
  },
): Value | undefined {
  const [output] = node.outputs as [Value];
  for (const input of node.inputs) {
    if (!input || input.dtype !== output.dtype || !sameShape(input, output)) continue;
    const root = rootOf(input);
    if (root.role !== "activation" || root.dtype !== input.dtype || kept.has(root.id)) continue;
    const read = last.get(root.id);
    // Others of the same wave may still be reading it.
    if (
      read?.wave === wave && read.nodes.size === 1 && !readsOtherwise(node, { input, root, rootOf })
    ) {
      return root;
    }
  }
  return undefined;
}

// The same memory under another shape (a transpose has its own) is read at other indices.
function readsOtherwise(
  node: Node,
  { input, root, rootOf }: {
    readonly input: Value;
    readonly root: Value;
    readonly rootOf: (value: Value) => Value;
  },
): boolean {
  return node.inputs.some((other) =>
    other && other !== input && rootOf(other) === root && !sameShape(other, input)
  );
}

function sameShape(a: Value, b: Value): boolean {
  return a.shape.length === b.shape.length && a.shape.every((dim, i) => equal(dim, b.shape[i]!));
}
