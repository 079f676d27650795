// Every kernel of a device against the scalar reference, on the cases that the ops offer. Tests run it
// for all devices and `troodon doctor` for the user's: a kernel that fails there is named and excluded.
// Each kernel is forced, not just the one that would be chosen.

import { UnsupportedError } from "../errors.ts";
import { createCaseRandom } from "../ops/case_random.ts";
import type { OpRecord } from "../ops/op.ts";
import type { OpCase, Tolerance } from "../ops/op_case.ts";
import { ops } from "../ops/mod.ts";
import type { Backend } from "./backend.ts";
import { type CaseResult, difference, runCase } from "./case_run.ts";
import { caseGraph } from "./case_graph.ts";
import { chooseKernel, kernelNames } from "./kernel_choice.ts";
import { LEAST_WASM, WASM_KERNELS } from "./wasm/kernel_table.ts";
import { createReferenceBackend } from "./reference/reference_backend.ts";

/** Outcome of one kernel on one case. */
export interface KernelCheck {
  /** Name of the op. */
  readonly op: string;
  /** Name of the kernel. */
  readonly kernel: string;
  /** Name of the case. */
  readonly case: string;
  /** `skipped`: the kernel does not take this case, or not on this machine. */
  readonly outcome: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped. */
  readonly reason?: string;
  /** What was thrown, if anything. */
  readonly cause?: unknown;
  /** How much of all checks came before this one, 0 to 1. */
  readonly done?: number;
}

/** Options of a self-test. */
export interface SelfTestOptions {
  /** Seed of the cases' data; default 1. */
  readonly seed?: number;
  /** Restricts the test to some ops. */
  readonly ops?: readonly string[];
  /** Restricts it to some kernels, by name; asked before each case, too. */
  readonly kernels?: (name: string) => boolean;
  /** Cases and what the reference gives on them, for who checks several devices; they decide about the seed. */
  readonly references?: References;
  /** Every so-manieth case only, from which one on: for who checks in several threads. Default: all. */
  readonly share?: { readonly index: number; readonly of: number };
  /** Hears the name of a kernel before each of its checks. */
  readonly onBegin?: (kernel: string) => void;
}

/** Cases of ops, and what the scalar reference gives on them. */
export interface References {
  cases(op: OpRecord): readonly OpCase[];
  result(op: OpRecord, opCase: OpCase): Promise<CaseResult>;
}

/** Makes each case, and computes its result, once. */
export function createReferences(seed: number): References {
  const cases = new Map<OpRecord, readonly OpCase[]>();
  const results = new Map<OpCase, Promise<CaseResult>>();
  return {
    cases: (op) => remembered(cases, op, () => op.cases?.(createCaseRandom(seed)) ?? []),
    result: (op, opCase) =>
      remembered(results, opCase, () => runCase(createReferenceBackend(), { op, opCase })),
  };
}

function remembered<K, V>(known: Map<K, V>, key: K, make: () => V): V {
  const value = known.get(key) ?? make();
  known.set(key, value);
  return value;
}

const DEFAULT_TOLERANCE: Tolerance = { ofLargest: 1e-5, reason: "float32 sums in another order" };

/**
 * Runs every kernel of the backend on every case of its op: first a few cases of all, so that who has not the time for all
 * has seen every kernel.
 */
export async function* checkKernels(
  backend: Backend,
  { seed = 1, ops: only, kernels: wanted = () => true, references, share, onBegin }:
    SelfTestOptions = {},
): AsyncGenerator<KernelCheck> {
  const { index, of } = share ?? { index: 0, of: 1 };
  const { cases, result } = references ?? createReferences(seed);
  const tested = [...ops.values()].flatMap((op) => {
    const kernels = kernelNames(backend.kernels, op.name).filter(wanted);
    return (only && !only.includes(op.name)) || kernels.length === 0 ? [] : [{ op, kernels }];
  });
  let place = 0;
  for (const { part, from, to } of PARTS) {
    for (const [before, { op, kernels }] of tested.entries()) {
      for (const opCase of part(cases(op))) {
        if (place++ % of !== index) continue;
        const expected = await result(op, opCase);
        const done = from + (to - from) * before / tested.length;
        for (const kernel of kernels.filter(wanted)) {
          const check = { op: op.name, kernel, case: opCase.name, done };
          onBegin?.(kernel);
          yield { ...check, ...await judge(backend, { op, opCase, kernel, expected }) };
        }
      }
    }
  }
}

/** The first and the last case of every op, small and large; then the others, which are most of the work. */
const PARTS = [
  { part: (all: readonly OpCase[]) => all.filter((_, i) => isFirst(i, all)), from: 0, to: 0.1 },
  { part: (all: readonly OpCase[]) => all.filter((_, i) => !isFirst(i, all)), from: 0.1, to: 1 },
] as const;

function isFirst(i: number, { length }: readonly OpCase[]): boolean {
  return i === 0 || i === length - 1;
}

/** A kernel on one case of its op, beside the scalar reference. */
export async function checkCase(
  backend: Backend,
  { op, opCase, ...more }: Omit<Trial, "expected">,
): Promise<Pick<KernelCheck, "outcome" | "reason" | "cause">> {
  const expected = await runCase(createReferenceBackend(), { op, opCase });
  return await judge(backend, { op, opCase, ...more, expected });
}

interface Trial {
  readonly op: OpRecord;
  readonly opCase: OpCase;
  readonly kernel: string;
  readonly expected: CaseResult;
  /** Default: that of the case, or of its op. */
  readonly tolerance?: Tolerance | undefined;
}

async function judge(
  backend: Backend,
  { op, opCase, kernel, expected, tolerance }: Trial,
): Promise<Pick<KernelCheck, "outcome" | "reason" | "cause">> {
  const node = caseGraph(op.name, opCase).nodes.find((candidate) => candidate.name === op.name)!;
  const wish = { forceKernels: { [op.name]: kernel } };
  // Known without preparing anything; what a GPU can do is not.
  const isTaken = backend.name !== "wasm" ||
    chooseKernel(WASM_KERNELS, { ...LEAST_WASM, node }, wish) !== undefined;
  if (!isTaken) return { outcome: "skipped", reason: `${kernel} does not take it` };
  try {
    const actual = await runCase(backend, { op, opCase, kernel });
    const reason = difference(
      actual,
      expected,
      tolerance ?? opCase.tolerance ?? op.tolerance ?? DEFAULT_TOLERANCE,
    );
    return reason === undefined ? { outcome: "passed" } : { outcome: "failed", reason };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const outcome = error instanceof UnsupportedError ? "skipped" : "failed";
    return { outcome, reason, cause: error };
  }
}
