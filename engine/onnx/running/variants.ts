// The variants of one graph (variant.ts), kept for its runs. A run takes the first one that its shapes fit, or derives
// one more; what cannot be derived with symbols at all is not tried again, and the reason is kept for reports.

import type { DimEnv } from "../../graph/dim/mod.ts";
import type { HostTensor } from "../../ops/host_tensor.ts";
import type { PreparedGraph } from "../derivation/prepare.ts";
import type { InputShapes } from "../derivation/symbols.ts";
import type { ProgramSurroundings } from "./program.ts";
import type { ReadySegment } from "./ready_segment.ts";
import {
  deriveFitting,
  deriveVariant,
  NotOneSegment,
  usedSymbols,
  type Variant,
} from "./variant.ts";

/** A variant, and what was made ready of it. */
export interface ReadyVariant extends Variant {
  symbols?: ReadonlySet<string>;
  ready?: { readonly segment: ReadySegment; readonly limits: DimEnv };
}

/** A variant and what a run's shapes make of its symbols. */
export interface Bound {
  readonly variant: ReadyVariant;
  readonly bindings: DimEnv;
}

/** What a variant is wanted for. */
export interface VariantWish {
  readonly shapes: InputShapes;
  readonly outputs: readonly string[];
  readonly decision: Decision;
}

/** Inputs whose values are part of the graph, and a key of them. */
export interface Decision {
  readonly key: string;
  readonly known: ReadonlyMap<string, HostTensor>;
}

/** Variants of a graph. */
export interface Variants {
  /** Undefined where symbols do not serve: the caller derives for the shapes at hand. */
  serve(wish: VariantWish): Bound | undefined;
  /** The same, but whatever stands against it is an error. */
  find(wish: VariantWish): Bound | undefined;
  all(): readonly ReadyVariant[];
  /** Why symbols do not serve, if that came up. */
  readonly reasons: readonly string[];
  clear(): void;
}

const MOST_VARIANTS = 8;

/** Makes it; nothing is derived before something is wanted. */
export function createVariants(
  prepared: PreparedGraph,
  { context, runtime: { withoutPasses } }: ProgramSurroundings,
): Variants {
  const variants = new Map<string, ReadyVariant[]>();
  const reasons: string[] = [];
  const hopeless = new Set<string>();
  // Branches may ask for sizes too: then each set of shapes is derived for itself.
  const fixedKeys = new Set<string>();

  function find(wish: VariantWish): Bound | undefined {
    const { shapes, outputs, decision: { known } } = wish, key = keyOf(wish);
    const made = variants.get(key) ?? [];
    variants.set(key, made);
    for (const variant of made) {
      const bindings = variant.binder.bind(shapes);
      if (typeof bindings !== "string") return { variant, bindings };
    }
    if (made.length >= MOST_VARIANTS) return undefined;
    const request = { context, outputs, known, withoutPasses };
    const derived = fixedKeys.has(key)
      ? { variant: deriveVariant(prepared, { ...request, shapes, fixed: true }), bindings: [{}] }
      : deriveFitting(prepared, { ...request, shapes: [shapes] });
    if ("conflict" in derived) return undefined;
    made.push(derived.variant);
    return { variant: derived.variant, bindings: derived.bindings[0]! };
  }

  function findDecided(wish: VariantWish): Bound | undefined {
    try {
      return find(wish);
    } catch (error) {
      const isOpen = wish.decision.known.size > 0 && !fixedKeys.has(keyOf(wish));
      if (!isOpen || !(error instanceof NotOneSegment)) throw error;
      fixedKeys.add(keyOf(wish));
      return find(wish);
    }
  }

  return {
    reasons,
    find,
    serve(wish) {
      const key = keyOf(wish);
      if (hopeless.has(key)) return undefined;
      try {
        const found = findDecided(wish);
        return found && { variant: found.variant, bindings: ownSymbols(found) };
      } catch (error) {
        if (!(error instanceof RangeError) && !(error instanceof NotOneSegment)) throw error;
        reasons.push(error.message);
        hopeless.add(key);
        return undefined;
      }
    },
    all: () => [...variants.values()].flat(),
    clear: () => variants.clear(),
  };
}

function keyOf({ shapes, outputs, decision }: VariantWish): string {
  return [[...shapes.keys()].sort().join("\n"), outputs.join("\n"), decision.key].join("\n\n");
}

/** The symbols that a variant's graph mentions: a plan for some of them serves all values of the others. */
function ownSymbols({ variant, bindings }: Bound): DimEnv {
  if (!variant.graph) return {};
  const symbols = variant.symbols ??= usedSymbols(variant.graph);
  return Object.fromEntries(Object.entries(bindings).filter(([name]) => symbols.has(name)));
}
