// Graphs of which a device computes a part: ops that it has no kernel for, and element types that it lacks, are
// computed by the host's backend beside it. Whatever is right on the host is right here, so kernels can be added
// one by one.

import { isWide } from "../../ops/data_types.ts";
import type { Graph, Node } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import type { Plan } from "../../plan/plan.ts";
import type { Backend, PreparedPlan } from "../backend.ts";
import { cutPlan, type Partition, type PlannedPart } from "./cut.ts";
import { prepareParts } from "./run_parts.ts";
import { isQ8 } from "../../ops/q8_rows.ts";

/** Where a node is computed. */
export type Side = "device" | "host";

/** A backend that lets the host compute what it has no kernel for, where `hostSteps` allows it. */
export function besideHost(device: Backend, host: () => Promise<Backend>): Backend {
  return {
    ...device,
    async prepare(plan, options) {
      const takes = options.hostSteps ? await device.takes?.(options) : undefined;
      const isWhole = takes && plan.steps.every(({ node }) => takes(node)) &&
        plan.graph.outputs.every(({ role }) => role === "activation");
      if (!takes || isWhole) return await device.prepare(plan, options);
      return await prepareParts(plan, {
        parts: partsBeside(plan, takes),
        options,
        prepare: async ({ place, plan }, options) =>
          place === "device"
            ? await device.prepare(plan, options)
            : named(await (await host()).prepare(plan, options)),
      });
    },
  };
}

/** The parts of a plan, the host's first where it has one. */
export function partsBeside(plan: Plan, takes: (node: Node) => boolean): PlannedPart<Side>[] {
  return cutPlan(plan, {
    places: ["host", "device"],
    partition: partitionBeside(plan.graph, takes),
  });
}

/** What the host computes is named by its op, whatever kernel the host has for it. */
function named(prepared: PreparedPlan): PreparedPlan {
  const nodes = prepared.plan.steps.map(({ node }) => node);
  return { ...prepared, hostNodes: nodes, kernels: nodes.map(({ op }) => `host:${op}`) };
}

/** What has one form on a device and another on the host, or lies at one place: all such nodes are on one side. */
const BOUND: readonly ((node: Node) => boolean)[] = [
  ({ inputs, outputs }) => [...inputs, ...outputs].some((value) => value && isQ8(value.dtype)),
  ({ inputs }) => inputs.some((value) => value?.role === "state"),
];

/** Sends to the host what the device does not take, and what would be computed on the device for the host alone. */
export function partitionBeside(graph: Graph, takes: (node: Node) => boolean): Partition<Side> {
  const { nodes } = graph;
  const mayBe = (node: Node) => isView(node) || takes(node);
  const onDevice = new Set(nodes.filter(mayBe));
  for (const isBound of BOUND) {
    const bound = nodes.filter(isBound);
    if (!bound.every(mayBe)) bound.forEach((node) => onDevice.delete(node));
  }
  for (const node of indexNodes(graph, onDevice)) onDevice.delete(node);
  return withViews(graph, (node) => onDevice.has(node) ? "device" : "host");
}

function isView({ op }: Node): boolean {
  return getOp(op).view === true;
}

/**
 * Nodes that make something of what is given for the host alone: indices and sizes, masks. On the device they would be
 * a part of their own, for which the host had to wait; without weights they are soon done here.
 */
function indexNodes({ nodes, outputs }: Graph, onDevice: ReadonlySet<Node>): Set<Node> {
  const wanted = new Set(outputs.map(({ id }) => id));
  const found = new Set<Node>();
  const isOnHost = (node: Node) => found.has(node) || !onDevice.has(node);
  const readers = new Map<number, Node[]>();
  for (const node of nodes) {
    for (const value of node.inputs) {
      if (value) readers.set(value.id, [...readers.get(value.id) ?? [], node]);
    }
  }
  const isIndex = (node: Node) =>
    node.outputs.every(({ id, dtype }) =>
      (isWide(dtype) || isLight(node)) && !wanted.has(id) && (readers.get(id) ?? []).every(isOnHost)
    );
  for (const node of nodes.toReversed()) if (isIndex(node)) found.add(node);
  /** What the device makes, and views of that. */
  const computed = new Set<number>();
  for (const node of nodes) {
    const isFed = node.inputs.some((value) => value && computed.has(value.id));
    if (isFed) found.delete(node);
    if (isView(node) ? isFed : !isOnHost(node)) {
      for (const { id } of node.outputs) computed.add(id);
    }
  }
  return found;
}

/** What no weights are read for is soon done. */
function isLight({ inputs }: Node): boolean {
  return inputs.every((input) => input?.role !== "weight");
}

/** Views compute nothing and stay where their data is; those of what is given, where they are first read. */
function withViews({ nodes }: Graph, sideOf: (node: Node) => Side): Partition<Side> {
  const sides = new Map<Node, Side>();
  const makers = new Map<number, Node>();
  for (const node of nodes) {
    for (const { id } of node.outputs) makers.set(id, node);
    if (!isView(node)) sides.set(node, sideOf(node));
  }
  const readerOf = ({ outputs }: Node) =>
    nodes.find((node) => node.inputs.includes(outputs[0]) && sides.has(node));
  for (const node of nodes) {
    if (!isView(node)) continue;
    const home = makers.get(node.inputs[0]?.id ?? -1) ?? readerOf(node);
    sides.set(node, home && sides.get(home) || "host");
  }
  return sides;
}
