// Indices that come in as graph inputs: token ids, positions, slots, rows. Kernels use them as addresses,
// so a device checks them before a step; a wrong one is then an error with its value, and the device
// lives on.

import {
  add,
  compile,
  type CompiledDim,
  type Dim,
  type DimEnv,
  equal,
  product,
  sub,
} from "../graph/dim/mod.ts";
import type { Node, Value } from "../graph/graph.ts";
import { heads } from "../ops/attention_rows.ts";
import { ATTENTION_INPUTS } from "../ops/attention_inputs.ts";
import { axisOf } from "../ops/host_numbers.ts";
import type { HostData } from "../ops/op.ts";
import type { Plan } from "../plan/plan.ts";

/** What the checks look at. */
export interface IndexContext {
  /** Memory of a graph input. */
  data(input: Value): HostData;
  /** @throws {RangeError} If a slot is not open. */
  checkSlot(slot: number): void;
}

/** Which input of an op holds indices, and how many things there are; `slots`: open slots only. */
type IndexRule = readonly [
  input: number,
  limit: (node: Node) => Dim | "slots",
  /** Negative indices count from the end. */
  fromEnd?: boolean,
  /** An index that is never used, and may be anything. */
  unused?: (node: Node) => number | undefined,
];

/** Size of the axis of an op's first input. */
function axisSize({ inputs, attributes }: Node): Dim {
  const { shape } = inputs[0]!;
  return shape[axisOf(attributes.axis as number, shape.length)]!;
}

/** Of tuples of one index the size of its dim; others are checked where they are used. */
function tupleLimit({ inputs: [x, indices], attributes }: Node): Dim {
  return indices!.shape.at(-1) === 1 ? x!.shape[attributes.batch_dims as number]! : 2 ** 31;
}

/** Positions that tables of cosines hold, for the first of an item's rows where that is all that is given. */
function tableLimit({ inputs: [x, cosines, , positions], attributes }: Node): Dim {
  const entries = product(cosines!.shape.slice(0, -1));
  const { rows } = heads(x!.shape, attributes.heads as number);
  return positions && equal(product(positions.shape), 1) ? add(sub(entries, rows), 1) : entries;
}

const [POSITIONS, SLOTS, STARTS, ENDS, ROWS] =
  (["positions", "slots", "starts", "ends", "rows"] as const).map(
    (name) => ATTENTION_INPUTS.indexOf(name),
  ) as [number, number, number, number, number];

/** Keys that the rows of a step see, which may lie in one tensor with their queries. */
function keysOf({ inputs: [q, k] }: Node): Dim {
  return (k ?? q)!.shape[0]!;
}

const INDICES: Readonly<Record<string, readonly IndexRule[]>> = {
  embed: [[0, ({ inputs }) => inputs[1]!.shape[0]!]],
  gather: [[1, axisSize, true]],
  gather_elements: [[1, axisSize, true]],
  gather_nd: [[1, tupleLimit, true]],
  nll_loss: [[
    1,
    ({ inputs }) => inputs[0]!.shape[1]!,
    true,
    ({ attributes }) => attributes.ignores ? attributes.ignore_index as number : undefined,
  ]],
  rope: [[3, tableLimit]],
  select_rows: [[1, ({ inputs }) => inputs[0]!.shape[0]!]],
  kv_append: [[2, ({ inputs }) => inputs[0]!.shape[0]!], [3, () => "slots"]],
  // The end of a span is behind its last row; where it is given, a position is for distances alone.
  attention: [
    [STARTS, (node) => add(keysOf(node), 1)],
    [ENDS, (node) => add(keysOf(node), 1)],
    [POSITIONS, (node) => node.inputs[ENDS] ? 2 ** 31 : keysOf(node)],
    [SLOTS, () => "slots"],
    [ROWS, ({ inputs }) => inputs[0]!.shape[0]!],
  ],
};

/** Functions to call before each step; they throw a RangeError on an index out of range. */
export function indexChecks(plan: Plan, context: IndexContext): ((bindings: DimEnv) => void)[] {
  const checks = new Map<string, (bindings: DimEnv) => void>();
  for (const { node } of plan.steps) {
    for (const [index, limitOf, fromEnd = false, unusedOf] of INDICES[node.op] ?? []) {
      const input = node.inputs[index];
      if (input?.role !== "input") continue;
      const limit = limitOf(node), unused = unusedOf?.(node);
      const key = `${input.id} ${typeof limit === "object" ? node.id : limit} ${unused}`;
      if (checks.has(key)) continue;
      const count = compile(product(input.shape));
      const data = context.data(input) as Int32Array;
      checks.set(
        key,
        limit === "slots"
          ? (bindings) => checkSlots(context, data, count(bindings))
          : rangeCheck(plan, input, data, { count, limit: compile(limit), fromEnd, unused }),
      );
    }
  }
  return [...checks.values()];
}

/** Names of the graph inputs that are looked at before each step. */
export function checkedInputs({ steps }: Plan): Set<string> {
  const rules = steps.flatMap(({ node }) =>
    (INDICES[node.op] ?? []).map(([index]) => node.inputs[index])
  );
  return new Set(rules.flatMap((input) => input?.role === "input" ? [input.name] : []));
}

function checkSlots({ checkSlot }: IndexContext, data: Int32Array, count: number): void {
  for (let i = 0; i < count; i++) checkSlot(data[i]!);
}

function rangeCheck(
  { graph }: Plan,
  { name }: Value,
  data: Int32Array,
  { count, limit, fromEnd, unused }: {
    readonly count: CompiledDim;
    readonly limit: CompiledDim;
    readonly fromEnd: boolean;
    readonly unused: number | undefined;
  },
): (bindings: DimEnv) => void {
  return (bindings) => {
    const most = limit(bindings), length = count(bindings), least = fromEnd ? -most : 0;
    for (let i = 0; i < length; i++) {
      // 64-bit indices compare as they are.
      if (data[i]! >= least && data[i]! < most) continue;
      if (unused !== undefined && Number(data[i]) === unused) continue;
      throw new RangeError(
        `Cannot run ${graph.name}: ${name}[${i}] is ${data[i]} and must be in ${least}..${
          most - 1
        }`,
      );
    }
  };
}
