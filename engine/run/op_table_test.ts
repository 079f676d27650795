import { assertEquals } from "@std/assert";
import { createGraphBuilder } from "../graph/builder.ts";
import { symbol } from "../graph/dim/mod.ts";
import { getOp } from "../ops/mod.ts";
import { multiplyAdds, opTable } from "./op_table.ts";
import { plan } from "../plan/planner.ts";

const N = symbol("N", { min: 1, max: 64 });

Deno.test("a table sums steps, bytes and multiply-adds by op at the sizes asked for", () => {
  const builder = createGraphBuilder("g", getOp);
  const x = builder.input("x", [N, 6], "f32");
  const w = builder.input("w", [6, 5], "f32");
  const square = builder.input("square", [5, 5], "f32");
  const [y] = builder.op("matmul_nd", [x, w], {}, "y");
  const [z] = builder.op("matmul_nd", [y!, square], {}, "z");
  const [determinant] = builder.op("det", [square], {}, "determinant");
  builder.output("z", z!);
  builder.output("determinant", determinant!);
  const made = plan(builder.build(), { limits: { N: 64 } });
  assertEquals(opTable(made, { N: 3 }), [
    {
      op: "matmul_nd",
      count: 2,
      onDevice: 2,
      onHost: 0,
      outputBytes: 4 * (3 * 5 + 3 * 5),
      multiplyAdds: 3 * 6 * 5 + 3 * 5 * 5,
    },
    { op: "det", count: 1, onDevice: 0, onHost: 1, outputBytes: 4, multiplyAdds: 0 },
  ]);
  assertEquals(opTable(made, made.limits)[0]!.outputBytes, 4 * (64 * 5 + 64 * 5));
});

Deno.test("multiply-adds of a convolution count its filter, those of attention both products", () => {
  const builder = createGraphBuilder("g", getOp);
  const image = builder.input("image", [1, 8, 10, 10], "f32");
  const filter = builder.input("filter", [12, 4, 3, 3], "f32");
  builder.op("conv", [image, filter], { groups: 2 }, "conv");
  const q = builder.input("q", [2, 4, N, 16], "f32");
  const k = builder.input("k", [2, 1, 7, 16], "f32");
  const v = builder.input("v", [2, 1, 7, 32], "f32");
  const heads = { q_heads: 4, kv_heads: 1, scale: 1 };
  builder.op("attention", [q, k, v], heads, "attention");
  const [conv, attention] = builder.build().nodes;
  assertEquals(multiplyAdds(conv!, {}), 12 * 8 * 8 * (4 * 3 * 3));
  assertEquals(multiplyAdds(attention!, { N: 5 }), 2 * 4 * 5 * 7 * (16 + 32));
});
