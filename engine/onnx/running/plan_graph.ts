// What a graph would take, without running it: derived, passed and planned at given sizes. Weights need
// not be there. Of a graph with nodes that only the host can run, what stands before the first of them is
// planned, and they are named.

import type { OnnxModel, OnnxValueInfo } from "../file/model.ts";
import { type DimEnv, evaluate, parseDim, symbolsOf } from "../../graph/dim/mod.ts";
import type { Graph } from "../../graph/graph.ts";
import { checkSupport } from "../derivation/opset.ts";
import { prepareGraph } from "../derivation/prepare.ts";
import { constantEntries, deriveSegment, type Segment } from "../derivation/segment.ts";
import { axisKey, inventedName } from "../derivation/symbols.ts";
import type { Entry } from "../derivation/tensor.ts";
import type { Device } from "../../run/devices.ts";
import type { MemoryPolicy, Plan } from "../../plan/plan.ts";
import { plan } from "../../plan/planner.ts";
import { neededNodes } from "./program.ts";
import { deviceGraph, optimizeGraph } from "./ready_segment.ts";
import { deriveVariant, NotOneSegment, usedSymbols, type Variant } from "./variant.ts";

/** How to plan. */
export interface PlanGraphOptions {
  /** Values of the symbols in the inputs' shapes. */
  readonly bind: Readonly<Record<string, number>>;
  readonly policy?: MemoryPolicy | undefined;
  readonly alignment?: number | undefined;
  /** Bytes of a float activation: 2 for a device that keeps them as float16; default 4. */
  readonly floatBytes?: 2 | 4 | undefined;
  /** Names of the results that are wanted; default: all. */
  readonly outputs?: readonly string[] | undefined;
  /** What passes suit. */
  readonly device: Device;
  /** Called with the graph after each pass. */
  readonly onPass?: ((name: string, graph: Graph) => void) | undefined;
}

/** A planned graph. */
export interface GraphPlan {
  /** Nodes of the file, functions expanded. */
  readonly fileNodes: number;
  /** Absent: nothing is computed before the host has run. */
  readonly plan?: Plan;
  /** Values of the symbols that are left. */
  readonly bindings: DimEnv;
  /** What deriving assumed, e.g. `lastSum := sumN - N`. */
  readonly assumptions: readonly string[];
  /** Sizes of the results that are known. */
  readonly outputs: Readonly<Record<string, readonly number[]>>;
  /** Why the plan ends before the graph does; empty for a whole plan. */
  readonly split: readonly string[];
  /** Milliseconds; passes count as deriving. */
  readonly times: { readonly derive: number; readonly plan: number };
}

/**
 * Plans a model's graph.
 *
 * @throws {RangeError} If a symbol has no value, or shapes do not fit at these sizes.
 * @throws {UnsupportedError} Listing what is not served.
 */
export function planGraph(model: OnnxModel, options: PlanGraphOptions): GraphPlan {
  const { graph, opsets } = model;
  const { device, onPass: observe } = options;
  const start = performance.now();
  checkSupport(model, { graph, opsets });
  const prepared = prepareGraph(model, { graph, opsets });
  const inputs = graph.inputs.filter(({ name }) => !graph.initializers.has(name));
  const { shapes, missing } = shapesAt(inputs, options.bind);
  const outputs = options.outputs ?? graph.outputs.map(({ name }) => name);
  const derived = derive();
  const suited = derived.graph && deviceGraph(derived.graph, device, { observe });
  const middle = performance.now();
  const { bindings, assumptions, split } = derived;
  const done = suited && plan(suited, {
    limits: bindings,
    reuseInputs: device.reusesInputs,
    ...options.policy && { policy: options.policy },
    ...options.alignment && { alignment: options.alignment },
    ...options.floatBytes && { floatBytes: options.floatBytes },
  });
  return {
    fileNodes: prepared.nodes.length,
    ...done && { plan: done },
    bindings,
    assumptions,
    outputs: derived.outputs,
    split,
    times: { derive: middle - start, plan: performance.now() - middle },
  };

  function derive() {
    let problem: unknown;
    // Expressions in files may be wrong (past + 1 in a prefill): without them derivation finds the size.
    for (const dropped of [new Set<string>(), expressionAxes(inputs)]) {
      try {
        const known = new Map(shapes);
        for (const key of dropped) placeholderAt(known, key);
        const { onPass } = options;
        const request = { context: model, shapes: known, outputs, dropped, onPass };
        const variant = deriveVariant(prepared, request);
        return { ...boundTo(variant, dropped), assumptions: variant.assumptions, split: [] };
      } catch (error) {
        if (!(error instanceof RangeError) && !(error instanceof NotOneSegment)) throw error;
        problem ??= error;
      }
    }
    if (missing.size > 0) throw problem instanceof RangeError ? problem : new NoValue(missing);
    return { ...deriveConcrete(), bindings: {}, assumptions: ["sizes are fixed"] };
  }

  // A symbol that derivation expresses by others (lastSum := sumN - N) needs no value.
  function boundTo({ graph, segment, inputs: dims }: Variant, dropped: ReadonlySet<string>) {
    const names = new Set([...dims.values()].flat().flatMap((dim) => [...symbolsOf(dim).keys()]));
    const values = [...names].map((name) => [name, valueOf(name)] as const);
    const open = values.filter(([, value]) => value === undefined).map(([name]) => name);
    if (open.length > 0) throw new NoValue(open);
    const env = Object.fromEntries(values) as DimEnv;
    for (const [input, sizes] of dims) {
      sizes.forEach((dim, axis) => {
        const given = shapes.get(input)![axis]!, size = evaluate(dim, env);
        if (given === size || dropped.has(axisKey(input, axis))) return;
        if (given === 1 && missing.size > 0) return;
        throw new RangeError(`dim ${axis} of ${input} is ${given}, and the graph needs ${size}`);
      });
    }
    const used = graph ? usedSymbols(graph) : new Set();
    const bindings = Object.fromEntries(values.filter(([name]) => used.has(name))) as DimEnv;
    return { graph, bindings, outputs: sizesOf(segment, env) };
  }

  function valueOf(name: string): number | undefined {
    if (Object.hasOwn(options.bind, name)) return options.bind[name];
    const [, base = "", unit = "1"] = /^(.*)\/(\d+)$/.exec(name) ?? [];
    const value = options.bind[base];
    return value === undefined ? undefined : value / Number(unit);
  }

  function deriveConcrete() {
    const entries = new Map<string, Entry>(constantEntries(graph));
    for (const { name, type } of inputs) {
      if (type?.kind !== "tensor" || type.dtype === "string") entries.set(name, { kind: "object" });
      else {
        const shape = shapes.get(name)!;
        entries.set(name, { kind: "tensor", type: { dtype: type.dtype, shape } });
      }
    }
    const nodes = neededNodes(prepared.nodes, outputs);
    const name = graph.name || "graph";
    const segment = deriveSegment({ context: model, name, nodes, entries, outputs });
    const split = [
      ...segment.hostNodes.map(({ node }) => `${node.name} (${node.opType}) runs on the host`),
      ...[...segment.contents].map((name) => `shapes depend on the contents of ${name}`),
    ];
    const left = segment.rest.length;
    if (left > 0) split.push(`${left} ${left === 1 ? "node waits" : "nodes wait"} for that`);
    return {
      graph: segment.graph && optimizeGraph(segment.graph, { observe: options.onPass }),
      outputs: sizesOf(segment, {}),
      split,
    };
  }

  function sizesOf({ entries }: Segment, env: DimEnv): Record<string, readonly number[]> {
    return Object.fromEntries(outputs.flatMap((name) => {
      const entry = entries.get(name);
      if (entry?.kind !== "tensor") return [];
      return [[name, entry.type.shape.map((dim) => evaluate(dim, env))]];
    }));
  }
}

