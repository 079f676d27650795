// What the cases of the CPU bench and the one who runs them speak of: options, contenders, what was measured.

import type { BenchModel } from "../support/models.ts";
import type { Runner } from "../support/runner.ts";
import type { Bounds } from "./bounds.ts";
import type { Peer, Start } from "./peers.ts";

/** Names of cases, as filters take them. */
export const CASE_NAMES = [
  ...[
    "decode",
    "prefill",
    "context",
    "shared",
    "batch",
    "rows",
    "speculation",
    "schema",
    "busy",
    "memory",
    "start",
  ] as const,
];
/** One of {@linkcode CASE_NAMES}. */
export type CaseName = typeof CASE_NAMES[number];

/** What to measure. */
export interface CpuBenchOptions {
  readonly models: readonly BenchModel[];
  readonly threads: readonly number[];
  /** Whether somebody asked for those counts: models of a gigabyte are measured with the most of them otherwise. */
  readonly areThreadsAsked: boolean;
  /** Rounds that count. */
  readonly rounds: number;
  readonly cases: readonly CaseName[];
  /** Lengths of the prompts of `prefill`. */
  readonly prompts: readonly number[];
  /** Positions before the decoding of `context`. */
  readonly contexts: readonly number[];
  /** Tokens of a decode run. */
  readonly decode: number;
  /** Without peers there is nothing to install. */
  readonly peer: boolean;
  /** Of this engine; peers have one only. */
  readonly precision: "fast" | "exact";
}

/** One engine in a case. */
export interface Contender {
  readonly name: string;
  /** Undefined: this engine. */
  readonly peer: Peer | undefined;
  start(changes: Partial<Pick<Start, "context" | "sequences">>): Promise<Runner>;
}

/** What a case gets. */
export interface CaseInput {
  readonly model: BenchModel;
  readonly threads: number;
  readonly options: CpuBenchOptions;
  readonly contenders: readonly Contender[];
  /** This engine's executable without what stands around it. */
  readonly bare: Contender;
  readonly bounds: Bounds;
}

/** Samples of a case, by contender; this engine comes first. */
export type Samples = ReadonlyMap<Contender, readonly number[]>;

/** What a case measured. */
export interface Measured {
  readonly name: string;
  readonly unit: string;
  readonly samples: Samples;
  /** What the machine's limits allow, in the same unit; absent: they say nothing of this case. */
  readonly bound?: number;
}
