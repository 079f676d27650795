// What `troodon tune` has found out about a device (spec MD-7): which of the kernels that take a node is the fastest at
// such sizes, where kernels over virtual tensors keep them, and which kernels are wrong. Kept by device and version in
// the cache folder, where that may be read without asking, and used by every plan from then on. What is not in the table
// is chosen as ever, so a table of other sizes or of an older version changes nothing.

import type { KernelStorages } from "../../../gpu/storage_choice.ts";
import { FormatError } from "../../errors.ts";
import { cacheFile } from "../../formats/hub/cache.ts";
import { readIfAllowed, runtimeVersion } from "../../io.ts";
import { OBJECT, TEXT } from "../../record.ts";
import type { Backend } from "../backend.ts";

/** What is known of one device. */
export interface Tuning {
  /** Kernel by kind of node (`tuningKey` of kernel_choice.ts): the fastest, where that is not the first. */
  readonly prefer: Readonly<Record<string, string>>;
  /** Kernels that failed, or computed something else than the reference. */
  readonly excluded: readonly string[];
  /** Absent: by gpu/storage_choice.ts. */
  readonly storages?: KernelStorages;
}

/** Tables by device. */
export type Tunings = Readonly<Record<string, Tuning>>;

/** Of what is measured and how; a change makes all tables void. */
const VERSION = 2;

/** What a table of a device is kept under. */
export function tuningName(device: string): string {
  return `${device}, ${runtimeVersion()}, ${VERSION}`;
}

/** The path of the tables; undefined where nobody may look where it is. */
export function tuningPath(cacheDir: string | undefined): string | undefined {
  return cacheFile("tuning.json", cacheDir);
}

/** All tables; none where there is no file, or a broken one, which `tune` writes anew. */
export function readTunings(cacheDir: string | undefined): Tunings {
  const path = tuningPath(cacheDir), text = path && readIfAllowed(path);
  if (!text) return {};
  try {
    return parseTunings(text, path!);
  } catch {
    return {};
  }
}

/** Tables as text. */
export function showTunings(tables: Tunings): string {
  return JSON.stringify(tables, undefined, 2) + "\n";
}

/**
 * Tables from text.
 *
 * @throws {FormatError} If they are none; the message says where.
 */
export function parseTunings(text: string, file: string): Tunings {
  const wrong = (what: string) => new FormatError(`is no table of troodon tune: ${what}`, { file });
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw wrong("it is no JSON");
  }
  if (!OBJECT.accepts(parsed)) throw wrong("it is no object");
  for (const [device, table] of Object.entries(parsed)) {
    if (!OBJECT.accepts(table)) throw wrong(`${device} is no object`);
    const { prefer, excluded, storages = {}, ...others } = table;
    const other = Object.keys(others)[0];
    if (other !== undefined) throw wrong(`${device} has a ${other}`);
    if (!OBJECT.accepts(prefer) || !Object.values(prefer).every(TEXT.accepts)) {
      throw wrong(`prefer of ${device} must give names of kernels`);
    }
    if (!Array.isArray(excluded) || !excluded.every(TEXT.accepts)) {
      throw wrong(`excluded of ${device} must be a list of names`);
    }
    if (!OBJECT.accepts(storages) || !OBJECT.accepts(storages.conv ?? {})) {
      throw wrong(`storages of ${device} must be an object`);
    }
    for (const [place, kind] of Object.entries(storages.conv ?? {})) {
      if (!STORAGES[place]?.includes(kind)) {
        throw wrong(`storages of ${device} has no ${place} ${kind}`);
      }
    }
  }
  return parsed as unknown as Tunings;
}

const TENSORS = ["planes", "buffer", "texture_2d", "texture_3d", "texture_2d_array"];
const STORAGES: Readonly<Record<string, readonly unknown[]>> = {
  source: TENSORS,
  weights: ["buffer", "texture_2d"],
  target: TENSORS,
};

/** A backend that chooses by what was measured on its device; `find` gives its table. */
export function tuned(
  device: Backend,
  find: () => Promise<Tuning | undefined> | Tuning | undefined,
): Backend {
  return {
    ...device,
    async prepare(plan, options) {
      const found = await find();
      // With kernels of a row's own, others must not take its place.
      if (!found || options.rowByRow || options.forceKernels) {
        return await device.prepare(plan, options);
      }
      const { prefer, excluded, storages } = found;
      return await device.prepare(plan, {
        ...options,
        preferKernels: prefer,
        excludeKernels: new Set([...options.excludeKernels ?? [], ...excluded]),
        ...storages && { storages },
      });
    },
  };
}
