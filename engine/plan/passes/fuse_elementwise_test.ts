// Chains of elementwise functions: what is joined, what must stay apart, and that numbers stay the same.

import { assertAlmostEquals, assertEquals } from "@std/assert";
import { createGraphBuilder, type GraphBuilder } from "../../graph/builder.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { createWasmBackend } from "../../run/wasm/backend.ts";
import { deadCode } from "./dead_code.ts";
import { fuseElementwise } from "./fuse_elementwise.ts";
import type { PassContext } from "./pass.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => true,
};

const ROWS = 3, COLUMNS = 10;

function build(
  make: (builder: GraphBuilder, x: Value, scalar: (n: number) => Value) => void,
): Graph {
  const builder = createGraphBuilder("chain", getOp);
  const x = builder.input("x", [ROWS, COLUMNS], "f32");
  let count = 0;
  make(builder, x, (n) => builder.constant(`c${count++}`, Float32Array.of(n), []));
  return builder.build();
}

function fused(graph: Graph): Graph {
  const result = deadCode.run(fuseElementwise.run(graph, CONTEXT), CONTEXT);
  verify(result, getOp);
  return result;
}

const opsOf = ({ nodes }: Graph) => nodes.map(({ op }) => op);

/** y = x · (erf(x / √2) + 1) / 2 by rows less their means. */
function geluOfCentred(): Graph {
  return build((builder, x, scalar) => {
    const mean = builder.op("reduce", [x], { kind: "mean", axes: [1] }, "mean")[0]!;
    const centred = builder.op("binary", [x, mean], { kind: "sub" }, "centred")[0]!;
    const scaled = builder.op("binary", [centred, scalar(Math.SQRT2)], { kind: "div" }, "s")[0]!;
    const erf = builder.op("unary", [scaled], { kind: "erf" }, "erf")[0]!;
    const shifted = builder.op("binary", [erf, scalar(1)], { kind: "add" }, "shifted")[0]!;
    const product = builder.op("binary", [centred, shifted], { kind: "mul" }, "product")[0]!;
    builder.output("y", builder.op("binary", [product, scalar(0.5)], { kind: "mul" }, "half")[0]!);
  });
}

Deno.test("a chain becomes one node, with constants inside and one pass over memory", () => {
  const graph = fused(geluOfCentred());
  assertEquals(opsOf(graph), ["reduce", "elementwise"]);
  const { attributes, inputs } = graph.nodes[1]!;
  assertEquals(inputs.map((input) => input!.name), ["x", "mean"]);
  assertEquals((attributes.constants as number[]).length, 3);
});

Deno.test("a value that is an output, or read elsewhere, is not taken in", () => {
  const graph = fused(build((builder, x) => {
    const power = builder.op("unary", [x], { kind: "exp" }, "power")[0]!;
    builder.output("sum", builder.op("reduce", [power], { kind: "sum", axes: [1] }, "sum")[0]!);
    const root = builder.op("unary", [power], { kind: "sqrt" }, "root")[0]!;
    builder.output("root", root);
    builder.output("twice", builder.op("binary", [root, root], { kind: "add" }, "twice")[0]!);
  }));
  assertEquals(opsOf(graph), ["unary", "reduce", "unary", "binary"]);
});

Deno.test("a smaller result that is repeated is not computed again for every repetition", () => {
  const graph = fused(build((builder, x) => {
    const mean = builder.op("reduce", [x], { kind: "mean", axes: [1] }, "mean")[0]!;
    const power = builder.op("unary", [mean], { kind: "exp" }, "power")[0]!;
    builder.output("y", builder.op("binary", [x, power], { kind: "mul" }, "y")[0]!);
  }));
  assertEquals(opsOf(graph), ["reduce", "unary", "binary"]);
});

Deno.test("a chain gives the numbers of its nodes, on the reference and on WASM", async () => {
  const backends = [createReferenceBackend(), createWasmBackend({ threads: 2 })];
  const results = [];
  for (const backend of backends) {
    for (const graph of [geluOfCentred(), fused(geluOfCentred())]) {
      const executable = await backend.prepare(plan(graph, { limits: {} }), { slots: 1 });
      const x = executable.input("x");
      for (let i = 0; i < x.length; i++) x[i] = Math.sin(i) * 3;
      await executable.run({});
      results.push(Array.from(executable.output("y") as Float32Array));
      executable.dispose();
    }
  }
  const [expected] = results;
  for (const values of results) {
    values.forEach((value, i) => assertAlmostEquals(value, expected![i]!, 2e-6));
  }
});
