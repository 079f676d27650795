// Outputs of a plan on the GPU: where they lie there, their copies on the host, and how those are filled from what a
// readback brought.

import type { CopySource, ReadbackUse } from "../../../gpu/readback.ts";
import { inWords } from "../../../gpu/write.ts";
import { compile, type CompiledDim, type DimEnv, product } from "../../graph/dim/mod.ts";
import type { HostData } from "../../graph/graph.ts";
import { hostArray } from "../../ops/host_tensor.ts";
import { type GpuValues, outputElementBytes } from "./values.ts";
import type { Plan } from "../../plan/plan.ts";
import { maximumOf } from "../../plan/sizes.ts";

/** An output on both sides. */
export interface GpuOutput {
  readonly name: string;
  /** Host copy, at its maximum size. */
  readonly data: HostData;
  readonly count: CompiledDim;
  /** Elements of a row, where rows have a fixed length. */
  readonly width: number;
  readonly elementBytes: number;
  readonly source: Omit<CopySource, "bytes">;
}

/** The outputs of a plan. */
export function gpuOutputs({ graph, limits }: Plan, values: GpuValues): GpuOutput[] {
  return graph.outputs.map((value) => {
    const { buffer, offset } = values.slice(value);
    return {
      name: value.name,
      data: hostArray(value.dtype, { count: maximumOf(product(value.shape), limits) }),
      count: compile(product(value.shape)),
      width: Number(value.shape.at(-1) ?? 1),
      elementBytes: outputElementBytes(value),
      source: { buffer, offset },
    };
  });
}

/** Bytes of all outputs at their largest, each in whole words. */
export function outputBytes({ graph, limits }: Plan): number {
  return graph.outputs.reduce((sum, value) => {
    const bytes = maximumOf(product(value.shape), limits) * outputElementBytes(value);
    return sum + inWords(bytes);
  }, 0);
}

/** Where the first row of an output lies. */
export function rowOf({ source, width, elementBytes }: GpuOutput): CopySource {
  return { ...source, bytes: width * elementBytes };
}

/** What there is to copy of the outputs of a run, one behind the other. */
export interface OutputCopies {
  readonly sources: readonly CopySource[];
  readonly bytes: number;
  /** Fills the host arrays with it. */
  readonly take: ReadbackUse;
}

/** The copies of a run with such bindings. */
export function outputCopies(outputs: readonly GpuOutput[], bindings: DimEnv): OutputCopies {
  const lengths = outputs.map(({ count, elementBytes }) => count(bindings) * elementBytes);
  return {
    sources: outputs.map(({ source }, i) => ({ ...source, bytes: inWords(lengths[i]!) }))
      .filter(({ bytes }) => bytes > 0),
    bytes: lengths.reduce((sum, length) => sum + inWords(length), 0),
    take(range, start) {
      let at = start;
      outputs.forEach(({ data }, i) => {
        new Uint8Array(data.buffer, data.byteOffset).set(new Uint8Array(range, at, lengths[i]!));
        at += inWords(lengths[i]!);
      });
    },
  };
}
