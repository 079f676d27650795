import { assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import { getOp } from "../../ops/mod.ts";
import { memorySource } from "../../io.ts";
import { wantedRowsOnly } from "./wanted_rows.ts";

const N = symbol("N", { min: 1, max: 8 }), L = symbol("L", { min: 1, max: 8 });
const WANTED = { result: "logits", input: "rows", count: L };

function graphOf({ isRead = false, isLast = true } = {}) {
  const builder = createGraphBuilder("toy", getOp);
  const source = memorySource("weights", new Uint8Array(96));
  const tensor = { name: "w", shape: [6, 4], format: "F32", source, offset: 0, byteLength: 96 };
  const x = builder.input("x", [1, N, 4], "f32");
  const [hidden] = builder.op("unary", [x], { kind: "scale", alpha: 2 }, "hidden");
  const [product] = builder.op("matmul", [hidden!, builder.weight("w", tensor)], {}, "product");
  if (isRead || !isLast) {
    const [y] = builder.op("unary", [product!], { kind: "scale", alpha: 3 }, "y");
    builder.output(isLast ? "y" : "logits", y!);
  }
  if (isLast) builder.output("logits", product!);
  return builder.build();
}

Deno.test("a product at the end is computed for the wanted rows", () => {
  const graph = wantedRowsOnly(graphOf(), WANTED)!;
  assertEquals(graph.inputs.map(({ name, dtype }) => [name, dtype]), [["x", "f32"], [
    "rows",
    "i32",
  ]]);
  assertEquals(graph.nodes.map(({ op }) => op), ["unary", "gather", "matmul"]);
  assertEquals(graph.outputs[0]!.shape, [1, L, 6]);
});

Deno.test("a result that others read, or that is no product, is left alone", () => {
  assertEquals(wantedRowsOnly(graphOf({ isRead: true }), WANTED), undefined);
  assertEquals(wantedRowsOnly(graphOf({ isLast: false }), WANTED), undefined);
});

Deno.test("a product that reads its rows as columns is left alone", () => {
  for (const transpose_a of [false, true]) {
    const builder = createGraphBuilder("toy", getOp);
    const source = memorySource("weights", new Uint8Array(96));
    const tensor = { name: "w", shape: [4, 6], format: "F32", source, offset: 0, byteLength: 96 };
    const [x] = builder.op("unary", [builder.input("x", [1, 4, 4], "f32")], {
      kind: "scale",
      alpha: 2,
    }, "x");
    const inputs = [x, builder.weight("w", tensor)];
    builder.output("logits", builder.op("matmul_nd", inputs, { transpose_a }, "product")[0]!);
    assertEquals(wantedRowsOnly(builder.build(), WANTED) === undefined, transpose_a);
  }
});
