// Attention on contexts that are cut into segments, which the ops' own cases are too short for.

import { assertEquals } from "@std/assert";
import { attentionList } from "../../ops/attention_inputs.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { symbol } from "../../graph/dim/mod.ts";
import type { StateType } from "../../graph/graph.ts";
import type { CaseInput, OpCase } from "../../ops/op_case.ts";
import { getOp } from "../../ops/mod.ts";
import { difference, runCase } from "../case_run.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createWasmBackend } from "./backend.ts";

const CAPACITY = 700;

interface Shape {
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

function attentionCase(shape: Shape): OpCase {
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

const SHAPES: readonly Shape[] = [
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
  { positions: [699, 0, 128, 300], heads: 9, kvHeads: 3, width: 64, dtype: "q8_0" },
  { positions: [699, 511, 512], heads: 4, kvHeads: 1, width: 32, dtype: "q8_0", window: 512 },
  { positions: [690, 691, 692, 693, 694], heads: 6, kvHeads: 2, width: 64, dtype: "q8_0" },
];

for (const shape of SHAPES) {
  const { positions, heads, kvHeads, dtype } = shape;
  const name = `${dtype}, positions ${positions}, ${heads}/${kvHeads} heads`;
  Deno.test(`attention in segments equals the reference on any threads: ${name}`, async () => {
    const op = getOp("attention");
    const opCase = attentionCase(shape);
    const expected = await runCase(createReferenceBackend(), { op, opCase });
    // The query is rounded to 16 bit where keys are codes.
    const ofLargest = dtype === "q8_0" ? 5e-5 : 5e-6;
    for (const variant of ["baseline", "relaxed"] as const) {
      const one = await runCase(createWasmBackend({ threads: 1, variant }), { op, opCase });
      const two = await runCase(createWasmBackend({ threads: 2, variant }), { op, opCase });
      assertEquals(difference(one, expected, { ofLargest, reason: "float32" }), undefined);
      assertEquals(two, one);
    }
  });
}
