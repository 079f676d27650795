// Makes a failing graph small while it keeps failing: fewer results and bindings, nodes replaced by what the
// reference computes there, sizes halved, numbers made round. Each way yields smaller cases, the boldest first; the
// first that still fails is gone on with.

import { ELEMENT_TYPES } from "../../../engine/onnx/file/data_types.ts";
import {
  getElement,
  hostArray,
  type HostTensor,
  setElement,
} from "../../../engine/ops/host_tensor.ts";
import type { GraphParts, NodeParts, Port, Tensor } from "../../../tests/support/write_onnx.ts";
import { referenceRun } from "./judge.ts";
import type { Tensors } from "./peer.ts";
import { countOf } from "./sizes.ts";
import { bytesOf, type GraphCase, typeNumber } from "./writer.ts";

/** Options of {@linkcode shrink}. */
export interface ShrinkOptions {
  /** Whether a case fails as the first one did. */
  fails(candidate: GraphCase): Promise<boolean>;
  /** Most cases to try; default 200. */
  readonly tries?: number;
}

type Way = (given: GraphCase) => AsyncGenerator<GraphCase> | Generator<GraphCase>;

const WAYS: readonly Way[] = [
  fewerRuns,
  otherOutputs,
  fewerNodes,
  withoutNodes,
  smallerSizes,
  fixedSizes,
  rounderNumbers,
];

/** The smallest case found that still fails. */
export async function shrink(
  given: GraphCase,
  { fails, tries = 200 }: ShrinkOptions,
): Promise<GraphCase> {
  let best = given;
  let left = tries;
  async function better(): Promise<GraphCase | undefined> {
    for (const way of WAYS) {
      for await (const raw of way(best)) {
        if (left-- <= 0) return undefined;
        const candidate = tidy(raw);
        // What does not run at all is no smaller failure.
        if (await fails(candidate).catch(() => false)) return candidate;
      }
    }
    return undefined;
  }
  for (let next = await better(); next; next = await better()) best = next;
  return best;
}

/** Drops what no result needs. */
function tidy({ graph, opset, runs }: GraphCase): GraphCase {
  const needed = new Set(graph.outputs.map(([name]) => name));
  const nodes: NodeParts[] = [];
  for (const node of graph.nodes.toReversed()) {
    if (!node.outputs.some((name) => needed.has(name))) continue;
    nodes.unshift(node);
    for (const name of node.inputs) needed.add(name);
  }
  return {
    opset,
    graph: {
      ...graph,
      nodes,
      inputs: graph.inputs.filter(([name]) => needed.has(name)),
      initializers: (graph.initializers ?? []).filter(({ name }) => needed.has(name!)),
    },
    runs: runs.map((run) => new Map([...run].filter(([name]) => needed.has(name)))),
  };
}

function* fewerRuns(given: GraphCase): Generator<GraphCase> {
  if (given.runs.length === 1) return;
  for (const run of given.runs) yield { ...given, runs: [run] };
  for (const i of given.runs.keys()) yield { ...given, runs: given.runs.toSpliced(i, 1) };
}

/** One of the results alone, then a value on the way there. */
function* otherOutputs(given: GraphCase): Generator<GraphCase> {
  const { graph } = given;
  if (graph.outputs.length > 1) {
    for (const port of graph.outputs) yield withGraph(given, { outputs: [port] });
    for (const i of graph.outputs.keys()) {
      yield withGraph(given, { outputs: graph.outputs.toSpliced(i, 1) });
    }
  }
}

/** Values become inputs: all that a node reads at once, from the last node to the first. */
async function* fewerNodes(given: GraphCase): AsyncGenerator<GraphCase> {
  const { graph } = given;
  const made = graph.nodes.flatMap(({ op, outputs }) => op === "Constant" ? [] : outputs);
  const values = await valuesOf(given, made);
  if (!values) return;
  for (const node of graph.nodes.toReversed()) {
    const names = node.outputs.filter((name) => values[0]!.has(name));
    // A whole tail goes where a value in the middle fails already.
    if (names.length === 1 && graph.outputs.every(([name]) => name !== names[0])) {
      yield withGraph(given, { outputs: [portOf(names[0]!, values[0]!.get(names[0]!)!)] });
    }
  }
  for (let cut = made.length - 1; cut > 0; cut = Math.floor(cut / 2)) {
    yield fed(given, made.slice(0, cut), values);
  }
  for (const name of made) yield fed(given, [name], values);
}

async function valuesOf(
  given: GraphCase,
  names: readonly string[],
): Promise<Tensors[] | undefined> {
  const outputs = names.map((name): Port => [name, 1, []]);
  try {
    return await referenceRun({ ...given, graph: { ...given.graph, outputs } });
  } catch {
    return undefined;
  }
}

function fed(given: GraphCase, names: readonly string[], values: readonly Tensors[]): GraphCase {
  const { graph, runs } = given;
  const isFed = new Set(names.filter((name) => values[0]!.has(name)));
  return {
    ...given,
    graph: {
      ...graph,
      nodes: graph.nodes.filter(({ outputs }) => !outputs.every((name) => isFed.has(name))),
      inputs: [
        ...graph.inputs,
        ...[...isFed].map((name) => portOf(name, values[0]!.get(name)!)),
      ],
    },
    runs: runs.map((run, i) =>
      new Map([...run, ...[...isFed].map((name) => [name, values[i]!.get(name)!] as const)])
    ),
  };
}

