// What the steps of a plan have to do for given bindings, counted from shapes: bytes of weights and caches
// that must come from memory, and multiplications and additions. Activations stay in caches and are left
// out. Elementwise steps have no work in this sense, only a time.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { type DimEnv, evaluate } from "../../engine/graph/dim/mod.ts";
import type { Node, Value } from "../../engine/graph/graph.ts";
import type { Plan } from "../../engine/plan/plan.ts";
import type { Work } from "./limits.ts";

/** A step to count: its bindings, and the position of its first row. */
export interface CountedStep {
  readonly bindings: DimEnv;
  readonly position: number;
}

/** The row of the table of LlamaF (arXiv 2409.11424, table 6) that a kernel belongs to. */
export type ProfileRow =
  | "matrix products"
  | "attention"
  | "SwiGLU"
  | "RoPE"
  | "RMSNorm"
  | "other"
  | "waiting"
  | "dispatch";

const ROWS: readonly (readonly [RegExp, ProfileRow])[] = [
  [/matmul/, "matrix products"],
  [/attention|kv_append|append_rows/, "attention"],
  [/glu|activation/, "SwiGLU"],
  [/rope|rotary/, "RoPE"],
  [/norm/, "RMSNorm"],
  [/waiting/, "waiting"],
];

/** The row of a kernel. */
export function profileRow(kernel: string): ProfileRow {
  return ROWS.find(([pattern]) => pattern.test(kernel))?.[1] ?? "other";
}

/** Work of all steps by kernel; `kernels` are those of the plan's steps. */
export function workByKernel(
  plan: Plan,
  kernels: readonly string[],
  step: CountedStep,
): Map<string, Work> {
  const all = new Map<string, Work>();
  for (const [i, { node }] of plan.steps.entries()) {
    const before = all.get(kernels[i]!) ?? { bytes: 0, operations: 0, isFloat: false };
    const { bytes, operations, isFloat } = workOf(node, step);
    all.set(kernels[i]!, {
      bytes: before.bytes + bytes,
      operations: before.operations + operations,
      isFloat: before.isFloat || isFloat,
    });
  }
  return all;
}

function workOf(node: Node, step: CountedStep): Work {
  if (/matmul/.test(node.op)) return productWork(node, step);
  const { op, inputs: [, k, v], outputs: [out], attributes } = node;
  if (op === "attention" && attributes.q_heads === 0) {
    const heads = (out!.shape[1] as number) / (v!.shape[2] as number);
    return attentionWork({ ...node, heads, k: k!, v: v! }, step);
  }
  return { bytes: 0, operations: 0, isFloat: false };
}

/** Every matrix among the inputs is read once; a row of a stack of experts uses some of them. */
function productWork({ inputs, outputs, attributes }: Node, { bindings }: CountedStep): Work {
  const rows = evaluate(outputs[0]!.shape[0]!, bindings);
  let bytes = 0;
  let operations = 0;
  for (const weight of inputs.filter(isMatrix)) {
    const shape = weight.shape as readonly number[];
    const [outputsOf, columns] = shape.slice(-2) as [number, number];
    const stack = shape.length === 3 ? shape[0]! : 1;
    const chosen = shape.length === 3 ? outputs[0]!.shape[1] as number : 1;
    const used = Math.min(stack, rows * chosen);
    bytes += rows === 0 ? 0 : used * weightBytes(weight, attributes, outputsOf * columns);
    operations += 2 * rows * chosen * outputsOf * columns;
  }
  return { bytes, operations, isFloat: inputs[0]!.dtype === "f32" && !attributes.normed };
}

function isMatrix(value: Value | undefined): value is Value {
  return value?.role === "weight" && value.tensor !== undefined && value.shape.length > 1;
}

function weightBytes({ tensor }: Value, { rounded }: Node["attributes"], values: number): number {
  // Rounded while loading, to a byte a value.
  return rounded === true ? values : formatBytes(getFormat(tensor!.format), values);
}

/** Keys and values of one slot are read once, however many rows and heads look at them. */
function attentionWork(
  { inputs, attributes, heads, k, v }: Node & {
    readonly heads: number;
    readonly k: Value;
    readonly v: Value;
  },
  { bindings, position }: CountedStep,
): Work {
  const rows = evaluate(inputs[0]!.shape[0]!, bindings);
  const [, kvHeads, width] = k.shape as [number, number, number];
  const both = width + (v.shape[2] as number);
  const window = attributes.window as number || Infinity;
  let pairs = 0;
  for (let row = 0; row < rows; row++) pairs += Math.min(window, position + row + 1);
  const length = Math.min(position + rows, window + rows - 1);
  return {
    bytes: rows === 0 ? 0 : length * kvHeads * both * (k.dtype === "f16" ? 2 : 4),
    operations: 2 * pairs * heads * both,
    isFloat: true,
  };
}
