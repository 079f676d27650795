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
import { recognizeNorms } from "./recognize_norms.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => true,
};
const N = symbol("N", { min: 1 });
const WIDTH = 6;

/** Writes norms as exporters do. */
function writer() {
  const builder = createGraphBuilder("norm", getOp);
  let count = 0;
  const one = (op: string, inputs: readonly Value[], attributes: Record<string, unknown> = {}) =>
    builder.op(op, inputs, attributes as Record<string, number>, `${op}.${count++}`)[0]!;
  const number = (value: number) => builder.constant(`n.${count++}`, Float32Array.of(value), []);
  const vector = (seed: number) =>
    builder.constant(`v.${count++}`, createCaseRandom(seed).normal(WIDTH), [WIDTH]);
  const mean = (x: Value) => one("reduce", [x], { kind: "mean", axes: [-1], keep: true });
  const rootOf = (x: Value) =>
    one("unary", [
      one("binary", [mean(one("binary", [x, x], { kind: "mul" })), number(1e-3)], { kind: "add" }),
    ], { kind: "sqrt" });
  const centre = (x: Value) => one("binary", [x, mean(x)], { kind: "sub" });
  return { builder, one, number, vector, mean, rootOf, centre };
}

type Writer = ReturnType<typeof writer>;

const WRITTEN: Readonly<
  Record<string, readonly [write: (w: Writer, x: Value) => Value, centred: boolean]>
> = {
  "a layer norm with weight and bias": [({ one, vector, rootOf, centre }, x) => {
    const d = centre(x);
    const norm = one("binary", [d, rootOf(d)], { kind: "div" });
    return one("binary", [one("binary", [norm, vector(1)], { kind: "mul" }), vector(2)], {
      kind: "add",
    });
  }, true],
  "a layer norm without weights": [({ one, rootOf, centre }, x) => {
    const d = centre(x);
    return one("binary", [d, rootOf(d)], { kind: "div" });
  }, true],
  "an RMS norm by one divided by the root": [({ one, number, vector, rootOf }, x) => {
    const inverse = one("binary", [number(1), rootOf(x)], { kind: "div" });
    return one("binary", [vector(3), one("binary", [x, inverse], { kind: "mul" })], {
      kind: "mul",
    });
  }, false],
  "an RMS norm by a reciprocal": [({ one, rootOf }, x) => {
    return one("binary", [one("unary", [rootOf(x)], { kind: "reciprocal" }), x], { kind: "mul" });
  }, false],
};

function build(write: (w: Writer, x: Value) => Value): Graph {
  const w = writer();
  w.builder.output("y", write(w, w.builder.input("x", [2, N, WIDTH], "f32")));
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

for (const [name, [write, centred]] of Object.entries(WRITTEN)) {
  Deno.test(`${name} becomes one op of the same result`, async () => {
    const before = build(write);
    const after = deadCode.run(recognizeNorms.run(before, CONTEXT), CONTEXT);
    verify(after, getOp);
    assertEquals(after.nodes.map(({ op, attributes }) => [op, attributes.centred]), [
      ["norm", centred],
    ]);
    const wanted = await outputOf(before), got = await outputOf(after);
    wanted.forEach((value, i) =>
      assert(Math.abs(value - got[i]!) < 1e-5, `${got[i]}, not ${value}`)
    );
  });
}

Deno.test("what only looks like a norm stays", () => {
  const others: readonly ((w: Writer, x: Value) => Value)[] = [
    // The root of another value's squares.
    ({ one, rootOf, centre }, x) => one("binary", [x, rootOf(centre(x))], { kind: "div" }),
    // A mean over another dim.
    ({ one, number }, x) => {
      const mean = one("reduce", [one("binary", [x, x], { kind: "mul" })], {
        kind: "mean",
        axes: [0],
        keep: true,
      });
      const root = one("unary", [one("binary", [mean, number(1)], { kind: "add" })], {
        kind: "sqrt",
      });
      return one("binary", [x, root], { kind: "div" });
    },
    // Cubes in place of squares.
    ({ one, number }, x) => {
      const cubes = one("binary", [x, number(3)], { kind: "pow" });
      const mean = one("reduce", [cubes], { kind: "mean", axes: [2], keep: true });
      const root = one("unary", [one("binary", [mean, number(1)], { kind: "add" })], {
        kind: "sqrt",
      });
      return one("binary", [x, root], { kind: "div" });
    },
    // A sum in place of a mean.
    ({ one, number }, x) => {
      const sum = one("reduce", [one("binary", [x, x], { kind: "mul" })], {
        kind: "sum",
        axes: [2],
        keep: true,
      });
      const root = one("unary", [one("binary", [sum, number(1)], { kind: "add" })], {
        kind: "sqrt",
      });
      return one("binary", [x, root], { kind: "div" });
    },
  ];
  for (const write of others) {
    const graph = build(write);
    assertEquals(recognizeNorms.run(graph, CONTEXT), graph);
  }
});
