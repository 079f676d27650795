// What self-tests have found, by kernel and number format: in the process for each device, and in a file of the cache
// folder, by adapter and versions, where that may be read and written without asking. Adapters that a caller brings are known by
// all that they can do besides, and by the version of who gives them (`GpuProvider.version`).

import type { GpuProvider } from "../../../gpu/capabilities.ts";
import type { Gpu } from "../../../gpu/gpu.ts";
import { cacheFile } from "../../formats/hub/cache.ts";
import { readIfAllowed, runtimeVersion, writeIfAllowed } from "../../io.ts";

/** Verdicts on the kernels of a device. */
export interface KernelVerdicts {
  get(key: string): boolean | undefined;
  set(key: string, isRight: boolean): void;
  /** Writes down what is new. */
  save(): void;
}

const FILE = "self-tests.json";
/** Of what is tested and how; a change makes all old verdicts void. */
const VERSION = 2;

type Stored = Record<string, Record<string, boolean>>;

const known = new WeakMap<Gpu, KernelVerdicts>();

/** The verdicts on a device. */
export function verdictsOf(
  gpu: Gpu,
  { provider, cacheDir }: {
    readonly provider: GpuProvider | undefined;
    readonly cacheDir: string | undefined;
  },
): KernelVerdicts {
  const found = known.get(gpu);
  if (found) return found;
  const path = cacheFile(FILE, cacheDir);
  const { adapter, ...abilities } = gpu.capabilities;
  const brought = provider
    ? `, ${provider.version ?? "brought"}, ${Object.values(abilities).map(Number).join(" ")}`
    : "";
  const name = `${adapter}, ${runtimeVersion()}, ${VERSION}${brought}`;
  const own: Record<string, boolean> = { ...path && read(path)[name] };
  let isNew = false;
  const verdicts: KernelVerdicts = {
    get: (key) => own[key],
    set(key, isRight) {
      isNew ||= own[key] !== isRight;
      own[key] = isRight;
    },
    save() {
      if (isNew && path) {
        writeIfAllowed(path, JSON.stringify({ ...read(path), [name]: own }, undefined, 2) + "\n");
      }
      isNew = false;
    },
  };
  known.set(gpu, verdicts);
  return verdicts;
}

function read(path: string): Stored {
  try {
    return JSON.parse(readIfAllowed(path) ?? "{}");
  } catch {
    return {}; // broken: written anew
  }
}
