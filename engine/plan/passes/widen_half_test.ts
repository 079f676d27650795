// Half precision widened: same inputs and outputs, float32 between them.

import { assert, assertAlmostEquals, assertEquals, assertStrictEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { getElement, type HostTensor, setElement } from "../../ops/host_tensor.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import type { PassContext } from "./pass.ts";
import { widenHalf } from "./widen_half.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => false,
};

const GIVEN = [0.1, -2, 3.5, 0];

/** out = exp(x · 1.5), once more through its bits, and as float32. */
function halfGraph(): Graph {
  const builder = createGraphBuilder("half", getOp);
  const x = builder.input("x", [4], "f16");
  const factor = builder.constant("factor", Uint16Array.of(0x3e00), [], "f16");
  const product = builder.op("binary", [x, factor], { kind: "mul" }, "product")[0]!;
  const power = builder.op("unary", [product], { kind: "exp" }, "power")[0]!;
  const bits = builder.op("bit_cast", [power], { to: "i16" }, "bits")[0]!;
  builder.output("again", builder.op("bit_cast", [bits], { to: "f16" }, "again")[0]!);
  builder.output("wide", builder.op("cast", [power], { to: "f32" }, "wide")[0]!);
  builder.output("out", power);
  return builder.build();
}

async function run(graph: Graph): Promise<Map<string, number[]>> {
  const executable = await createReferenceBackend().prepare(plan(graph, { limits: {} }), {
    slots: 1,
  });
  const x: HostTensor = { dtype: "f16", shape: [4], data: executable.input("x") };
  GIVEN.forEach((value, i) => setElement(x, { index: i, value }));
  await executable.run({});
  const results = graph.outputs.map(({ name, dtype }): [string, number[]] => {
    const tensor: HostTensor = { dtype, shape: [4], data: executable.output(name) };
    return [name, GIVEN.map((_, i) => getElement(tensor, i))];
  });
  executable.dispose();
  return new Map(results);
}

Deno.test("widening keeps names and types of inputs and outputs, and computes in float32", () => {
  const graph = halfGraph(), wide = widenHalf.run(graph, CONTEXT);
  verify(wide, getOp);
  const ports = ({ inputs, outputs }: Graph) =>
    [...inputs, ...outputs].map(({ name, dtype }) => `${name} ${dtype}`);
  assertEquals(ports(wide), ports(graph));
  for (const { op, outputs } of wide.nodes) {
    assert(outputs[0]!.dtype !== "f16" || op === "cast" || op === "bit_cast", `${op} is narrow`);
  }
});

Deno.test("widened results are those of half precision but for its roundings", async () => {
  const narrow = await run(halfGraph()), wide = await run(widenHalf.run(halfGraph(), CONTEXT));
  for (const [name, values] of narrow) {
    values.forEach((value, i) =>
      assertAlmostEquals(wide.get(name)![i]!, value, 2e-3 * Math.max(1, value), name)
    );
  }
  // Rounded once instead of twice: the exact power of 0.15 (0.1 as float16 times 1.5).
  assertAlmostEquals(wide.get("wide")![0]!, Math.exp(0.0999755859375 * 1.5), 1e-6);
});

Deno.test("a graph without half precision stays the same graph", () => {
  const builder = createGraphBuilder("plain", getOp);
  const x = builder.input("x", [4], "f32");
  builder.output("y", builder.op("unary", [x], { kind: "exp" }, "y")[0]!);
  const graph = builder.build();
  assertStrictEquals(widenHalf.run(graph, CONTEXT), graph);
});
