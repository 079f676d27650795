// Attention on contexts that are cut into segments, which the ops' own cases are too short for. As a process of its own it
// compares kernels that V8 joins to 256 bits with others, so that it can have the flag that joins.

import { assertEquals } from "@std/assert";
import { attentionList } from "../../engine/ops/attention_inputs.ts";
import { createCaseRandom } from "../../engine/ops/case_random.ts";
import { getOp } from "../../engine/ops/mod.ts";
import type { CaseInput, OpCase } from "../../engine/ops/op_case.ts";
import { symbol } from "../../engine/graph/dim/mod.ts";
import type { StateType } from "../../engine/graph/graph.ts";
import { runCase } from "../../engine/run/case_run.ts";
import { createWasmBackend } from "../../engine/run/wasm/backend.ts";

const CAPACITY = 700;

/** What a case is about. */
export interface AttentionShape {
  readonly positions: readonly number[];
  readonly heads: number;
  readonly kvHeads: number;
  readonly width: number;
  readonly dtype: StateType;
  readonly window?: number;
  readonly softcap?: number;
  /** By default rows alternate between two. */
  readonly slots?: readonly number[];
}

/** A case of random values. */
export function attentionCase(shape: AttentionShape): OpCase {
  const { positions, heads, kvHeads, width, dtype, window = 0, softcap = 0 } = shape;
  const random = createCaseRandom(3);
  const rows = positions.length;
  const M = symbol("M", { max: 64 });
  const cache = () => ({
    role: "state" as const,
    dtype,
    shape: [CAPACITY, kvHeads, width],
    slots: [0, 1].map(() => random.normal(CAPACITY * kvHeads * width)),
  });
  const indices = (data: readonly number[]) => ({
    role: "input" as const,
    dtype: "i32" as const,
    shape: [M],
    data: Int32Array.from(data),
  });
  return {
    name: JSON.stringify(shape),
    inputs: attentionList<CaseInput>({
      q: {
        role: "input",
        dtype: "f32",
        shape: [M, heads, width],
        data: random.normal(rows * heads * width),
      },
      k: cache(),
      v: cache(),
      positions: indices(positions),
      slots: indices(shape.slots ?? positions.map((_, i) => i % 2)),
    }),
    attributes: { scale: width ** -0.5, window, softcap },
    bindings: { M: rows },
  };
}

/** What the cases are about. */
export const ATTENTION_SHAPES: readonly AttentionShape[] = [
  { positions: [699], heads: 3, kvHeads: 1, width: 64, dtype: "f16" },
  { positions: [63, 64], heads: 2, kvHeads: 2, width: 16, dtype: "f16" },
  { positions: [699, 0, 128, 300], heads: 4, kvHeads: 2, width: 20, dtype: "f16" },
  { positions: [699, 511, 512], heads: 4, kvHeads: 1, width: 32, dtype: "f16", window: 512 },
  { positions: [650, 40], heads: 5, kvHeads: 1, width: 12, dtype: "f16", softcap: 20 },
  { positions: [699, 10, 65], heads: 4, kvHeads: 4, width: 8, dtype: "f32", window: 100 },
  { positions: [690, 691, 692, 693, 694], heads: 6, kvHeads: 2, width: 64, dtype: "f16" },
  { positions: [699], heads: 9, kvHeads: 3, width: 80, dtype: "f16", window: 150 },
  { positions: [699, 64, 130, 3, 320], heads: 14, kvHeads: 2, width: 128, dtype: "f16" },
  ...(["f16", "f32", "q8_0"] as const).map((dtype) => ({
    ...{ positions: [320, 321, 322, 130, 131, 323], slots: [0, 0, 0, 1, 1, 0] },
    ...{ heads: 6, kvHeads: 1, width: 128, dtype },
  })),
  // A tile that threads share out: its rows see other positions than half of it does, and go together in other numbers.
  ...([[4, 8], [5, 6], [3, 10]] as const).flatMap(([heads, length]) =>
    (["f16", "f32", "q8_0"] as const).map((dtype) => ({
      positions: Array.from({ length }, (_, i) => 650 + i),
      slots: Array(length).fill(0),
      ...{ heads, kvHeads: 1, width: 64, window: 151, dtype },
    }))
  ),
  // One query at a time, and two.
  { positions: [699, 300], heads: 2, kvHeads: 2, width: 64, dtype: "f16" },
  { positions: [699, 300], heads: 4, kvHeads: 2, width: 64, dtype: "f16" },
  { positions: [699, 0, 128, 300], heads: 9, kvHeads: 3, width: 64, dtype: "q8_0" },
  { positions: [699, 511, 512], heads: 4, kvHeads: 1, width: 32, dtype: "q8_0", window: 512 },
  { positions: [690, 691, 692, 693, 694], heads: 6, kvHeads: 2, width: 64, dtype: "q8_0" },
];

/** Compares kernels that V8 joins with others, bit by bit. */
export async function compareAttention(dtype?: StateType): Promise<void> {
  const op = getOp("attention");
  for (const shape of ATTENTION_SHAPES) {
    if (dtype && shape.dtype !== dtype) continue;
    const opCase = attentionCase(shape);
    const [joined, other] = await Promise.all(
      [true, false].map((joins) =>
        runCase(createWasmBackend({ threads: 1, variant: "relaxed", joins }), { op, opCase })
      ),
    );
    assertEquals(joined, other, opCase.name);
  }
}

if (import.meta.main) await compareAttention(Deno.args[0] as StateType);
