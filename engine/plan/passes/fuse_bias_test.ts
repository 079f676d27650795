import { assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import { tensorInMemory } from "../../run/case_graph.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { deadCode } from "./dead_code.ts";
import { fuseBias } from "./fuse_bias.ts";
import type { PassContext } from "./pass.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => true,
};

/** [3, 2] · [4, 2]ᵀ and what `use` does with the product and a vector of 4. */
function product(
  use: (sums: Value, bias: Value, add: (a: Value, b: Value) => Value) => Value,
): Graph {
  const builder = createGraphBuilder("bias", getOp);
  const x = builder.input("x", [3, 2], "f32");
  const bytes = new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8).buffer);
  const weight = builder.weight("w", tensorInMemory("w", { format: "F32", shape: [4, 2], bytes }));
  const bias = builder.constant("b", Float32Array.of(10, 20, 30, 40));
  const [sums] = builder.op("matmul", [x, weight], {}, "product") as [Value];
  let count = 0;
  const add = (a: Value, b: Value) =>
    builder.op("binary", [a, b], { kind: "add" }, `add.${count++}`)[0]!;
  builder.output("y", use(sums, bias, add));
  return builder.build();
}

async function outputOf(graph: Graph): Promise<number[]> {
  const executable = await createReferenceBackend().prepare(plan(graph, { limits: {} }), {
    slots: 1,
  });
  (executable.input("x") as Float32Array).set([1, 0, 0, 1, 1, 1]);
  await executable.run({});
  const result = [...executable.output("y") as Float32Array];
  executable.dispose();
  return result;
}

Deno.test("a vector that is added on either side becomes the bias", async () => {
  for (const swapped of [false, true]) {
    const before = product((sums, bias, add) => swapped ? add(bias, sums) : add(sums, bias));
    const after = deadCode.run(fuseBias.run(before, CONTEXT), CONTEXT);
    verify(after, getOp);
    assertEquals(after.nodes.map(({ op }) => op), ["matmul"]);
    assertEquals(await outputOf(after), await outputOf(before));
  }
});

Deno.test("a product that is read twice, or has a bias, keeps its sum", () => {
  const twice = product((sums, bias, add) => add(add(sums, bias), sums));
  assertEquals(fuseBias.run(twice, CONTEXT), twice);
  const again = fuseBias.run(product((sums, bias, add) => add(add(sums, bias), bias)), CONTEXT);
  const left = deadCode.run(fuseBias.run(again, CONTEXT), CONTEXT);
  assertEquals(left.nodes.map(({ op }) => op), ["matmul", "binary"]);
});
