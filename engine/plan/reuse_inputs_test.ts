import { assert, assertEquals } from "@std/assert";
import { createGraphBuilder } from "../graph/builder.ts";
import { createCaseRandom } from "../ops/case_random.ts";
import { symbol } from "../graph/dim/mod.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import { plan } from "./planner.ts";
import { createReferenceBackend } from "../run/reference/reference_backend.ts";
import fc from "fast-check";

const N = symbol("N", { min: 1 });

function chain(length: number): Graph {
  const builder = createGraphBuilder("chain", getOp);
  let value = builder.input("x", [N, 8], "f32");
  for (let i = 0; i < length; i++) {
    [value] = builder.op("binary", [value, value], { kind: "add" }, `add.${i}`) as [Value];
  }
  builder.output("y", value);
  return builder.build();
}

Deno.test("a chain of elementwise ops needs one buffer", () => {
  const limits = { N: 4 };
  assertEquals(plan(chain(5), { limits, alignment: 1 }).arenaBytes, 2 * 4 * 8 * 4);
  assertEquals(plan(chain(5), { limits, alignment: 1, reuseInputs: true }).arenaBytes, 4 * 8 * 4);
});

Deno.test("what is read later, is an output, or is of another shape keeps its memory", () => {
  const builder = createGraphBuilder("kept", getOp);
  const x = builder.input("x", [4, 8], "f32");
  const row = builder.input("row", [8], "f32");
  const [a] = builder.op("binary", [x, x], { kind: "add" }, "a") as [Value];
  const [b] = builder.op("binary", [a, x], { kind: "add" }, "b") as [Value];
  const [c] = builder.op("binary", [a, b], { kind: "mul" }, "c") as [Value];
  const [short] = builder.op("binary", [row, row], { kind: "add" }, "short") as [Value];
  const [wide] = builder.op("binary", [short, c], { kind: "add" }, "wide") as [Value];
  builder.output("b", b);
  builder.output("y", wide);
  const { roots } = plan(builder.build(), { limits: {}, reuseInputs: true });
  // a is read again when b is made; b is an output; a short row cannot hold a matrix.
  assertEquals(roots.get(b.id), undefined);
  assertEquals(roots.get(c.id), a);
  assertEquals(roots.get(wide.id), a);
});

/** A random graph of elementwise ops, views and transposes. */
function randomGraph(choices: readonly (readonly [kind: number, a: number, b: number])[]): Graph {
  const builder = createGraphBuilder("random", getOp);
  const values: Value[] = [builder.input("x", [N, N], "f32"), builder.input("z", [N, N], "f32")];
  choices.forEach(([kind, a, b], i) => {
    const left = values[a % values.length]!, right = values[b % values.length]!;
    const made = kind === 0
      ? builder.op("binary", [left, right], { kind: "add" }, `add.${i}`)
      : kind === 1
      ? builder.op("binary", [left, right], { kind: "mul" }, `mul.${i}`)
      : kind === 2
      ? builder.op("transpose", [left], { perm: [1, 0] }, `transpose.${i}`)
      : builder.op("reshape", [left], { shape: [N, N] }, `view.${i}`);
    values.push(made[0]!);
  });
  const results = values.slice(2).filter(({ role }) => role === "activation");
  results.slice(-2).forEach((value, i) => builder.output(`y${i}`, value));
  return builder.build();
}

async function run(graph: Graph, reuseInputs: boolean): Promise<number[][]> {
  const limits = { N: 3 };
  const made = plan(graph, { limits, reuseInputs });
  const executable = await createReferenceBackend().prepare(made, { slots: 1 });
  const random = createCaseRandom(3);
  for (const { name } of graph.inputs) {
    (executable.input(name) as Float32Array).set(random.normal(9, 0.1));
  }
  await executable.run(limits);
  const results = graph.outputs.map(({ name }) => [...executable.output(name) as Float32Array]);
  executable.dispose();
  return results;
}

Deno.test("random graphs give the same numbers in less memory", async () => {
  const choice = fc.tuple(fc.integer({ min: 0, max: 3 }), fc.nat(40), fc.nat(40));
  await fc.assert(
    fc.asyncProperty(fc.array(choice, { minLength: 1, maxLength: 14 }), async (choices) => {
      const graph = randomGraph(choices);
      assertEquals(await run(graph, true), await run(graph, false));
      const limits = { N: 3 };
      const less = plan(graph, { limits, reuseInputs: true }).naiveBytes;
      assert(less <= plan(graph, { limits }).naiveBytes);
    }),
    { seed: 5, numRuns: 300 },
  );
});
