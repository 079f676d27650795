// Products on WASM by number format. A product runs on as many copies of its weights as leave the caches, one after
// the other; in between their bytes are read and nothing else, on the same threads.

import { findFormat } from "../../quant/mod.ts";
import { hasIntegerKernel } from "../../wasm/format_layouts.ts";
import { createMachine, type Machine } from "../../wasm/machine.ts";
import { type Limits, measureLimits } from "../support/limits.ts";
import { type PreparedProduct, prepareProduct } from "../support/matmul.ts";
import {
  type FormatBenchOptions,
  type FormatFigure,
  formatsFor,
  type FormatShape,
} from "./case.ts";

/** Times all formats and shapes. */
export async function* wasmFormats(options: FormatBenchOptions): AsyncGenerator<FormatFigure> {
  for (const threads of options.threads) {
    using machine = await createMachine({ threads });
    const limits = options.shapes.some(({ rows }) => rows > 1) ? measureLimits(machine) : undefined;
    for (const shape of options.shapes) {
      for (const name of formatsFor(options, shape)) {
        yield await measure(machine, name, shape, options, limits);
      }
    }
  }
}

async function measure(
  machine: Machine,
  name: string,
  shape: FormatShape,
  { rounds, exact }: FormatBenchOptions,
  limits: Limits | undefined,
): Promise<FormatFigure> {
  const format = findFormat(name, shape.columns).name;
  const onFloats = exact || !hasIntegerKernel(format);
  using product = await prepareProduct(machine, { ...shape, format, exact: onFloats }, true);
  const bytes = product.bytes / product.copies, operations = product.operations / product.copies;
  const { run, read } = timesOfEach(product, rounds);
  const arithmetic = limits && shape.rows > 1
    ? operations / (onFloats ? limits.float : limits.integer) / 1e6
    : 0;
  return {
    ...{ backend: "wasm", device: `${machine.threads} thread${machine.threads === 1 ? "" : "s"}` },
    // Whose block is a row, its length says nothing more than the shape.
    format: format.replace(new RegExp(`_${shape.columns}$`), ""),
    ...{ shape, activations: onFloats ? "f32" : "q8" },
    bitsAWeight: 8 * bytes / (shape.columns * shape.outputs),
    bytes,
    seconds: run / 1e3,
    gbps: bytes / run / 1e6,
    gops: operations / run / 1e6,
    share: Math.max(read, arithmetic) / run,
  };
}

/**
 * Milliseconds of one copy: the lower decile of all, because others use the machine too and a copy takes but a
 * millisecond or so. Product and reading take turns, on copies far from each other.
 */
function timesOfEach({ parts }: PreparedProduct, rounds: number) {
  const runs: number[] = [], reads: number[] = [];
  for (const { run } of parts) run();
  for (let round = 0; round < rounds; round++) {
    for (const [i, { run }] of parts.entries()) {
      reads.push(milliseconds(parts[(i + (parts.length >> 1)) % parts.length]!.read));
      runs.push(milliseconds(run));
    }
  }
  return { run: lowerDecile(runs), read: lowerDecile(reads) };
}

function lowerDecile(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 10)]!;
}

function milliseconds(run: () => void): number {
  const start = performance.now();
  run();
  return performance.now() - start;
}
