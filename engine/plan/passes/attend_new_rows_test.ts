import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { createGraphBuilder, type GraphBuilder } from "../../graph/builder.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { add, type Dim, symbol } from "../../graph/dim/mod.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { attendNewRows } from "./attend_new_rows.ts";
import { deadCode } from "./dead_code.ts";
import type { PassContext } from "./pass.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => true,
};
const N = symbol("N", { min: 1 }), P = symbol("P", { min: 0 });
const LIMITS = { N: 3, P: 6 };
const COUNTS = [5, 8];
const HEADS = { q_heads: 4, kv_heads: 2, scale: 0.5, causal: true };

interface Write {
  readonly builder: GraphBuilder;
  op(name: string, inputs: readonly (Value | undefined)[], attributes?: object): Value;
  /** Input of planes of heads. */
  planes(name: string, heads: number, rows: typeof N): Value;
}

function build(write: (w: Write) => Value): Graph {
  const builder = createGraphBuilder("caches", getOp);
  let count = 0;
  const op: Write["op"] = (name, inputs, attributes = {}) =>
    builder.op(name, inputs, attributes as Record<string, number>, `${name}.${count++}`)[0]!;
  const planes: Write["planes"] = (name, heads, rows) =>
    builder.input(name, [2, heads, rows, 8], "f32");
  builder.output("y", write({ builder, op, planes }));
  return builder.build();
}

function concatenated({ op, planes }: Write): Value {
  const cache = (name: string) =>
    op("concat", [planes(`past_${name}`, 2, P), planes(name, 2, N)], { axis: 2 });
  return op("attention", [planes("q", 4, N), cache("k"), cache("v")], {
    ...HEADS,
    offset: P,
  });
}

/** Rows of heads side by side, as `absorb_head_layout` leaves them; axis 0: one sequence, [T, 1, H, D]. */
function inRows({ builder, op }: Write, axis: 0 | 1): Value {
  const batch = axis === 0 ? 1 : 2;
  const rowsOf = (name: string, rows: Dim) =>
    builder.input(name, axis === 0 ? [rows, 1, 2, 8] : [2, rows, 2, 8], "f32");
  const cache = (name: string) => {
    const all = op("concat", [rowsOf(`past_${name}`, P), rowsOf(name, N)], { axis });
    return op("reshape", [all], { shape: [batch, add(P, N), 16] });
  };
  const q = builder.input("q", [batch, 4, N, 8], "f32");
  return op("attention", [q, cache("k"), cache("v")], { ...HEADS, offset: P });
}

function appended({ builder, op, planes }: Write): Value {
  const counts = builder.input("counts", [2], "i32");
  const cache = (name: string) => {
    const rows = builder.input(name, [2, N, 16], "f32");
    return op("append_rows", [rows, planes(`past_${name}`, 2, P), counts], {
      heads: 2,
      capacity: add(P, 2),
    });
  };
  const q = builder.input("q", [2, N, 32], "f32");
  return op("attention", [q, cache("k"), cache("v"), undefined, counts], {
    ...HEADS,
    from_end: true,
  });
}

async function outputOf(graph: Graph): Promise<readonly number[]> {
  const executable = await createReferenceBackend().prepare(plan(graph, { limits: LIMITS }), {
    slots: 1,
  });
  const random = createCaseRandom(3);
  for (const { name } of graph.inputs) {
    const data = executable.input(name) as Float32Array;
    data.set(name === "counts" ? COUNTS : random.normal(data.length));
  }
  await executable.run(LIMITS);
  const result = [...executable.output("y") as Float32Array];
  executable.dispose();
  return result;
}

const WRITTEN = {
  concatenated,
  "concatenated in rows": (w: Write) => inRows(w, 1),
  "concatenated in outermost rows": (w: Write) => inRows(w, 0),
  appended,
};

for (const [name, write] of Object.entries(WRITTEN)) {
  Deno.test(`a cache that is ${name} is read where it lies, new rows beside it`, async () => {
    const before = build(write);
    const after = deadCode.run(attendNewRows.run(before, CONTEXT), CONTEXT);
    verify(after, getOp);
    const left = after.nodes.map(({ op }) => op).filter((op) => op !== "reshape");
    assertEquals(left, ["attention"]);
    const wanted = await outputOf(before), got = await outputOf(after);
    assert(wanted.some((value) => value !== 0));
    wanted.forEach((value, i) => assertAlmostEquals(got[i]!, value, 1e-6));
  });
}

Deno.test("a cache that the graph gives out is still made, and attention does not wait for it", () => {
  const before = build(concatenated);
  const [keys] = before.nodes.filter(({ op }) => op === "concat");
  const outputs = [...before.outputs, keys!.outputs[0]!];
  const after = deadCode.run(attendNewRows.run({ ...before, outputs }, CONTEXT), CONTEXT);
  assertEquals(after.nodes.map(({ op }) => op), ["concat", "attention"]);
  assertEquals(after.nodes[1]!.inputs.slice(1, 3).map((value) => value!.role), ["input", "input"]);
});

Deno.test("keys joined along another axis, or counted otherwise than appended, stay", () => {
  const wide = build((w) => {
    const { op, planes } = w;
    const keys = (name: string) =>
      op("concat", [planes(`a_${name}`, 1, N), planes(`b_${name}`, 1, N)], { axis: 1 });
    return op("attention", [planes("q", 4, N), keys("k"), keys("v")], HEADS);
  });
  assertEquals(attendNewRows.run(wide, CONTEXT), wide);
  const counted = build(appended);
  const others = counted.nodes.map((node) =>
    node.op === "attention" ? { ...node, inputs: node.inputs.slice(0, 4) } : node
  );
  const graph = { ...counted, nodes: others };
  assertEquals(attendNewRows.run(graph, CONTEXT), graph);
});
