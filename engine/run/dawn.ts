// Dawn as the giver of a GPU. It comes with the npm package `webgpu`, which is not installed before somebody asks for it:
// its name is built here, because Deno fetches what stands in an import.

import type { GpuProvider } from "../../gpu/capabilities.ts";
import { UnsupportedError } from "../errors.ts";
import { openFile, realPath } from "../io.ts";
import { importNamed } from "../npm_packages.ts";
import { type Mappable, waitWithFewLooks } from "./dawn_waits.ts";

/** The version whose experiments the kernels are written for. */
const PACKAGE = "webgpu@0.6.2";
/**
 * Subgroup matrices are an experiment; halves on NVIDIA's cards wait for a fix of an old driver; kernels look themselves
 * where they read, and indices of inputs are checked before a step (index_checks.ts); timestamps that tick every 65 µs say
 * little of a kernel.
 */
const TOGGLES = [
  "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia,disable_robustness",
  "disable-dawn-features=timestamp_quantization",
];

/** A prompt of 2,048 is read 1.2 times as fast in one step on matrices as in four (bench/results/gpu-h200.md). */
const ROWS_OF_STEP = 2048;

/** What the package and its library alone export. */
interface DawnModule {
  create(options: readonly string[]): GpuProvider;
  /** Its classes. */
  readonly globals: { readonly GPUBuffer: Mappable };
}

/**
 * Dawn's GPU.
 *
 * @param from `dawn`: the package; else the path of a `dawn.node`.
 * @throws {SourceError} If the file is not there.
 * @throws {UnsupportedError} If Dawn cannot be had.
 */
export async function openDawn(from: string): Promise<GpuProvider> {
  const path = from === "dawn" ? undefined : realPath(from);
  try {
    const { create, globals } = await (path === undefined ? packaged() : library(path));
    waitWithFewLooks(globals.GPUBuffer);
    const gpu = create(TOGGLES);
    return {
      requestAdapter: (options) => gpu.requestAdapter(options),
      ...gpu.wgslLanguageFeatures && { wgslLanguageFeatures: gpu.wgslLanguageFeatures },
      compilesInTurn: true,
      rowsOfStep: ROWS_OF_STEP,
      version: path === undefined ? PACKAGE : fileIdentity(path),
    };
  } catch (error) {
    throw new UnsupportedError(`cannot open Dawn: ${(error as Error).message.split("\n")[0]}`, {
      file: path ?? `npm:${PACKAGE}`,
      remedy: "Give --allow-ffi, --allow-read and --allow-env, or leave --gpu out",
    });
  }
}

async function packaged(): Promise<DawnModule> {
  return await importNamed<DawnModule>(`npm:${PACKAGE}`);
}

/** A `dawn.node` on the disk. */
async function library(path: string): Promise<DawnModule> {
  const { createRequire } = await import("node:module");
  return createRequire(import.meta.url)(path) as DawnModule;
}

/** Another one where the file is another one. */
function fileIdentity(path: string): string {
  const file = openFile(path);
  file.close();
  return file.file!;
}
