// Constants in layouts that kernels want, made of them once, before the first run. A constant that one node alone reads
// is changed where it lies, if the layout takes as many bytes; others get a place of their own, as long as there is room.

import { OutOfMemoryError } from "../../../wasm/allocator.ts";
import type { Machine } from "../../../wasm/machine.ts";
import type { Value } from "../../graph/graph.ts";
import { elementCount, hostElementBytes } from "../../ops/host_tensor.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { chooseKernel } from "../kernel_choice.ts";
import { weightKey } from "../plan_weights.ts";
import type { OtherLayout } from "./kernel.ts";
import { WASM_KERNELS } from "./kernel_table.ts";

/** Most bytes of places of their own: what is beyond is made anew by every run. */
const MOST_BYTES = 2 ** 28;
/** Room that they leave for what is allocated behind them. */
const SPARE_BYTES = 2 ** 24;

/**
 * Where a value's other layout, called `layout`, lies; undefined if it cannot be made before a run.
 *
 * @param address Of the value.
 */
export type PreparedPlaces = (
  value: Value,
  wanted: OtherLayout & { readonly address: number; readonly layout: string },
) => number | undefined;

/** Gives layouts of a plan's constants their places, of `most` bytes in all where they have places of their own. */
export function createPreparedPlaces(
  machine: Pick<Machine, "allocate" | "release">,
  { plan, most }: { readonly plan: Plan; readonly most: number },
): PreparedPlaces {
  const nameOf = placeNames(plan), places = new Map<string, number>();
  let taken = 0;
  return (value, { address, ...wanted }) => {
    const name = nameOf(value, wanted), { bytes } = wanted;
    if (name === undefined || name === OWN_PLACE) return name === OWN_PLACE ? address : undefined;
    const known = places.get(name);
    if (known !== undefined) return known;
    if (taken + bytes > Math.min(most, MOST_BYTES)) return undefined;
    const place = allocateWithSpare(machine, bytes);
    if (place === undefined) return undefined;
    taken += bytes;
    places.set(name, place);
    return place;
  };
}

const sums = new WeakMap<Plan, number>();

/** Bytes of the places of their own that a plan's weights get where there is room. */
export function laidOutBytes(plan: Plan): number {
  const known = sums.get(plan) ?? sumOf(plan);
  sums.set(plan, known);
  return known;
}

function sumOf(plan: Plan): number {
  const laying = plan.steps.filter(({ node: { op } }) =>
    WASM_KERNELS[op]?.some(({ laysOut }) => laysOut)
  );
  if (laying.length === 0) return 0;
  const nameOf = placeNames(plan), places = new Set<string>();
  let taken = 0;
  for (const { node } of laying) {
    const kernel = chooseKernel(WASM_KERNELS, { node, simd: "relaxed", threads: 1 });
    const wanted = kernel?.laysOut?.(node);
    const name = wanted && nameOf(node.inputs[1]!, { ...wanted, layout: kernel!.name });
    if (name === undefined || name === OWN_PLACE || places.has(name)) continue;
    if (taken + wanted!.bytes > MOST_BYTES) continue;
    places.add(name);
    taken += wanted!.bytes;
  }
  return taken;
}

const OWN_PLACE = "";

type PlaceName = (
  value: Value,
  wanted: OtherLayout & { readonly layout: string },
) => string | undefined;

/** Equal for layouts that share a place, "" where the value lies, undefined for what is computed or given. */
function placeNames(plan: Plan): PlaceName {
  const { nodes, outputs } = plan.graph;
  const reads = new Map<string, number>();
  for (const value of [...nodes.flatMap(({ inputs }) => inputs), ...outputs]) {
    const key = value && constantKey(rootOf(plan, value));
    if (key !== undefined) reads.set(key, (reads.get(key) ?? 0) + 1);
  }
  return (value, { layout, bytes, inPlace }) => {
    const root = rootOf(plan, value), key = constantKey(root);
    if (key === undefined) return undefined;
    const own = hostElementBytes(root.dtype) * elementCount(root.shape as readonly number[]);
    const isOwn = inPlace && own === bytes && reads.get(key) === 1;
    return isOwn ? OWN_PLACE : `${layout}\n${key}`;
  };
}

function allocateWithSpare(
  machine: Pick<Machine, "allocate" | "release">,
  bytes: number,
): number | undefined {
  try {
    machine.release(machine.allocate(bytes + SPARE_BYTES));
  } catch (error) {
    if (error instanceof OutOfMemoryError) return undefined;
    throw error;
  }
  return machine.allocate(bytes);
}

/** Equal for constants that share a place; undefined for what is computed or given. */
function constantKey(value: Value): string | undefined {
  if (value.tensor) return weightKey(value);
  return value.data ? `constant ${value.id}` : undefined;
}
