// How many bytes a plan takes in WASM memory, before anything is loaded.

import { threadCount } from "../../../wasm/machine.ts";
import { formatLayout } from "../../../wasm/format_layouts.ts";
import { q8ScratchBytes } from "../../../wasm/matmul_scratch.ts";
import { floatBlock } from "../../../wasm/row_blocks.ts";
import { Q8_GROUP } from "../../../quant/q8_activation.ts";
import { packedBytes } from "../../../wasm/place_weight.ts";
import type { Value } from "../../graph/graph.ts";
import { elementCount, hostElementBytes } from "../../ops/host_tensor.ts";
import { stateBytes, type StateSizes } from "../pages/groups.ts";
import { distinctWeights, isMatrix, matrixSize, weightsOf } from "../plan_weights.ts";
import { laidOutBytes } from "./prepared.ts";
import type { Plan } from "../../plan/plan.ts";
import { roundedWeights } from "../../plan/rounded_weights.ts";

/** Room for program, tables and staging: so much, or a quarter of a small memory. */
export function reserveOf(memoryBytes: number): number {
  return Math.min(16 * 2 ** 20, memoryBytes / 4);
}

/**
 * Scratch memory for a plan's products, at most: each number of columns has its own.
 *
 * @param threads That are asked for; default: as many as a machine has.
 */
export function scratchBytes(plan: Plan, threads: number | undefined): number {
  const matrices = weightsOf(plan).filter(isMatrix), floats = formatLayout("F32")!.layout.id;
  const columns = columnsOf(matrices).filter((count) => count > 0 && count % Q8_GROUP === 0);
  const floatColumns = columnsOf(matrices.filter(({ tensor }) => tensor!.format === "F32"));
  return threadCount(threads) * (
    columns.reduce((sum, count) => sum + q8ScratchBytes(count), 0) +
    floatColumns.reduce((sum, count) => sum + floatBlock(count, floats).scratch_bytes, 0)
  );
}

function columnsOf(matrices: readonly Value[]): number[] {
  return [...new Set(matrices.map((value) => matrixSize(value)[1]))];
}

/** Bytes that a plan takes, by use, without the reserve. */
export interface WasmEstimate {
  readonly weights: number;
  /** Of weights that are laid out ahead in places of their own, which give way where memory is short. */
  readonly laidOut: number;
  readonly states: number;
  readonly activations: number;
}

/** Without what is laid out ahead. */
export function totalOf({ weights, states, activations }: WasmEstimate): number {
  return weights + states + activations;
}

// Loading asks whether to stream, to cut and to borrow.
const weightSums = new WeakMap<Plan, number>();

function weightSum(plan: Plan): number {
  const known = weightSums.get(plan);
  if (known !== undefined) return known;
  const rounded = roundedWeights(plan.graph.nodes);
  const sum = distinctWeights(plan).values()
    .reduce((sum, value) => sum + weightBytes(value, rounded.has(value.id)), 0);
  weightSums.set(plan, sum);
  return sum;
}

/** Adds up what a plan takes. */
export function estimate(plan: Plan, sizes: StateSizes): WasmEstimate {
  const weights = weightSum(plan);
  const states = stateBytes(plan.graph, sizes).values().reduce((sum, bytes) => sum + bytes, 0);
  return { weights, laidOut: laidOutBytes(plan), states, activations: plan.arenaBytes };
}

/** Bytes of a weight in WASM memory, `rounded` to 7 bit or as it is. */
export function weightBytes(value: Value, rounded: boolean): number {
  if (!isMatrix(value)) return plainBytes(value);
  const [rows, columns] = matrixSize(value);
  return packedBytes(value.tensor!.format, { rows, columns, rounded });
}

/** Bytes of a weight in WASM memory that is not packed. */
export function plainBytes({ shape, dtype }: Pick<Value, "shape" | "dtype">): number {
  return hostElementBytes(dtype) * elementCount(shape as readonly number[]);
}
