// Graph to Plan: order and waves, lifetimes, a place in the arena for every activation. It is a pure
// function of the graph and the limits; kernels are chosen by the backend that prepares the plan.

import { ResourceError } from "../errors.ts";
import { type Dim, type DimEnv, symbolsOf } from "../graph/dim/mod.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { aliasRoots } from "./aliases.ts";
import { type Lifetime, lifetimes } from "./liveness.ts";
import { placeAsTransformerLite, type SymbolicItem } from "./transformer_lite.ts";
import {
  naiveBytes,
  peak,
  placeGreedyBySize,
  placeNaively,
  placeSharedObjects,
  totalBytes,
} from "./memory.ts";
import type { MemoryPolicy, Placement, Plan } from "./plan.ts";
import { reuseInputs } from "./reuse_inputs.ts";
import { schedule } from "./schedule.ts";
import { type Size, sizeOf } from "./sizes.ts";

/** What a plan is made for. */
export interface PlanOptions {
  /** Maximum of every symbol that occurs in the graph. */
  readonly limits: DimEnv;
  /** Bytes that every offset is a multiple of; default 64, a cache line. */
  readonly alignment?: number;
  /** Default `gbs`. */
  readonly policy?: MemoryPolicy;
  /**
   * True: results of elementwise ops may take the memory of an input that is not needed any more. For
   * devices that may read and write one buffer in the same step.
   */
  readonly reuseInputs?: boolean;
  /** 2: for a device that keeps float32 activations as float16; default 4. */
  readonly floatBytes?: 2 | 4;
  /** Most bytes the device can give to the arena; default: no limit. */
  readonly maxBytes?: number;
}

const policies: Readonly<
  Record<MemoryPolicy, (items: readonly SymbolicItem[], alignment: number) => number[]>
> = {
  gbs: placeGreedyBySize,
  shared: placeSharedObjects,
  literal: placeAsTransformerLite,
  naive: placeNaively,
};

/**
 * Plans a graph.
 *
 * @throws {RangeError} If limits and symbols do not correspond, or the alignment is not positive.
 * @throws {ResourceError} If the arena is larger than `maxBytes` or any size is beyond 2^53.
 */
export function plan(graph: Graph, options: PlanOptions): Plan {
  const { limits, alignment = 64, policy = "gbs", maxBytes = Infinity } = options;
  if (!Number.isSafeInteger(alignment) || alignment < 1) {
    throw new RangeError(`Cannot plan with alignment ${alignment}: must be a positive integer`);
  }
  checkLimits(graph, limits);
  const views = aliasRoots(graph);
  const steps = schedule(graph, views);
  const roots = options.reuseInputs ? reuseInputs(graph, { steps, views }) : views;
  const size = createSizes(limits);
  const items = lifetimes(graph, { steps, roots }).map((lifetime) => ({
    ...lifetime,
    ...size(stored(lifetime.value, options.floatBytes)),
  }));
  const offsets = policies[policy](items, alignment);
  const placements = items.map(({ value, first, last, bytes }, i): [number, Placement] => [
    value.id,
    Object.freeze({ value, offset: offsets[i]!, bytes, first, last }),
  ]);
  const arenaBytes = totalBytes(items, offsets);
  const { moment, bytes: lowerBoundBytes } = peak(items);
  if (arenaBytes > maxBytes) throw tooLarge(graph, { items, moment, arenaBytes, maxBytes });
  return Object.freeze({
    graph,
    policy,
    alignment,
    limits: Object.freeze({ ...limits }),
    steps,
    waves: (steps.at(-1)?.wave ?? -1) + 1,
    roots,
    placements: new Map(placements),
    arenaBytes,
    naiveBytes: naiveBytes(items, alignment),
    lowerBoundBytes,
  });
}

function stored(value: Value, floatBytes: PlanOptions["floatBytes"]): Value {
  return floatBytes === 2 && value.dtype === "f32" ? { ...value, dtype: "f16" } : value;
}

/** `sizeOf`; values of alike layers share their shapes, and the size is found once. */
function createSizes(limits: DimEnv): (value: Value) => Size {
  const known = new Map<Value["shape"], { readonly dtype: string; readonly size: Size }>();
  return (value) => {
    const twin = known.get(value.shape);
    if (twin?.dtype === value.dtype) return twin.size;
    const size = sizeOf(value, limits);
    known.set(value.shape, { dtype: value.dtype, size });
    return size;
  };
}

function checkLimits(graph: Graph, limits: DimEnv): void {
  // Each once: alike layers share their shapes.
  const dims = new Set<unknown>(), shapes = new Set<Value["shape"]>();
  for (const { shape } of graph.inputs) shapes.add(shape);
  for (const { outputs, attributes } of graph.nodes) {
    for (const { shape } of outputs) shapes.add(shape);
    for (const value of Object.values(attributes)) {
      if (typeof value === "object") { for (const dim of [value].flat()) dims.add(dim); }
    }
  }
  for (const shape of shapes) for (const dim of shape) dims.add(dim);
  const known = new Set<string>();
  for (const dim of dims) {
    if (typeof dim !== "object") continue;
    for (const name of symbolsOf(dim as Dim).keys()) known.add(name);
  }
  const missing = [...known].filter((name) => !Object.hasOwn(limits, name));
  const unknown = Object.keys(limits).filter((name) => !known.has(name));
  if (missing.length > 0) {
    throw new RangeError(`Cannot plan ${graph.name}: no limit for dim ${missing.join(", ")}`);
  }
  if (unknown.length > 0) {
    throw new RangeError(`Cannot plan ${graph.name}: it has no dim ${unknown.join(", ")}`);
  }
}

function tooLarge(
  graph: Graph,
  { items, moment, arenaBytes, maxBytes }: {
    readonly items: readonly (SymbolicItem & Lifetime)[];
    readonly moment: number;
    readonly arenaBytes: number;
    readonly maxBytes: number;
  },
): ResourceError {
  const live = items.filter(({ first, last }) => first <= moment && moment <= last);
  const largest = live.reduce((a, b) => b.bytes > a.bytes ? b : a);
  return new ResourceError(
    `Cannot plan ${graph.name}: activations take ${readable(arenaBytes)}, the limit is ` +
      `${readable(maxBytes)}; the largest at the peak is ${readable(largest.bytes)}`,
    { place: largest.value.name, remedy: "Lower the batch or the context length" },
  );
}

function readable(bytes: number): string {
  return bytes < 2 ** 20 ? `${bytes} bytes` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
