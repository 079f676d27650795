import { assert, assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { type Dim, symbol } from "../../graph/dim/mod.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { absorbHeadLayout } from "./absorb_head_layout.ts";
import { deadCode } from "./dead_code.ts";
import type { PassContext } from "./pass.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => true,
};
const S = symbol("S", { min: 1 }), T = symbol("T", { min: 1 });
const LIMITS = { S: 3, T: 5 };
const SWAP = { perm: [0, 2, 1, 3] };

type Side = "rows" | "planes";
interface Layout {
  readonly q: Side;
  readonly k: Side;
  readonly v: Side;
  /** What reads the result: joined again, as it is, or both. */
  readonly read: "rows" | "planes" | "both";
}

/** Attention with four heads, two of keys; sides in rows come through a transpose. */
function build({ q, k, v, read }: Layout): Graph {
  const builder = createGraphBuilder("attention", getOp);
  let count = 0;
  const one = (op: string, inputs: readonly Value[], attributes = {}): Value =>
    builder.op(op, inputs, attributes, `${op}.${count++}`)[0]!;
  const side = (name: string, as: Side, heads: number, rows: Dim) => {
    if (as === "planes") return builder.input(name, [2, heads, rows, 8], "f32");
    const flat = builder.input(name, [2, rows, 8 * heads], "f32");
    return one("transpose", [one("reshape", [flat], { shape: [2, rows, heads, 8] })], SWAP);
  };
  const y = one("attention", [
    side("q", q, 4, S),
    side("k", k, 2, T),
    side("v", v, 2, T),
  ], { q_heads: 4, kv_heads: 2, scale: 0.3 });
  if (read !== "planes") {
    builder.output("y", one("reshape", [one("transpose", [y], SWAP)], { shape: [2, S, 32] }));
  }
  if (read !== "rows") builder.output("planes", one("unary", [y], { kind: "scale", alpha: 2 }));
  return builder.build();
}

async function outputsOf(graph: Graph): Promise<number[]> {
  const executable = await createReferenceBackend().prepare(plan(graph, { limits: LIMITS }), {
    slots: 1,
  });
  const random = createCaseRandom(7);
  for (const { name } of graph.inputs) {
    const data = executable.input(name) as Float32Array;
    data.set(random.normal(data.length));
  }
  await executable.run(LIMITS);
  const results = graph.outputs.flatMap(({ name }) => [...executable.output(name) as Float32Array]);
  executable.dispose();
  return results;
}

const CASES: readonly (readonly [Layout, transposes: number])[] = [
  [{ q: "rows", k: "rows", v: "rows", read: "rows" }, 0],
  [{ q: "rows", k: "planes", v: "rows", read: "rows" }, 0],
  [{ q: "planes", k: "rows", v: "rows", read: "rows" }, 1],
  [{ q: "rows", k: "rows", v: "rows", read: "planes" }, 1],
  [{ q: "rows", k: "rows", v: "rows", read: "both" }, 1],
];

for (const [layout, transposes] of CASES) {
  const name = Object.entries(layout).map((entry) => entry.join(" ")).join(", ");
  Deno.test(`of heads that lie so (${name}) ${transposes} transposes are left`, async () => {
    const before = build(layout);
    const after = deadCode.run(absorbHeadLayout.run(before, CONTEXT), CONTEXT);
    verify(after, getOp);
    assertEquals(after.nodes.filter(({ op }) => op === "transpose").length, transposes);
    const wanted = await outputsOf(before);
    assert(wanted.some((value) => value !== 0));
    assertEquals(await outputsOf(after), wanted);
  });
}

Deno.test("keys and values of one sequence may have their rows outermost", async () => {
  const builder = createGraphBuilder("outermost", getOp);
  const one = (op: string, inputs: readonly Value[], attributes = {}): Value =>
    builder.op(op, inputs, attributes, `${op}.${inputs[0]!.name}`)[0]!;
  const side = (name: string) =>
    one("transpose", [builder.input(name, [T, 1, 2, 8], "f32")], { perm: [1, 2, 0, 3] });
  const q = builder.input("q", [1, 4, S, 8], "f32");
  const attributes = { q_heads: 4, kv_heads: 2, scale: 0.3 };
  builder.output("y", one("attention", [q, side("k"), side("v")], attributes));
  const before = builder.build();
  const after = deadCode.run(absorbHeadLayout.run(before, CONTEXT), CONTEXT);
  verify(after, getOp);
  assertEquals(after.nodes.filter(({ op }) => op === "transpose"), []);
  assertEquals(await outputsOf(after), await outputsOf(before));
});

Deno.test("attention without transposes around it stays as it is", () => {
  const graph = build({ q: "planes", k: "planes", v: "planes", read: "planes" });
  assertEquals(absorbHeadLayout.run(graph, CONTEXT), graph);
});
