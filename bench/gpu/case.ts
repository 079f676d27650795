// What a measurement of a GPU kernel is, and what may be chosen about a run of them.

import type { Capabilities } from "../../gpu/kernel.ts";
import type { BenchDispatch, GpuTimer } from "./timer.ts";

/** One measurement. */
export interface BenchCase {
  readonly group:
    | "gemv"
    | "gemm"
    | "attention"
    | "prefill"
    | "rows"
    | "fused"
    | "layer"
    | "layouts";
  /** Sizes. */
  readonly name: string;
  /** What is special about the shader; `chosen` is what the engine takes. */
  readonly variant: string;
  /** Bytes that are read at least, and operations, of one run. */
  readonly bytes?: number;
  readonly operations?: number;
  /** Runs that the dispatches are. */
  readonly runs: number;
  dispatches(timer: GpuTimer): readonly BenchDispatch[];
}

/** What to measure. */
export interface BenchChoice {
  readonly capabilities: Capabilities;
  readonly formats: readonly string[];
  /** All variants, not only the chosen ones. */
  readonly sweep: boolean;
  /** Small sizes, to try the bench on a software adapter. */
  readonly small: boolean;
}

/** Runs of the larger kernels in one timing. */
export const RUNS = 4;
