import { assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import { getOp } from "../../ops/mod.ts";
import { newRowsOnly } from "./new_rows_only.ts";

const N = symbol("N", { min: 1, max: 8 }), P = symbol("P", { min: 0, max: 8 });
const PASTS = new Map([["present", { name: "past", axis: 1 }]]);

/** A cache that grows along an axis, and a reader of all rows. */
function growing(axis: number, order: "past first" | "past last" = "past first") {
  const builder = createGraphBuilder("toy", getOp);
  const x = builder.input("x", axis === 1 ? [2, N, 4] : [N, 2, 4], "f32");
  const past = builder.input("past", axis === 1 ? [2, P, 4] : [P, 2, 4], "f32");
  const [rows] = builder.op("unary", [x], { kind: "scale", alpha: 2 }, "rows");
  const parts = order === "past first" ? [past, rows!] : [rows!, past];
  const [all] = builder.op("concat", parts, { axis }, "all");
  const [y] = builder.op("unary", [all!], { kind: "scale", alpha: 3 }, "y");
  builder.output("present", all!);
  builder.output("y", y!);
  return builder.build();
}

Deno.test("a result that is a past with rows behind it becomes the rows", () => {
  const { graph, replaced } = newRowsOnly(growing(1), PASTS);
  assertEquals([...replaced], ["present"]);
  assertEquals(graph.outputs.map(({ name, shape }) => [name, shape[1]]), [
    ["present", N],
    ["y", graph.nodes[1]!.outputs[0]!.shape[1]],
  ]);
  assertEquals(graph.nodes.map(({ op }) => op), ["unary", "concat", "unary"]);
});

Deno.test("a result of append_rows becomes its rows, heads in planes as the past has them", () => {
  for (const shape of [[2, N, 12], [2, 3, N, 4]]) {
    const builder = createGraphBuilder("toy", getOp);
    const past = builder.input("past", [2, 3, P, 4], "f32");
    const counts = builder.input("counts", [2], "i32");
    const [rows] = builder.op("unary", [builder.input("x", shape, "f32")], {
      kind: "scale",
      alpha: 2,
    }, "rows");
    const attributes = { heads: 3, capacity: P };
    const [all] = builder.op("append_rows", [rows!, past, counts], attributes, "all");
    builder.output("present", all!);
    const pasts = new Map([["present", { name: "past", axis: 2 }]]);
    const { graph, replaced } = newRowsOnly(builder.build(), pasts);
    assertEquals([...replaced], ["present"]);
    assertEquals(graph.outputs.map((value) => value.shape), [[2, 3, N, 4]]);
  }
});

Deno.test("a result stays whole where the past stands behind, or rows lie on another axis", () => {
  for (const graph of [growing(1, "past last"), growing(0)]) {
    assertEquals(newRowsOnly(graph, PASTS), { graph, replaced: new Set<string>() });
  }
});