// Axes whose declared size is neither a number nor a plain name.
function expressionAxes(inputs: readonly OnnxValueInfo[]): Set<string> {
  return new Set(
    inputs.flatMap(({ name, type }) =>
      type?.kind !== "tensor"
        ? []
        : (type.shape ?? []).flatMap((dim, axis) =>
          typeof dim === "string" && !/^[A-Za-z_]\w*$/.test(dim) ? [axisKey(name, axis)] : []
        )
    ),
  );
}

// A size that is not believed; 1 would be taken for one that repeats.
function placeholderAt(shapes: Map<string, readonly number[]>, key: string): void {
  const cut = key.lastIndexOf(" ");
  const name = key.slice(0, cut);
  shapes.set(name, shapes.get(name)!.with(Number(key.slice(cut + 1)), 2));
}

/** Thrown where a symbol has no value. */
class NoValue extends RangeError {
  constructor(names: Iterable<string>) {
    const all = [...names];
    super(
      `Cannot plan: no value for ${all.join(", ")}. Say how large they are with bind, e.g. ` +
        all.map((name) => `${name}=1`).join(","),
    );
  }
}

/** Shapes of the inputs where symbols have values; 1 stands for a size that is not known. */
function shapesAt(
  inputs: readonly OnnxValueInfo[],
  bind: Readonly<Record<string, number>>,
): {
  readonly shapes: Map<string, readonly number[]>;
  readonly missing: ReadonlySet<string>;
} {
  const wrong = Object.entries(bind).find(([, size]) => !Number.isSafeInteger(size) || size < 0);
  if (wrong) throw new RangeError(`Cannot bind ${wrong[0]} to ${wrong[1]}: give an integer from 0`);
  const missing = new Set<string>();
  const used = new Set<string>();
  const sizeOf = (dim: number | string): number => {
    if (typeof dim === "number") return dim;
    if (Object.hasOwn(bind, dim)) {
      used.add(dim);
      return bind[dim]!;
    }
    const parsed = parseDim(dim);
    const names = [...symbolsOf(parsed).keys()];
    const open = names.filter((name) => !Object.hasOwn(bind, name));
    // An expression whose symbols are known needs no value of its own.
    if (open.length > 0 || names.length === 0) {
      for (const name of open.length > 0 ? open : [dim]) missing.add(name);
      return 1;
    }
    names.forEach((name) => used.add(name));
    return evaluate(parsed, bind);
  };
  const shapes = new Map(inputs.flatMap(({ name, type }) => {
    // Sizes of strings are of no account here: no plan reads them.
    if (type?.kind !== "tensor" || type.dtype === "string") return [];
    const declared = type.shape ?? [];
    return [[name, declared.map((dim, axis) => sizeOf(dim ?? inventedName(name, axis)))] as const];
  }));
  const unknown = Object.keys(bind).filter((name) => !used.has(name));
  if (unknown.length > 0) {
    throw new RangeError(`Cannot plan: no input has a dim named ${unknown.join(", ")}`);
  }
  return { shapes, missing };
}

/** Names that `bind` may give values for. */
export function symbolsOfInputs({ graph }: OnnxModel): Set<string> {
  const names = new Set<string>();
  for (const { name, type } of graph.inputs) {
    if (graph.initializers.has(name) || type?.kind !== "tensor" || type.dtype === "string") {
      continue;
    }
    for (const [axis, dim] of (type.shape ?? []).entries()) {
      if (typeof dim === "number") continue;
      names.add(dim ?? inventedName(name, axis));
      for (const symbol of symbolsOf(parseDim(dim ?? inventedName(name, axis))).keys()) {
        names.add(symbol);
      }
    }
  }
  return names;
}
