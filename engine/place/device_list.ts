// Devices of a placement by name: `wasm`, `gpu` and `reference` in this process, each as often as it is named (`wasm`,
// `wasm1`, …); `gpu0`, `gpu1`, … are the cards of the machine, by numbers; `HOST:PORT` is a peer (peers.md of docs). A number
// is an entry of the list that was given, or, without one, a card, or one more device of the kind that `device` says.

import { UnsupportedError } from "../errors.ts";
import type { DeviceName } from "../run/backend.ts";
import { type Device, type DeviceOptions, openDevice } from "../run/devices.ts";
import type { Member } from "./placed_device.ts";

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

const LOCAL = /^(wasm|reference|gpu)(\d*)$/;
const PEER = /^(?:[\w.-]+|\[[\da-f:]+\]):\d+$/i;

function checked(name: string): string {
  if (LOCAL.test(name) || PEER.test(name)) return name;
  throw new RangeError(
    `Cannot use device ${
      JSON.stringify(name)
    }: it is wasm, gpu, reference, one of them with a number, or HOST:PORT`,
  );
}

/** Opens the devices of a placement; those of one name are one. */
export async function openMembers(
  names: readonly string[],
  options: DeviceOptions,
): Promise<Member[]> {
  return await Promise.all(names.map(async (name): Promise<Member> => {
    const [, kind] = LOCAL.exec(name) ?? [];
    if (kind) return { name, device: await openLocal(kind as DeviceName, options) };
    throw new UnsupportedError(`device ${name} is not built`);
  }));
}

function openLocal(kind: DeviceName, options: DeviceOptions): Promise<Device> {
  return openDevice(kind, {
    ...options,
    // Budgets are those of the placement, which loads all parts.
    ...{ together: true, maxHostBytes: undefined, stream: undefined },
  });
}
