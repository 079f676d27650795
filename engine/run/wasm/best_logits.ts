// The best of a step's logits, found by the machine where that is all that will be looked at: JavaScript takes ten
// times as long to scan a large vocabulary, and copies it before (bench/results/kernels.md). It is a program of its own
// behind the step's, so that other steps are as they were: a spinning worker takes it up in a third of a microsecond.
// The row stays where it is until the next step.

import type { Machine } from "../../../wasm/machine.ts";
import { instruction } from "../../../wasm/opcodes.ts";
import { createProgram, type Program, type ProgramOperand } from "../../../wasm/program.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import type { BestLogits, StepWish } from "../backend.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import type { PlacedValues } from "./values.ts";

/** Most that are found; a wish for more is answered with the row alone. */
const MOST = 64;

/** Bytes of a thread's list: its head and an entry for each, in whole cache lines. */
const LIST_BYTES = 64 * Math.ceil((16 + 8 * MOST) / 64);

/** The logits of the last step. */
export interface WasmBestLogits {
  /** Finds the best `wanted`. */
  readonly program: Program;
  /** To be called before a step: what was found is of no step any more. */
  forget(): void;
  /** How many the program has to find after a step; 0: none. */
  wanted(bindings: DimEnv, wish: StepWish | undefined): number;
  /** To be called when the program has found so many. */
  found(count: number): void;
  /** What was found after the last step. */
  best(): BestLogits | undefined;
  /** Copies the row of a step, if it is still the last one. */
  readRow(step: number, target: Float32Array): boolean;
}

/** Prepares that for a plan with rows of logits among its outputs; undefined for others. */
export function createWasmBestLogits(
  machine: Machine,
  plan: Plan,
  values: PlacedValues,
  { profile = false }: { readonly profile?: boolean },
): WasmBestLogits | undefined {
  const output = plan.graph.outputs.find(({ name }) => name === "logits");
  const vocabulary = output?.shape.at(-1);
  const isRow = output?.dtype === "f32" && output.shape.length === 2 &&
    typeof vocabulary === "number" && vocabulary > 0;
  if (!isRow) return undefined;
  const root = rootOf(plan, output);
  const row = (values.view(root) as Float32Array).subarray(0, vocabulary);
  const { threads } = machine;
  const lists = machine.allocate(LIST_BYTES * threads);
  // A list of run 0 is of no run.
  machine.u32(lists, LIST_BYTES * threads >> 2).fill(0);
  const ids = machine.u32(machine.allocate(4 * MOST), MOST);
  const logits = machine.f32(machine.allocate(4 * MOST), MOST);
  const wanted: ProgramOperand = ({ wanted }) => wanted!;
  const [scan, scanOperands] = instruction<"best_logits", ProgramOperand>("best_logits", {
    ...{ row: values.addressOf(root), count: vocabulary, wanted, lists, list_bytes: LIST_BYTES },
  });
  const [merge, mergeOperands] = instruction<"best_logits_merge", ProgramOperand>(
    "best_logits_merge",
    {
      ...{ lists, list_bytes: LIST_BYTES, threads, wanted },
      ...{ ids: ids.byteOffset, logits: logits.byteOffset },
    },
  );
  const program = createProgram(machine, [
    { name: "best_logits", opcode: scan, operands: scanOperands, barrier: true },
    { name: "best_logits_merge", opcode: merge, operands: mergeOperands, barrier: true },
  ], { profile });
  let step = 0;
  let count = 0;

  return {
    program,
    forget() {
      step++;
      count = 0;
    },
    wanted: ({ L }, wish) =>
      wish && L === 1 && wish.bestLogits <= MOST ? Math.min(wish.bestLogits, vocabulary) : 0,
    found: (number) => count = number,
    best: () => count > 0 ? { ids, logits, count, step } : undefined,
    readRow(asked, target) {
      if (asked !== step || count === 0) return false;
      target.set(row);
      return true;
    },
  };
}
