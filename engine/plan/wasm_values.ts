// Addresses of graph inputs, constants and activations in WASM memory.

import type { Machine } from "../../wasm/machine.ts";
import { UnsupportedError } from "../errors.ts";
import { product } from "../graph/dim.ts";
import type { DataType, Value } from "../graph/graph.ts";
import type { HostData } from "../graph/op.ts";
import { type Plan, rootOf } from "./plan.ts";
import { maximumOf, sizeOf } from "./sizes.ts";

/** Where values lie. */
export interface PlacedValues {
  /** Address of an input, constant or activation, views included. */
  addressOf(value: Value): number;
  /** View of a value at its maximum size. */
  view(value: Value): HostData;
}

/** Reserves inputs and arena, and copies constants. */
export function placeValues(machine: Machine, plan: Plan): PlacedValues {
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
  const arena = machine.allocate(arenaBytes);
  for (const { value, offset } of placements.values()) addresses.set(value.id, arena + offset);

  function addressOf(value: Value): number {
    const address = addresses.get(rootOf(plan, value).id);
    if (address === undefined) throw new TypeError(`${value.name} has no place in memory`);
    return address;
  }

  function view(value: Value): HostData {
    const make = VIEWS[value.dtype];
    if (!make) {
      throw new UnsupportedError(`cannot show ${value.dtype} values`, { place: value.name });
    }
    return make(machine)(addressOf(value), maximumOf(product(value.shape), limits));
  }

  return { addressOf, view };
}

type MakeView = (machine: Machine) => (address: number, length: number) => HostData;

const VIEWS: Readonly<Partial<Record<DataType, MakeView>>> = {
  f32: (machine) => machine.f32,
  i32: (machine) => machine.i32,
  u32: (machine) => machine.u32,
  f16: (machine) => machine.u16,
  u8: (machine) => machine.u8,
};
