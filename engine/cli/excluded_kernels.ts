// Kernels that failed the self-test on this machine. `troodon doctor` writes their names beside the
// cached models; the other commands leave them out. The list is only read where that is permitted
// already, so that inference never asks for more than the model's own folder.

import { cacheFile } from "../formats/hub/cache.ts";
import { readIfPermitted, writeText } from "./machine.ts";

/** Where the list is; undefined where the cache folder is not known. */
export function excludedKernelsPath(cacheDir: string | undefined): string | undefined {
  return cacheFile("excluded-kernels.json", cacheDir);
}

/** Names of kernels that must not be used. */
export async function readExcludedKernels(cacheDir: string | undefined): Promise<string[]> {
  const path = excludedKernelsPath(cacheDir);
  const text = path && await readIfPermitted(path);
  if (!text) return [];
  try {
    const { kernels } = JSON.parse(text) as { kernels?: unknown };
    if (Array.isArray(kernels) && kernels.every((name) => typeof name === "string")) return kernels;
  } catch {
    // Falls through: the file is broken.
  }
  throw new TypeError(`${path} is broken: run troodon doctor again, it writes the file anew`);
}

/** Replaces the list. */
export async function writeExcludedKernels(
  path: string,
  kernels: readonly string[],
): Promise<void> {
  await writeText(path, JSON.stringify({ kernels }, undefined, 2) + "\n");
}
