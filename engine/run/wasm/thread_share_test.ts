import { assert, assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import { getOp } from "../../ops/mod.ts";
import { plan } from "../../plan/planner.ts";
import { workOf } from "./thread_share.ts";

Deno.test("work of a product is its multiplications and elements, at the limits", () => {
  const builder = createGraphBuilder("product", getOp);
  const N = symbol("N");
  const x = builder.input("x", [1, 3, N], "f32");
  const w = builder.constant("w", new Float32Array(8 * 3 * 5), [8, 3, 5]);
  builder.output("y", builder.op("conv", [x, w], { pads: [2, 2] }, "conv")[0]!);
  const work = (limit: number) => workOf(plan(builder.build(), { limits: { N: limit } }));
  assertEquals(work(10), 10 * (8 * 15 + 8 + 3));
  assertEquals(work(1000), 100 * work(10));
});

Deno.test("work of a product of two activations is at least its multiplications", () => {
  const builder = createGraphBuilder("scores", getOp);
  const [a, b] = [builder.input("a", [3, 40], "f32"), builder.input("b", [40, 5], "f32")];
  builder.output("y", builder.op("matmul_nd", [a, b], {}, "product")[0]!);
  assert(workOf(plan(builder.build(), { limits: {} })) >= 3 * 40 * 5);
});

Deno.test("a sequence counts its weights once a step", () => {
  const builder = createGraphBuilder("lstm", getOp);
  const x = builder.input("x", [7, 1, 4], "f32");
  const w = builder.constant("w", new Float32Array(8 * 4), [1, 8, 4]);
  const r = builder.constant("r", new Float32Array(8 * 2), [1, 8, 2]);
  const attributes = { kind: "lstm", hidden: 2, activations: ["Sigmoid", "Tanh", "Tanh"] };
  const [y] = builder.op("recurrent", [x, w, r], attributes, "lstm");
  builder.output("y", y!);
  const work = workOf(plan(builder.build(), { limits: {} }));
  assert(work >= 7 * 48 && work < 7 * 48 + 100, `${work}`);
});
