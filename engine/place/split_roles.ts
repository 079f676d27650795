// Which nodes of a layer the devices of a group share (spec IF-18): matrices in front of heads and of the channels inside a
// feed-forward block are cut by rows, those behind them by columns, and what stands between works on a share of heads or
// channels. It is found from the matrices behind: what they read is followed back to the matrices in front, through ops
// of which each head or channel is computed by itself. All else is computed by every device of the group.

import { UnsupportedError } from "../errors.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import { attentionInputs } from "../ops/attention_inputs.ts";
import { producersOf } from "../plan/passes/rewrite.ts";

/** What a node does with the shares of a group. */
export type SplitRole = "rows" | "between" | "columns";

/** Matrices that may be in front or behind. */
const MATRICES: ReadonlySet<string> = new Set(["matmul", "expert_matmul"]);

/** What an attention that is shared by heads may read besides: the same for all heads, or an entry a head. */
const BESIDE: ReadonlySet<string> = new Set(["positions", "slots", "sinks", "slopes", "rows"]);

/** By op, the inputs that have to be shares so that the result is one; undefined: it never is. */
const BETWEEN: Readonly<
  Record<string, (node: Node) => readonly (Value | undefined)[] | undefined>
> = {
  attention({ inputs }) {
    const { q, k, v, ...others } = attentionInputs(inputs);
    const isShared = Object.entries(others).every(([name, value]) => !value || BESIDE.has(name));
    return isShared ? [q, k, v] : undefined;
  },
  kv_append: ({ inputs }) => [inputs[1]],
  rope: ({ inputs }) => [inputs[0]],
  reshape: ({ inputs: [x], outputs: [y] }) =>
    Math.abs(x!.shape.length - y!.shape.length) === 1 ? [x] : undefined,
  // Of each head by itself.
  norm: ({ inputs: [x] }) => x!.shape.length === 3 ? [x] : undefined,
  glu: ({ inputs: [gate, up] }) => up && [gate, up],
  unary: ({ inputs }) => [inputs[0]],
  binary: ({ inputs }) => inputs.filter((value) => value?.role === "activation"),
};

/**
 * The roles of the nodes that are shared.
 *
 * @param groups The devices of each node.
 * @throws {UnsupportedError} If an attention cannot be shared by the group it is placed on.
 */
export function splitRoles(
  graph: Graph,
  groups: ReadonlyMap<Node, readonly number[]>,
): ReadonlyMap<Node, SplitRole> {
  const producers = producersOf(graph);
  const roles = new Map<Node, SplitRole>();
  const known = new Map<Value, ReadonlySet<Node> | undefined>();

  /** The nodes that have to be shared so that a value is. */
  function sourcesOf(
    value: Value | undefined,
    group: readonly number[],
  ): ReadonlySet<Node> | undefined {
    const maker = value && producers.get(value);
    if (!maker) return undefined;
    if (known.has(value)) return known.get(value);
    known.set(value, undefined);
    const found = trace(maker, group);
    known.set(value, found);
    return found;
  }

  function trace(node: Node, group: readonly number[]): ReadonlySet<Node> | undefined {
    if (groups.get(node)?.join() !== group.join()) return undefined;
    if (MATRICES.has(node.op)) return new Set([node]);
    const inputs = BETWEEN[node.op]?.(node);
    if (!inputs || inputs.length === 0) return undefined;
    const found = new Set([node]);
    for (const input of inputs) {
      const own = sourcesOf(input, group);
      if (!own) return undefined;
      own.forEach((one) => found.add(one));
    }
    return found;
  }

  for (const node of graph.nodes) {
    const group = groups.get(node)!;
    if (group.length < 2 || !MATRICES.has(node.op)) continue;
    const shared = sourcesOf(node.inputs[0], group);
    // A product of a product is no block with something inside.
    if (!shared || [...shared].every(({ op }) => MATRICES.has(op))) continue;
    for (const one of shared) setRole(one, MATRICES.has(one.op) ? "rows" : "between");
    setRole(node, "columns");
  }

  function setRole(node: Node, role: SplitRole): void {
    const before = roles.get(node) ?? role;
    if (before !== role) throw unbuilt(node, `is cut by ${before} and by ${role}`);
    roles.set(node, role);
  }

  for (const node of graph.nodes) {
    const usesState = node.inputs.some((value) => value?.role === "state");
    if (
      groups.get(node)!.length > 1 && (usesState || node.op === "attention") && !roles.has(node)
    ) {
      throw unbuilt(node, "cannot be shared by heads");
    }
  }
  return roles;
}

function unbuilt({ name, op }: Node, why: string): UnsupportedError {
  return new UnsupportedError(
    `this ${op} ${why}, so its layer cannot be split over a group of devices`,
    {
      place: name,
      remedy: 'Place whole layers instead, with ";" between devices',
    },
  );
}
