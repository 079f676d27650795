// Constants in layouts that kernels want, made of them once, before the first run. A constant that one node alone reads
// is changed where it lies, if the layout takes as many bytes; others get a place of their own, as long as there is room.

import { OutOfMemoryError } from "../../../wasm/allocator.ts";
import type { Machine } from "../../../wasm/machine.ts";
import type { Value } from "../../graph/graph.ts";
import { elementCount, hostElementBytes } from "../../ops/host_tensor.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { weightKey } from "../plan_weights.ts";

/** Most bytes of places of their own: what is beyond is made anew by every run. */
const MOST_BYTES = 2 ** 28;
/** Room that they leave for what is allocated behind them. */
const SPARE_BYTES = 2 ** 24;

/**
 * Where a value's other layout of so many bytes, called `layout`, lies; undefined if it cannot be made before a run.
 *
 * @param address Of the value.
 */
export type PreparedPlaces = (
  value: Value,
  wanted: {
    readonly address: number;
    readonly layout: string;
    readonly bytes: number;
    readonly inPlace: boolean;
  },
) => number | undefined;

/** Gives layouts of a plan's constants their places. */
export function createPreparedPlaces(machine: Machine, plan: Plan): PreparedPlaces {
  const { nodes, outputs } = plan.graph;
  const reads = new Map<string, number>();
  for (const value of [...nodes.flatMap(({ inputs }) => inputs), ...outputs]) {
    const key = value && constantKey(rootOf(plan, value));
    if (key !== undefined) reads.set(key, (reads.get(key) ?? 0) + 1);
  }
  const places = new Map<string, number>();
  let taken = 0;
  return (value, { address, layout, bytes, inPlace }) => {
    const root = rootOf(plan, value), key = constantKey(root);
    if (key === undefined) return undefined;
    const own = hostElementBytes(root.dtype) * elementCount(root.shape as readonly number[]);
    if (inPlace && own === bytes && reads.get(key) === 1) return address;
    const name = `${layout}\n${key}`, known = places.get(name);
    if (known !== undefined) return known;
    if (taken + bytes > MOST_BYTES) return undefined;
    const place = allocateWithSpare(machine, bytes);
    if (place === undefined) return undefined;
    taken += bytes;
    places.set(name, place);
    return place;
  };
}

function allocateWithSpare(machine: Machine, bytes: number): number | undefined {
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
