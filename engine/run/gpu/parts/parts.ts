// Graphs of which the GPU computes a part: ONNX ops without a WGSL kernel, and element types that WGSL does
// not have. The graph is cut into parts, as few as the order of its nodes allows; each is a graph of its own,
// planned and made ready by the GPU or by the host's backend, and values cross between them in host memory.
// Whatever is right on the host is right here, so kernels can be added one by one. Left out: values that the
// host never looks at still come back between two parts of the GPU, and graphs with states are not cut.

import type { Capabilities } from "../../../../gpu/kernel.ts";
import { sharedGpu, type SharedGpuOptions } from "../../../../gpu/shared.ts";
import { isWide } from "../../../ops/data_types.ts";
import { compile, type DimEnv, product } from "../../../graph/dim/mod.ts";
import type { Graph, HostData, Node, Value } from "../../../graph/graph.ts";
import { hostArray } from "../../../ops/host_tensor.ts";
import { getOp } from "../../../ops/mod.ts";
import { chooseGpuKernel, type KernelWish } from "../../kernel_choice.ts";
import type { Backend, PreparedPlan, PrepareOptions } from "../../backend.ts";
import { checkBindings } from "../../bindings.ts";
import { loadValues, withPlainWeights } from "./graphs.ts";
import { type Home, partsOf } from "./order.ts";
import { cut, planPart } from "../../part_graphs.ts";
import type { Plan } from "../../../plan/plan.ts";
import { maximumOf } from "../../../plan/sizes.ts";

/** An executable some of whose nodes are computed on the host. */
export interface PartedPlan extends PreparedPlan {
  /** Names of the kernels in order of execution; `host:` and the op for what the host computes. */
  readonly kernels: readonly string[];
  /** The nodes that the host computes. */
  readonly hostNodes: readonly Node[];
}

/** One part, ready to run. */
interface ReadyPart {
  readonly executable: PreparedPlan;
  /** Copies what comes from other parts. */
  readonly feeds: readonly ((bindings: DimEnv) => void)[];
  readonly symbols: readonly string[];
}

/**
 * A GPU backend that lets the host compute what has no kernel, where `hostSteps` allows it.
 *
 * @param host Computes the other nodes.
 */
export function withHostParts(
  gpu: Backend,
  host: () => Promise<Backend>,
  options: SharedGpuOptions,
): Backend {
  return {
    name: "gpu",
    async prepare(plan, prepare) {
      if (!prepare.hostSteps || plan.graph.states.length > 0) {
        return await gpu.prepare(plan, prepare);
      }
      const capabilities = await capabilitiesOf(options);
      // The backend itself says best what is wrong with the device.
      if (!capabilities) return await gpu.prepare(plan, prepare);
      return await prepareParts(plan, prepare, { gpu: () => gpu, host }, capabilities);
    },
  };
}

async function capabilitiesOf(options: SharedGpuOptions): Promise<Capabilities | undefined> {
  try {
    return (await sharedGpu(options)).capabilities;
  } catch {
    return undefined;
  }
}

/** Where each node of a graph is computed. */
export function homesOf(
  graph: Graph,
  capabilities: Capabilities,
  wish: KernelWish = {},
): (node: Node) => Home {
  const { nodes } = graph;
  const hasKernel = (node: Node) => chooseGpuKernel({ node, capabilities }, wish) !== undefined;
  // Rows of q8 are of one form on the GPU and of another on the host: they do not cross.
  const keepsRounded = nodes.every((node) => !isRounded(node) || hasKernel(node));
  const onGpu = new Set(
    nodes.filter((node) =>
      getOp(node.op).view || hasKernel(node) && (keepsRounded || !isRounded(node))
    ),
  );
  for (const node of indexNodes(graph, onGpu)) onGpu.delete(node);
  return (node) => onGpu.has(node) ? "gpu" : "host";
}

/**
 * Nodes that make 64-bit integers from what is given, for the host alone: indices and sizes. On the GPU they would be
 * a part of their own, for which the host had to wait.
 */
function indexNodes({ nodes, outputs }: Graph, onGpu: ReadonlySet<Node>): Set<Node> {
  const wanted = new Set(outputs.map(({ id }) => id));
  const found = new Set<Node>();
  const isOnHost = (node: Node) => found.has(node) || !onGpu.has(node);
  const readers = new Map<number, Node[]>();
  for (const node of nodes) {
    for (const value of node.inputs) {
      if (value) readers.set(value.id, [...readers.get(value.id) ?? [], node]);
    }
  }
  const isIndex = (node: Node) =>
    node.outputs.every(({ id, dtype }) =>
      isWide(dtype) && !wanted.has(id) && (readers.get(id) ?? []).every(isOnHost)
    );
  for (const node of nodes.toReversed()) if (isIndex(node)) found.add(node);
  const computed = new Set(
    nodes.filter((node) => !isOnHost(node)).flatMap((node) => node.outputs.map(({ id }) => id)),
  );
  for (const node of nodes) {
    if (!found.has(node) || !node.inputs.some((value) => value && computed.has(value.id))) continue;
    found.delete(node);
    for (const { id } of node.outputs) computed.add(id);
  }
  return found;
}

