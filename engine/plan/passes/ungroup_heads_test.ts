import { assert, assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { symbol } from "../../graph/dim/mod.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { deadCode } from "./dead_code.ts";
import type { PassContext } from "./pass.ts";
import { ungroupHeads } from "./ungroup_heads.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => true,
};
const T = symbol("T", { min: 1 });

/** Six heads of queries; keys and values of six, or of two or three that are repeated. */
function build(keys: number, values: number): Graph {
  const builder = createGraphBuilder("groups", getOp);
  let count = 0;
  const one = (op: string, inputs: readonly Value[], attributes = {}): Value =>
    builder.op(op, inputs, attributes, `${op}.${count++}`)[0]!;
  const side = (name: string, heads: number) => {
    const x = builder.input(name, [2, heads, T, 8], "f32");
    if (heads === 6) return x;
    const single = one("reshape", [x], { shape: [2, heads, 1, T, 8] });
    const spread = one("expand", [single], { shape: [2, heads, 6 / heads, T, 8] });
    return one("reshape", [spread], { shape: [2, 6, T, 8] });
  };
  const q = builder.input("q", [2, 6, T, 8], "f32");
  const attributes = { q_heads: 6, kv_heads: 6, scale: 0.5, causal: true };
  const inputs = [q, side("k", keys), side("v", values)];
  builder.output("y", one("attention", inputs, attributes));
  return builder.build();
}

async function outputOf(graph: Graph): Promise<readonly number[]> {
  const limits = { T: 5 };
  const executable = await createReferenceBackend().prepare(plan(graph, { limits }), { slots: 1 });
  const random = createCaseRandom(5);
  for (const { name } of graph.inputs) {
    const data = executable.input(name) as Float32Array;
    data.set(random.normal(data.length));
  }
  await executable.run(limits);
  const result = [...executable.output("y") as Float32Array];
  executable.dispose();
  return result;
}

Deno.test("heads that are repeated for attention are read as they were before", async () => {
  const before = build(2, 2);
  const after = deadCode.run(ungroupHeads.run(before, CONTEXT), CONTEXT);
  verify(after, getOp);
  assertEquals(after.nodes.map(({ op, attributes }) => [op, attributes.kv_heads]), [
    ["attention", 2],
  ]);
  const wanted = await outputOf(before);
  assert(wanted.some((value) => value !== 0));
  assertEquals(await outputOf(after), wanted);
});

Deno.test("heads stay where keys and values are not repeated alike", () => {
  for (const graph of [build(6, 6), build(2, 6), build(2, 3)]) {
    assertEquals(ungroupHeads.run(graph, CONTEXT), graph);
  }
});