function portOf(name: string, { dtype, shape }: HostTensor): Port {
  return [name, typeNumber(dtype), shape.map((_, axis) => `${name}_${axis}`)];
}

/** A node's reader reads what the node reads. */
function* withoutNodes(given: GraphCase): Generator<GraphCase> {
  const { graph } = given;
  for (const [at, node] of graph.nodes.entries()) {
    for (const source of new Set(node.inputs)) {
      if (source === "") continue;
      const moved = (name: string) => name === node.outputs[0] ? source : name;
      const nodes = graph.nodes.toSpliced(at, 1)
        .map((one) => ({ ...one, inputs: one.inputs.map(moved) }));
      const isResult = graph.outputs.some(([name]) => name === node.outputs[0]);
      if (!isResult) yield withGraph(given, { nodes });
    }
  }
}

/** Every size of some number becomes smaller, in inputs and constants alike. */
function* smallerSizes(given: GraphCase): Generator<GraphCase> {
  const shapes = [
    ...given.runs.flatMap((run) => [...run.values()].map(({ shape }) => shape)),
    ...(given.graph.initializers ?? []).map(({ dims }) => dims.map(Number)),
  ];
  const sizes = [...new Set(shapes.flat())].filter((size) => size > 1).sort((a, b) => b - a);
  for (const size of sizes) {
    for (const wanted of new Set([1, 2, Math.ceil(size / 2)])) {
      if (wanted < size) yield resized(given, size, wanted);
    }
  }
}

function resized(given: GraphCase, size: number, wanted: number): GraphCase {
  const { graph, runs } = given;
  const cut = (tensor: HostTensor): HostTensor => leading(tensor, size, wanted);
  return {
    ...given,
    runs: runs.map((run) => new Map([...run].map(([name, tensor]) => [name, cut(tensor)]))),
    graph: {
      ...graph,
      inputs: graph.inputs.map(([name, type, dims]) => [
        name,
        type,
        dims.map((dim) => dim === size ? wanted : dim),
      ]),
      initializers: (graph.initializers ?? []).map((tensor) => changed(tensor, cut)),
    },
  };
}

/** The leading part of a tensor along every axis of a size. */
function leading(tensor: HostTensor, size: number, wanted: number): HostTensor {
  const { dtype, shape } = tensor;
  const small = shape.map((one) => one === size ? wanted : one);
  const result = { dtype, shape: small, data: hostArray(dtype, { count: countOf(small) }) };
  for (let i = 0; i < result.data.length; i++) {
    let rest = i, from = 0, stride = 1;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      from += rest % small[axis]! * stride;
      rest = Math.floor(rest / small[axis]!);
      stride *= shape[axis]!;
    }
    (result.data as Uint8Array)[i] = (tensor.data as Uint8Array)[from]!;
  }
  return result;
}

/** Symbols become the sizes of the only run. */
function* fixedSizes(given: GraphCase): Generator<GraphCase> {
  const { graph, runs: [run, ...others] } = given;
  if (others.length > 0) return;
  for (const [at, [name, type, dims]] of graph.inputs.entries()) {
    if (dims.every((dim) => typeof dim === "number")) continue;
    const port: Port = [name, type, run!.get(name)!.shape];
    yield withGraph(given, { inputs: graph.inputs.with(at, port) });
  }
}

/** Floats become whole, or all of one tensor 1. */
function* rounderNumbers(given: GraphCase): Generator<GraphCase> {
  const { graph, runs } = given;
  for (const change of [() => 1, Math.round]) {
    for (const [name, type] of graph.inputs) {
      if (type !== 1) continue;
      const next = runs.map((run) =>
        new Map([...run, [name, mapped(run.get(name)!, change)] as const])
      );
      if (next.some((run, i) => differs(run.get(name)!, runs[i]!.get(name)!))) {
        yield { ...given, runs: next };
      }
    }
    for (const [at, tensor] of (graph.initializers ?? []).entries()) {
      if (tensor.type !== 1 || countOf(tensor.dims.map(Number)) < 2) continue;
      const next = changed(tensor, (host) => mapped(host, change));
      if (next.raw!.some((byte, i) => byte !== tensor.raw![i])) {
        yield withGraph(given, { initializers: graph.initializers!.with(at, next) });
      }
    }
  }
}

function differs(a: HostTensor, b: HostTensor): boolean {
  return a.data.some((value: number | bigint, i: number) => value !== b.data[i]);
}

function mapped(tensor: HostTensor, change: (value: number) => number): HostTensor {
  const result = { ...tensor, data: tensor.data.slice() } as HostTensor;
  for (let i = 0; i < result.data.length; i++) {
    setElement(result, { index: i, value: change(getElement(tensor, i)) });
  }
  return result;
}

function changed(tensor: Tensor, change: (host: HostTensor) => HostTensor): Tensor {
  const { dtype } = ELEMENT_TYPES.get(tensor.type)!;
  const shape = tensor.dims.map(Number);
  const host = {
    dtype,
    shape,
    data: hostArray(dtype as HostTensor["dtype"], { count: countOf(shape) }),
  };
  bytesOf(host).set(tensor.raw!);
  const next = change(host as HostTensor);
  return { ...tensor, dims: next.shape, raw: bytesOf(next) };
}

function withGraph(given: GraphCase, parts: Partial<GraphParts>): GraphCase {
  return { ...given, graph: { ...given.graph, ...parts } };
}
