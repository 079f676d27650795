// Addresses of graph inputs, constants and activations in WASM memory.

import type { Machine } from "../../../wasm/machine.ts";
import { UnsupportedError } from "../../errors.ts";
import { product } from "../../graph/dim/mod.ts";
import type { DataType, HostData, Value } from "../../graph/graph.ts";
import { hostArray } from "../../ops/host_tensor.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { maximumOf, sizeOf } from "../../plan/sizes.ts";
import type { WasmArena } from "./arena.ts";
import { isQ8 } from "../../ops/q8_rows.ts";

/** Where values lie. */
export interface PlacedValues {
  /** Address of an input, constant or activation, views included. */
  addressOf(value: Value): number;
  /** View of a value at its maximum size. */
  view(value: Value): HostData;
}

/** Reserves inputs and arena, unless it is a shared one, and copies constants. */
export function placeValues(
  machine: Machine,
  { plan, shared }: { readonly plan: Plan; readonly shared?: WasmArena | undefined },
): PlacedValues {
  const { graph, limits, placements, arenaBytes } = plan;
  const addresses = new Map<number, number>();
  for (const value of graph.inputs) {
    addresses.set(value.id, machine.allocate(sizeOf(value, limits).bytes));
  }
  for (const value of graph.nodes.flatMap(({ inputs }) => inputs)) {
    if (!value?.data || addresses.has(value.id)) continue;
    const { buffer, byteOffset, byteLength } = value.data;
    const address = machine.allocate(byteLength);
    machine.u8(address, byteLength).set(new Uint8Array(buffer, byteOffset, byteLength));
    addresses.set(value.id, address);
  }
  const arena = shared?.place(graph.name, arenaBytes) ?? machine.allocate(arenaBytes);
  for (const { value, offset } of placements.values()) addresses.set(value.id, arena + offset);

  function addressOf(value: Value): number {
    const address = addresses.get(rootOf(plan, value).id);
    if (address === undefined) throw new TypeError(`${value.name} has no place in memory`);
    return address;
  }

  function view(value: Value): HostData {
    if (isQ8(value.dtype)) {
      throw new UnsupportedError("cannot show q8 values", { place: value.name });
    }
    return viewAt(machine, {
      dtype: value.dtype,
      address: addressOf(value),
      count: maximumOf(product(value.shape), limits),
    });
  }

  return { addressOf, view };
}

/** View of elements in WASM memory. */
export function viewAt(
  machine: Machine,
  { dtype, address, count }: {
    readonly dtype: DataType;
    readonly address: number;
    readonly count: number;
  },
): HostData {
  // Typed arrays take shared memory like any other; only their type does not say so.
  return hostArray(dtype, {
    count,
    buffer: machine.memory.buffer as unknown as ArrayBuffer,
    offset: address,
  });
}
