// The best of rows of values, found by the machine where those are all that will be looked at (RankedWish): JavaScript
// takes ten times as long to scan a large vocabulary, and copies it before (bench/results/kernels.md). It is a program
// of its own behind the run's, so that other runs are as they were: a spinning worker takes it up in a third of a
// microsecond. The rows stay where they are until the next run.

import type { Machine } from "../../../wasm/machine.ts";
import { instruction } from "../../../wasm/opcodes.ts";
import { createProgram, type Program, type ProgramOperand } from "../../../wasm/program.ts";
import { compile, type DimEnv } from "../../graph/dim/mod.ts";
import type { BestLogits, RankedWish } from "../backend.ts";
import { MOST_BEST } from "../step.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import type { PlacedValues } from "./values.ts";

/** Bytes of a thread's list: its head and an entry for each, in whole cache lines. */
const LIST_BYTES = 64 * Math.ceil((16 + 8 * MOST_BEST) / 64);

/** The best values of the rows of the last run. */
export interface WasmBestLogits {
  /** Finds the best of a row. */
  readonly program: Program;
  /** To be called before a run: what was found is of no run any more. */
  forget(): void;
  /** To be called behind a run: finds what was wished for. */
  find(bindings: DimEnv, wish: RankedWish, run: (program: Program, bindings: DimEnv) => void): void;
  /** What was found of a row after the last run. */
  best(row: number): BestLogits | undefined;
}

/** Prepares that for a plan with the ranked output; undefined for others. */
export function createWasmBestLogits(
  machine: Machine,
  { plan, values }: { readonly plan: Plan; readonly values: PlacedValues },
  { ranked, profile = false }: { readonly ranked: string | undefined; readonly profile?: boolean },
): WasmBestLogits | undefined {
  const output = plan.graph.outputs.find(({ name }) => name === ranked);
  const vocabulary = output?.shape.at(-1);
  const isRow = output?.dtype === "f32" && output.shape.length === 2 &&
    typeof vocabulary === "number" && vocabulary > 0;
  if (!isRow) return undefined;
  const { threads } = machine;
  const lists = machine.allocate(LIST_BYTES * threads);
  // A list of run 0 is of no run.
  machine.u32(lists, LIST_BYTES * threads >> 2).fill(0);
  const rowsOf = compile(output.shape[0]!), most = rowsOf(plan.limits);
  const idsAt = machine.allocate(4 * MOST_BEST * most);
  const logitsAt = machine.allocate(4 * MOST_BEST * most);
  // Made when a row is first asked for.
  const found: { ids: Uint32Array; logits: Float32Array; count: number }[] = [];
  const placeOf = (row: number) =>
    found[row] ??= {
      ids: machine.u32(idsAt + 4 * MOST_BEST * row, MOST_BEST),
      logits: machine.f32(logitsAt + 4 * MOST_BEST * row, MOST_BEST),
      count: 0,
    };
  const first = values.addressOf(rootOf(plan, output));
  const at = (from: number, bytes: number): ProgramOperand => ({ row }) => from + bytes * row!;
  const wanted: ProgramOperand = ({ wanted }) => wanted!;
  const [scan, scanOperands] = instruction<"best_logits", ProgramOperand>("best_logits", {
    ...{ row: at(first, 4 * vocabulary), count: vocabulary, wanted, lists },
    list_bytes: LIST_BYTES,
  });
  const [merge, mergeOperands] = instruction<"best_logits_merge", ProgramOperand>(
    "best_logits_merge",
    {
      ...{ lists, list_bytes: LIST_BYTES, threads, wanted },
      ...{ ids: at(idsAt, 4 * MOST_BEST), logits: at(logitsAt, 4 * MOST_BEST) },
    },
  );
  const program = createProgram(machine, [
    { name: "best_logits", opcode: scan, operands: scanOperands, barrier: true },
    { name: "best_logits_merge", opcode: merge, operands: mergeOperands, barrier: true },
  ], { profile });

  return {
    program,
    forget() {
      found.forEach((place) => void (place.count = 0));
    },
    find(bindings, { best }, run) {
      const rows = rowsOf(bindings);
      for (let row = 0; row < rows; row++) {
        const asked = best[row]!;
        if (asked <= 0 || asked > MOST_BEST) continue;
        const wanted = Math.min(asked, vocabulary);
        run(program, { row, wanted });
        placeOf(row).count = wanted;
      }
    },
    best: (row) => found[row]?.count ? found[row] : undefined,
  };
}
