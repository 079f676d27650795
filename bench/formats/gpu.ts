// Products on the GPU by number format, with the shaders and teams that the engine takes, timed by the GPU's clock where
// it has one. Weights rotate over more memory than a cache holds; a plain read of as many bytes in as many dispatches
// stands beside them. What a device could compute is not measured: the share of many rows is that of reading alone.

import { type Gpu, openGpu } from "../../gpu/gpu.ts";
import { gemmStepGroups, MATMUL_TUNING } from "../../gpu/kernels/matmul/tuning.ts";
import { hasGpuIntegerKernel } from "../../gpu/weight_layout.ts";
import { findFormat } from "../../quant/mod.ts";
import type { BenchCase } from "../gpu/case.ts";
import { chosenTeam, chosenTile, gemmCase, gemvCase } from "../gpu/cases.ts";
import { readTime } from "../gpu/read.ts";
import { createGpuTimer } from "../gpu/timer.ts";
import { median } from "../support/figures.ts";
import {
  type FormatBenchOptions,
  type FormatFigure,
  formatsFor,
  type FormatShape,
} from "./case.ts";

const MIB = 2 ** 20;

/** Times all formats of a shape in turns, since the clock rises from one timing to the next, and hands them out. */
export async function* gpuFormats(options: FormatBenchOptions): AsyncGenerator<FormatFigure> {
  const gpu = await openGpu();
  const { capabilities } = gpu;
  const small = capabilities.isSoftware;
  const timer = await createGpuTimer(gpu, {
    poolBytes: small ? 32 * MIB : Math.min(1024 * MIB, capabilities.maxBufferBytes),
    roomBytes: small ? 16 * MIB : 256 * MIB,
    rounds: 1,
    warmTurns: small ? 1 : 100_000,
  });
  try {
    for (const shape of options.shapes) {
      const turns = formatsFor(options, shape).map((name) => {
        const format = findFormat(name, shape.columns).name;
        const floats = options.exact || !hasGpuIntegerKernel(format);
        const product = productOf(gpu, { ...shape, format, floats }, small);
        return { format, floats, product, runs: [] as number[], reads: [] as number[] };
      });
      for (let round = 0; round < options.rounds; round++) {
        for (const { product, runs, reads } of round % 2 === 0 ? turns : turns.toReversed()) {
          timer.reset();
          runs.push(await timer.time(product.dispatches(timer)));
          reads.push(await readTime(timer, product.bytes!, product.runs));
        }
      }
      for (const { format, floats, product, runs, reads } of turns) {
        const microseconds = median(runs) / product.runs;
        yield {
          ...{ backend: "gpu", device: capabilities.adapter, shape },
          // Whose block is a row, its length says nothing more than the shape.
          format: format.replace(new RegExp(`_${shape.columns}$`), ""),
          activations: floats ? "f32" : "q8",
          bitsAWeight: 8 * product.bytes! / (shape.columns * shape.outputs),
          bytes: product.bytes!,
          seconds: microseconds / 1e6,
          gbps: product.bytes! / microseconds / 1e3,
          gops: product.operations! / microseconds / 1e3,
          share: median(reads) / median(runs),
        };
      }
    }
  } finally {
    gpu.dispose();
  }
}

function productOf(
  { capabilities }: Gpu,
  size: FormatShape & { readonly format: string; readonly floats: boolean },
  small: boolean,
): BenchCase {
  const { packedDot } = capabilities;
  if (size.rows <= MATMUL_TUNING.fewRows) {
    const shape = chosenTeam(capabilities, size);
    return gemvCase({ ...size, shape, variant: "chosen", packedDot, small });
  }
  const tile = { ...chosenTile(size), stepGroups: gemmStepGroups(size.columns) };
  return gemmCase({ ...size, tile, splits: 1, variant: "chosen", packedDot });
}
