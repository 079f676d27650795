import { assert, assertEquals } from "@std/assert";
import { createCaseRandom } from "../../ops/case_random.ts";
import type { DataType } from "../../graph/graph.ts";
import { elementCount, hostArray, type HostTensor, setElement } from "../../ops/host_tensor.ts";
import { getOp } from "../../ops/mod.ts";
import { runReference } from "./fold.ts";
import { foldFast } from "./weight_folds.ts";

const random = createCaseRandom(11);

function tensor(dtype: DataType, ...shape: number[]): HostTensor {
  const count = elementCount(shape);
  const made: HostTensor = { dtype, shape, data: hostArray(dtype, { count }) };
  random.normal(count, 20).forEach((value, i) =>
    setElement(made, { index: i, value: dtype === "bool" ? Number(value > 0) : value })
  );
  return made;
}

const CASES: readonly (readonly [string, readonly HostTensor[], Record<string, unknown>])[] = [
  ...(["f64", "i8", "u8", "i16", "u16", "i32", "u32", "bool", "f32"] as const).map((dtype) =>
    ["cast", [tensor(dtype, 7, 5)], { to: "f32" }] as const
  ),
  ...(["add", "mul"] as const).flatMap((kind) =>
    ([
      [[5, 7], [5, 7]],
      [[5, 7], [7]],
      [[5, 7], [5, 1]],
      [[3, 5, 7], [5, 1]],
      [[3, 1, 7], [5, 1]],
      [[1], [4, 3]],
      [[2, 3], []],
      [[0, 3], [3]],
    ] as const).map(([a, b]) =>
      ["binary", [tensor("f32", ...a), tensor("f32", ...b)], { kind }] as const
    )
  ),
  ...([[1, 1], [3, 5], [70, 33], [0, 4]] as const).map((shape) =>
    ["transpose", [tensor("f32", ...shape)], { perm: [1, 0] }] as const
  ),
  ["transpose", [tensor("i64", 2, 3, 5)], { perm: [0, 2, 1] }],
  ["transpose", [tensor("f16", 2, 3, 40, 5)], { perm: [0, 1, 3, 2] }],
];

for (const [name, inputs, given] of CASES) {
  const shapes = inputs.map(({ dtype, shape }) => `${dtype}[${shape}]`).join(" and ");
  Deno.test(`${name} of ${shapes} folds to the bits of the reference`, () => {
    const op = getOp(name);
    const attributes = op.attributes(given as Record<string, number>);
    const types = op.infer(inputs, attributes);
    const fast = foldFast(name, { inputs, type: types[0]!, attributes });
    assert(fast);
    const [slow] = runReference(op, { inputs, types, attributes });
    assertEquals([fast.dtype, fast.shape], [slow!.dtype, slow!.shape]);
    assertEquals(fast.data, slow!.data);
  });
}

Deno.test("what has no fast fold is left to the reference", () => {
  const x = tensor("f32", 2, 3, 4);
  const type = { dtype: "f32", shape: [4, 2, 3] } as const;
  assertEquals(
    foldFast("transpose", { inputs: [x], type, attributes: { perm: [2, 0, 1] } }),
    undefined,
  );
  assertEquals(foldFast("softmax", { inputs: [x], type, attributes: {} }), undefined);
  assertEquals(
    foldFast("cast", {
      inputs: [tensor("i64", 3)],
      type: { dtype: "f32", shape: [3] },
      attributes: {},
    }),
    undefined,
  );
});
