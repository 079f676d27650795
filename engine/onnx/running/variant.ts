// A graph of a file derived once for all sizes (spec TL-1, TL-2): shapes are expressions of the symbols that its
// inputs declare. What has to be equal for the nodes to fit is assumed, and kept for reports; what cannot be
// derived with symbols at all is an error that says why.

import { type DimEnv, symbolsOf } from "../../graph/dim/mod.ts";
import type { Graph, HostData } from "../../graph/graph.ts";
import type { HostTensor } from "../../ops/host_tensor.ts";
import type { SegmentRequest } from "../derivation/derivation.ts";
import type { ModelContext, PreparedGraph } from "../derivation/prepare.ts";
import { constantEntries, deriveSegment, type Segment } from "../derivation/segment.ts";
import { constantTensor } from "../derivation/constants.ts";
import {
  assumeEqual,
  type Assumptions,
  type Binder,
  contradictions,
  createBinder,
  declareInputs,
  describeAssumptions,
  type InputShapes,
  NO_ASSUMPTIONS,
} from "../derivation/symbols.ts";
import type { Entry } from "../derivation/tensor.ts";
import { DimsDiffer } from "../../ops/shape_rules.ts";
import { neededNodes } from "./program.ts";
import { optimizeGraph, type PassOptions } from "./ready_segment.ts";

const MOST_TRIES = 64;

/** A graph derived for all sizes. */
export interface Variant {
  readonly segment: Segment;
  /** The graph after the passes; absent where nothing is computed. */
  readonly graph: Graph | undefined;
  readonly binder: Binder;
  /** Dims of the inputs. */
  readonly inputs: DeclaredDims;
  /** What deriving assumed, e.g. `lastSum := sumN - N`. */
  readonly assumptions: readonly string[];
}

type DeclaredDims = ReturnType<typeof declareInputs>["dims"];

/** Thrown for a graph that needs the host in between, or the contents of a tensor. */
export class NotOneSegment extends Error {}

/** What a variant is derived for. */
export interface VariantRequest {
  readonly context: ModelContext;
  readonly shapes: InputShapes;
  readonly outputs: readonly string[];
  /** Axes whose declared dims are not believed. */
  readonly dropped?: ReadonlySet<string>;
  /** Inputs whose values are part of the graph. */
  readonly known?: ReadonlyMap<string, HostTensor>;
  /** For these shapes alone. */
  readonly fixed?: boolean;
  /** Called with the graph after each pass. */
  readonly onPass?: PassOptions["observe"];
  /** Leaves the graph as it is derived. */
  readonly withoutPasses?: boolean | undefined;
}

/**
 * Derives the graph with symbols.
 *
 * @throws {RangeError} If shapes cannot be proven to fit.
 */
export function deriveVariant(
  { graph, nodes }: PreparedGraph,
  { context, shapes, outputs, dropped = new Set(), known, fixed = false, ...passes }:
    VariantRequest,
): Variant {
  let assumptions: Assumptions = { ...NO_ASSUMPTIONS, dropped };
  const name = graph.name || "graph";
  const constants = constantEntries(graph);
  const needed = neededNodes(nodes, outputs);
  let tries = 0;
  for (;;) {
    const { dims, order } = fixed
      ? { dims: shapes, order: [] }
      : declareInputs(graph.inputs, shapes, assumptions);
    const entries = new Map<string, Entry>(constants);
    for (const { name, type } of graph.inputs) {
      const shape = dims.get(name), value = known?.get(name);
      if (value) {
        // The caller may write into the array before the constant is read.
        entries.set(name, constantTensor({ ...value, data: value.data.slice() as HostData }));
        continue;
      }
      if (!shape || type?.kind !== "tensor" || type.dtype === "string") continue;
      entries.set(name, { kind: "tensor", type: { dtype: type.dtype, shape } });
    }
    const request: SegmentRequest = { context, name, nodes: needed, entries, outputs };
    try {
      return finishVariant(deriveSegment(request), dims, assumptions, passes);
    } catch (error) {
      const differ = dimsDifferIn(error);
      const more = differ &&
        assumeEqual(differ.dims[0], {
          b: differ.dims[1],
          order,
          before: assumptions,
          related: differ.related,
        });
      if (!more || ++tries > MOST_TRIES) throw error;
      assumptions = more;
    }
  }
}

/** A variant that serves some sets of shapes. */
export interface FittingVariant {
  readonly variant: Variant;
  /** Values of the symbols, for each set of shapes. */
  readonly bindings: readonly DimEnv[];
}

/**
 * Derives the graph for all of some sets of shapes. A hint of the file that contradicts one of them is not believed; an
 * axis that contradicts without any hint is the conflict that is left.
 *
 * @throws {RangeError} If shapes cannot be proven to fit.
 */
export function deriveFitting(
  prepared: PreparedGraph,
  { shapes, ...request }: Omit<VariantRequest, "shapes" | "dropped"> & {
    readonly shapes: readonly InputShapes[];
  },
): FittingVariant | { readonly conflict: string } {
  const { inputs } = prepared.graph;
  const dropped = new Set(shapes.flatMap((some) => [...contradictions(inputs, some)]));
  for (;;) {
    const variant = deriveVariant(prepared, { ...request, shapes: shapes[0]!, dropped });
    const bindings: DimEnv[] = [];
    let conflict: string | undefined;
    for (const some of shapes) {
      const bound = variant.binder.bind(some);
      if (typeof bound === "string") conflict ??= bound;
      else bindings.push(bound);
    }
    if (conflict === undefined) return { variant, bindings };
    if (dropped.has(conflict)) return { conflict };
    dropped.add(conflict);
  }
}

function dimsDifferIn(error: unknown): DimsDiffer | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof DimsDiffer) return at;
  return undefined;
}

function finishVariant(
  segment: Segment,
  dims: DeclaredDims,
  assumptions: Assumptions,
  { onPass: observe, withoutPasses }: Pick<VariantRequest, "onPass" | "withoutPasses">,
): Variant {
  const [host] = segment.hostNodes;
  if (host) throw new NotOneSegment(`${host.node.name} (${host.node.opType}) runs on the host`);
  const [waiting] = segment.contents;
  if (waiting !== undefined) throw new NotOneSegment(`shapes depend on the contents of ${waiting}`);
  const [left] = segment.rest;
  if (left) throw new NotOneSegment(`${left.node.name} (${left.node.opType}) reads no tensor`);
  const binder = createBinder(dims);
  if (!binder) throw new NotOneSegment("a symbol occurs in expressions only");
  return {
    segment,
    graph: segment.graph && optimizeGraph(segment.graph, { observe, withoutPasses }),
    binder,
    inputs: dims,
    assumptions: describeAssumptions(assumptions),
  };
}

/** Symbols that a graph's shapes and attributes mention. */
export function usedSymbols({ inputs, nodes }: Graph): Set<string> {
  const shapes = [...inputs, ...nodes.flatMap((node) => node.outputs)].flatMap(({ shape }) =>
    shape
  );
  const attributes = nodes.flatMap((node) => Object.values(node.attributes).flat())
    .filter((attribute) => typeof attribute === "object");
  return new Set([...shapes, ...attributes].flatMap((dim) => [...symbolsOf(dim).keys()]));
}
