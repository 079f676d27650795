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
import { recognizeActivations } from "./recognize_activations.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => true,
};
const N = symbol("N", { min: 1 });

function writer() {
  const builder = createGraphBuilder("activation", getOp);
  let count = 0;
  const one = (op: string, inputs: readonly Value[], attributes = {}) =>
    builder.op(op, inputs, attributes, `${op}.${count++}`)[0]!;
  const number = (value: number) => builder.constant(`n.${count++}`, Float32Array.of(value), []);
  const mul = (a: Value, b: Value | number) =>
    one("binary", [a, typeof b === "number" ? number(b) : b], { kind: "mul" });
  const plus = (a: Value, b: Value | number) =>
    one("binary", [a, typeof b === "number" ? number(b) : b], { kind: "add" });
  const unary = (kind: string, x: Value) => one("unary", [x], { kind });
  return { builder, one, number, mul, plus, unary };
}
type Writer = ReturnType<typeof writer>;
type Write = (w: Writer, x: Value) => Value;

const half = ({ mul, plus, unary }: Writer, x: Value, inner: Value, kind = "erf") =>
  mul(mul(x, plus(unary(kind, inner), 1)), 0.5);

/** How exporters write it, and what it is. */
const WRITTEN: Readonly<Record<string, readonly [write: Write, kind: string]>> = {
  "a gelu with a quotient": [
    (w, x) => half(w, x, w.one("binary", [x, w.number(Math.SQRT2)], { kind: "div" })),
    "gelu",
  ],
  "a gelu whose half is on x": [
    ({ mul, plus, unary }, x) =>
      mul(mul(x, 0.5), plus(unary("erf", mul(x, Math.fround(Math.SQRT1_2))), 1)),
    "gelu",
  ],
  "a gelu by tanh and a power": [(w, x) => {
    const cube = w.one("binary", [x, w.number(3)], { kind: "pow" });
    const inner = w.mul(w.plus(x, w.mul(cube, 0.044715)), Math.sqrt(2 / Math.PI));
    return half(w, x, inner, "tanh");
  }, "gelu_tanh"],
  "a gelu by tanh and products": [(w, x) => {
    const cube = w.mul(w.mul(w.mul(x, x), x), 0.044715);
    return half(w, x, w.mul(w.plus(cube, x), Math.sqrt(2 / Math.PI)), "tanh");
  }, "gelu_tanh"],
  "a silu": [({ mul, unary }, x) => mul(unary("sigmoid", x), x), "silu"],
};

function build(write: Write): Graph {
  const w = writer();
  w.builder.output("y", write(w, w.builder.input("x", [N, 6], "f32")));
  return w.builder.build();
}

async function outputOf(graph: Graph): Promise<Float32Array> {
  const limits = { N: 5 };
  const executable = await createReferenceBackend().prepare(plan(graph, { limits }), { slots: 1 });
  const x = executable.input("x") as Float32Array;
  x.set(createCaseRandom(9).normal(x.length, 2));
  await executable.run(limits);
  const result = (executable.output("y") as Float32Array).slice();
  executable.dispose();
  return result;
}

for (const [name, [write, kind]] of Object.entries(WRITTEN)) {
  Deno.test(`${name} becomes one op of the same result`, async () => {
    const before = build(write);
    const after = deadCode.run(recognizeActivations.run(before, CONTEXT), CONTEXT);
    verify(after, getOp);
    assertEquals(after.nodes.map(({ op, attributes }) => [op, attributes.kind]), [
      ["unary", kind],
    ]);
    const wanted = await outputOf(before), got = await outputOf(after);
    wanted.forEach((value, i) => assert(Math.abs(value - got[i]!) < 1e-6, `${got[i]}: ${value}`));
  });
}

/** What only looks like one. */
const OTHERS: Readonly<Record<string, Write>> = {
  "another factor": (w, x) => half(w, x, w.mul(x, 0.7)),
  "another summand": ({ mul, plus, unary }, x) =>
    mul(mul(x, plus(unary("erf", mul(x, Math.SQRT1_2)), 2)), 0.5),
  "no half": ({ mul, plus, unary }, x) => mul(x, plus(unary("erf", mul(x, Math.SQRT1_2)), 1)),
  "two values": ({ builder, mul, unary }, x) =>
    mul(x, unary("sigmoid", builder.input("z", [N, 6], "f32"))),
};

for (const [name, write] of Object.entries(OTHERS)) {
  Deno.test(`what only looks like an activation stays: ${name}`, () => {
    const graph = build(write);
    assertEquals(recognizeActivations.run(graph, CONTEXT), graph);
  });
}

Deno.test("an activation that is read on the way stays whole for its readers", async () => {
  const graph = build((w, x) => {
    const gate = w.unary("sigmoid", x);
    w.builder.output("gate", gate);
    return w.mul(x, gate);
  });
  const after = deadCode.run(recognizeActivations.run(graph, CONTEXT), CONTEXT);
  verify(after, getOp);
  assertEquals(after.nodes.map(({ op }) => op), ["unary", "unary"]);
  const wanted = await outputOf(graph), got = await outputOf(after);
  wanted.forEach((value, i) => assert(Math.abs(value - got[i]!) < 1e-6));
});