async function prepareParts(
  plan: Plan,
  options: PrepareOptions,
  backends: Readonly<Record<Home, () => Backend | Promise<Backend>>>,
  capabilities: Capabilities,
): Promise<PartedPlan> {
  const { graph, limits } = plan;
  const parts = partsOf(graph, homesOf(graph, capabilities, options));
  const graphs = cut(graph, parts.map(({ nodes }) => nodes));
  const sources = new Map<number, HostData>(
    graph.inputs.map((value) => [
      value.id,
      hostArray(value.dtype, maximumOf(product(value.shape), limits)),
    ]),
  );
  const ready: ReadyPart[] = [];
  const kernels: string[] = [], hostNodes: Node[] = [];
  try {
    for (const [i, { home }] of parts.entries()) {
      const own = planPart(graphs[i]!, plan);
      const prepared = home === "gpu" ? await withPlainWeights(own, options) : own;
      const computed = prepared.graph.nodes.filter(({ op }) => !getOp(op).view);
      kernels.push(
        ...computed.map((node) =>
          home === "gpu"
            ? chooseGpuKernel({ node, capabilities }, options)!.name
            : `host:${node.op}`
        ),
      );
      if (home === "host") hostNodes.push(...computed);
      const backend = await backends[home]();
      const executable = await backend.prepare(prepared, options);
      ready.push({
        executable,
        symbols: Object.keys(prepared.limits),
        feeds: prepared.graph.inputs.map((value) =>
          feed(sources.get(value.id)!, executable.input(value.name), value)
        ),
      });
      for (const { id, name } of graphs[i]!.outputs) sources.set(id, executable.output(name));
    }
    // What is an output without being computed.
    const given = await loadGiven(plan, options);
    for (const [id, data] of given) if (!sources.has(id)) sources.set(id, data);
  } catch (error) {
    for (const { executable } of ready) executable.dispose();
    throw error;
  }
  return assemble(plan, ready, { sources, kernels, hostNodes });
}

function assemble(
  plan: Plan,
  parts: readonly ReadyPart[],
  { sources, kernels, hostNodes }: Pick<PartedPlan, "kernels" | "hostNodes"> & {
    readonly sources: ReadonlyMap<number, HostData>;
  },
): PartedPlan {
  const { graph } = plan;
  let disposed = false;

  function named(list: readonly Value[], kind: string, name: string): HostData {
    if (disposed) throw new TypeError(`Cannot use graph ${graph.name}: it has been disposed`);
    const value = list.find((candidate) => candidate.name === name);
    if (value) return sources.get(value.id)!;
    const known = list.map((candidate) => candidate.name).join(", ");
    throw new RangeError(`Graph ${graph.name} has no ${kind} "${name}": it has ${known}`);
  }

  function noStates(): never {
    throw new RangeError(`Graph ${graph.name} has no states`);
  }

  const sum = (of: (memory: PreparedPlan["memory"]) => number) =>
    parts.reduce((total, { executable }) => total + of(executable.memory), 0);
  return {
    plan,
    kernels,
    hostNodes,
    notes: [...new Set(parts.flatMap(({ executable }) => executable.notes ?? []))],
    memory: {
      weights: sum(({ weights }) => weights),
      arena: sum(({ arena }) => arena),
      statePerSlot: 0,
      other: sum(({ other }) => other),
      textures: sum(({ textures = 0 }) => textures),
    },
    openSlot: noStates,
    closeSlot: noStates,
    readState: noStates,
    writeState: noStates,
    input: (name) => named(graph.inputs, "input", name),
    output: (name) => named(graph.outputs, "output", name),
    async run(bindings) {
      if (disposed) throw new TypeError(`Cannot run graph ${graph.name}: it has been disposed`);
      checkBindings(plan, bindings);
      for (const { executable, feeds, symbols } of parts) {
        for (const feed of feeds) feed(bindings);
        await executable.run(Object.fromEntries(symbols.map((name) => [name, bindings[name]!])));
      }
    },
    dispose() {
      if (disposed) return;
      disposed = true;
      for (const { executable } of parts) executable.dispose();
    },
  };
}

function feed(source: HostData, target: HostData, { shape }: Value): (bindings: DimEnv) => void {
  const count = compile(product(shape));
  return (bindings) =>
    (target as Uint8Array).set(source.subarray(0, count(bindings)) as Uint8Array);
}

/** Constants and weights that are results as they are. */
async function loadGiven(plan: Plan, options: PrepareOptions): Promise<Map<number, HostData>> {
  const given = plan.graph.outputs.filter(({ role }) => role === "constant" || role === "weight");
  const loaded = await loadValues(plan, given, options);
  for (const { id, data } of given) if (data) loaded.set(id, data as HostData);
  return loaded;
}

function isRounded({ inputs, outputs }: Node): boolean {
  return [...inputs, ...outputs].some((value) => value?.dtype === "q8");
}
