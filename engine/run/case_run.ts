// Runs one case of an op on any backend through a one-node graph, and compares two such runs.

import { formatBytes, getFormat, type NumberFormat } from "../../quant/mod.ts";
import { type Dim, type DimEnv, evaluate } from "../graph/dim/mod.ts";
import type { HostData } from "../graph/graph.ts";
import { elementCount } from "../ops/host_tensor.ts";
import type { OpRecord } from "../ops/op.ts";
import type { CaseInput, OpCase, Tolerance } from "../ops/op_case.ts";
import type { Backend, PreparedPlan, PrepareOptions } from "./backend.ts";
import { caseGraph } from "./case_graph.ts";
import type { Plan } from "../plan/plan.ts";
import { plan } from "../plan/planner.ts";

/** Outputs by name; states as `state of slot s`. */
export type CaseResult = ReadonlyMap<string, HostData>;

/** A case of an op, and one kernel of the op if named. */
export interface CaseToRun {
  readonly op: OpRecord;
  readonly opCase: OpCase;
  readonly kernel?: string | undefined;
}

/** Runs one case on a backend. */
export async function runCase(backend: Backend, asked: CaseToRun): Promise<CaseResult> {
  const { opCase } = asked, { bindings = {} } = opCase, states = statesOf(opCase);
  const use = async (executable: PreparedPlan, slots: number) => {
    await executable.run(bindings);
    const result = new Map<string, HostData>();
    for (const value of executable.plan.graph.outputs) {
      const count = countOf(value.shape, bindings);
      result.set(value.name, executable.output(value.name).slice(0, count));
    }
    for (let slot = 0; states.length > 0 && slot < slots; slot++) {
      const bytes = await executable.readState(slot, rowsOf(states));
      result.set(`state of slot ${slot}`, decodeStates(states, bytes));
    }
    return result;
  };
  return await withCase(backend, { ...asked, use });
}

/** Makes a case ready on a backend, its inputs and states in place, and hands it over. */
export async function withCase<P extends PreparedPlan, T>(
  backend: { prepare(plan: Plan, options: PrepareOptions): Promise<P> },
  { op, opCase, kernel, use }: CaseToRun & {
    readonly use: (executable: P, slots: number) => Promise<T>;
  },
): Promise<T> {
  const graph = caseGraph(op.name, opCase), states = statesOf(opCase);
  // Plans for larger sizes than are run: kernels must honour the binding, not the maximum.
  const limits = Object.fromEntries(
    Object.entries(opCase.bindings ?? {}).map(([name, n]) => [name, n + 3]),
  );
  const slots = Math.max(1, ...states.map((state) => state.slots.length));
  const executable = await backend.prepare(plan(graph, { limits }), {
    slots,
    ...kernel === undefined ? {} : { forceKernels: { [op.name]: kernel } },
  });
  try {
    for (let slot = 0; slot < slots; slot++) {
      executable.openSlot();
      if (states.length === 0) continue;
      await executable.writeState(slot, rowsOf(states), encodeStates(states, slot));
    }
    opCase.inputs.forEach((input, i) => {
      if (input?.role !== "input" && input?.role !== "quantized") return;
      (executable.input(`input${i}`) as Uint8Array).set(input.data as Uint8Array);
    });
    return await use(executable, slots);
  } finally {
    executable.dispose();
  }
}

type StateInput = Extract<CaseInput, { readonly role: "state" }>;

function statesOf({ inputs }: OpCase): StateInput[] {
  return inputs.filter((input) => input?.role === "state") as StateInput[];
}

/** Rows of what a slot holds. */
function rowsOf([state]: readonly StateInput[]): number {
  return state?.shape[0] ?? 0;
}

function countOf(shape: readonly Dim[], bindings: DimEnv): number {
  return elementCount(shape.map((dim) => evaluate(dim, bindings)));
}

function encodeStates(states: readonly StateInput[], slot: number): Uint8Array {
  const bytes = new Uint8Array(states.reduce((sum, state) => sum + bytesOf(state), 0));
  let at = 0;
  for (const state of states) {
    const values = state.slots[slot] ?? new Float32Array(elementCount(state.shape));
    formatOf(state).encode!(values, bytes.subarray(at, at += bytesOf(state)));
  }
  return bytes;
}

function decodeStates(states: readonly StateInput[], bytes: Uint8Array): Float32Array {
  const counts = states.map(({ shape }) => elementCount(shape));
  const values = new Float32Array(counts.reduce((a, b) => a + b, 0));
  let from = 0, to = 0;
  for (const [i, state] of states.entries()) {
    const part = bytes.subarray(from, from += bytesOf(state));
    formatOf(state).decode(part, values.subarray(to, to += counts[i]!));
  }
  return values;
}

function formatOf({ dtype }: StateInput): NumberFormat {
  return getFormat(dtype.toUpperCase());
}

function bytesOf(state: StateInput): number {
  return formatBytes(formatOf(state), elementCount(state.shape));
}

/** The first result that is further off than the tolerance, as a sentence; undefined if none is. */
export function difference(
  actual: CaseResult,
  expected: CaseResult,
  { ofLargest }: Tolerance,
): string | undefined {
  for (const [name, values] of expected) {
    const got = actual.get(name);
    if (got?.length !== values.length) {
      return `${name} has ${got?.length} values, expected ${values.length}`;
    }
    const bound = boundOf(values, ofLargest);
    for (const [i, value] of values.entries()) {
      // Infinities and NaN must be the same; everything else within the bound.
      if (Object.is(got[i], value) || Math.abs(Number(got[i]) - Number(value)) <= bound) continue;
      return `${name}[${i}] is ${got[i]}, expected ${value} ± ${bound}`;
    }
  }
  return undefined;
}

/** What float32 sums may be off by is no excuse for whole numbers and codes, only a step of rounding is. */
const LEAST_STEP = 1e-3;
/** Part of a tolerance that float64 has. */
const FLOAT64_PART = 1e-7;

function boundOf(values: HostData, ofLargest: number): number {
  const isFloat = values instanceof Float32Array || values instanceof Float64Array;
  if (!isFloat && ofLargest < LEAST_STEP) return -1;
  const sizes = Array.from(values as Float32Array, (value) => Math.abs(Number(value)));
  const part = values instanceof Float64Array ? FLOAT64_PART : 1;
  return part * ofLargest *
    sizes.filter(Number.isFinite).reduce((most, size) => Math.max(most, size), 0);
}
