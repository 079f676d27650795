// Devices of a placement by name: `wasm`, `gpu` and `reference` in this process, more of them with a number (`wasm1`); with
// `spawn-` in front in a process of their own; `gpu0`, `gpu1`, … are the cards of the machine; `HOST:PORT` is a peer, which
// `troodon peer` starts. A number alone is an entry of the list that was given, or, without one, a card, or one more
// device of the kind that `device` says.

import type { DeviceName } from "../run/backend.ts";
import { parseGroups } from "./grammar.ts";

/** What numbers stand for. */
export interface NumberedDevices {
  readonly devices?: readonly string[] | undefined;
  readonly device?: "auto" | DeviceName | undefined;
}

/** The name that a word of a placement means. @throws {RangeError} If there is no such device. */
export function deviceName(written: string, { devices, device = "auto" }: NumberedDevices): string {
  if (!/^\d+$/.test(written)) return checked(written);
  const index = Number(written);
  if (!devices) return device === "auto" ? `gpu${index}` : `${device}${index || ""}`;
  const name = devices[index];
  if (name !== undefined) return checked(name);
  throw new RangeError(
    `Cannot use device ${index}: it is not there; devices are ${
      devices.map((name, i) => `${i} ${name}`).join(", ") || "none"
    }`,
  );
}

/** Names of devices of this machine: own process, kind, number. */
export const LOCAL_DEVICE = /^(spawn-)?(wasm|reference|gpu)(\d*)$/;
const PEER = /^(?:[\w.-]+|\[[\da-f:]+\]):\d+$/i;

function checked(name: string): string {
  if (LOCAL_DEVICE.test(name) || PEER.test(name)) return name;
  throw new RangeError(
    `Cannot use device ${
      JSON.stringify(name)
    }: it is wasm, gpu, reference, one of them with a number, or HOST:PORT`,
  );
}

/** Placements that are words; their devices hang on model and machine. */
export const PRESETS: ReadonlySet<string> = new Set(["cpu", "gpu", "llamaf", "auto"]);

/**
 * The devices of a placement that is no preset, in its order.
 *
 * @throws {RangeError} If it is none, or a device is none.
 */
export function deviceNames(placement: string, numbered: NumberedDevices): string[] {
  return parseGroups(placement).flatMap(({ devices }) =>
    devices.map((written) => deviceName(written, numbered))
  );
}
