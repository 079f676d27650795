// The device that the options of load() ask for. Placements are read for who uses them.

import type { DeviceName } from "../run/backend.ts";
import { type Device, type DeviceOptions, openDevice } from "../run/devices.ts";
import type { PlacedLoad } from "./open_placement.ts";

/** Options that speak of more than one device as a whole. */
const PLACING = [
  "placement",
  "gpuLayers",
  "maxDeviceBytes",
  "hostEmbeddings",
  "hostKvPercent",
] as const;

/** Opens it. @throws As `openPlacement` and `openDevice`. */
export async function openDeviceFor(
  options: PlacedLoad & DeviceOptions & { readonly device?: "auto" | DeviceName | undefined },
): Promise<Device> {
  if (PLACING.every((name) => options[name] === undefined || options[name] === false)) {
    return await openDevice(options.device ?? "auto", options);
  }
  const { openPlacement } = await import("./open_placement.ts");
  return await openPlacement(options);
}
