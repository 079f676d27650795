import { assert, assertEquals } from "@std/assert";
import { createGraphBuilder, type GraphBuilder } from "../../graph/builder.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { type Dim, symbol } from "../../graph/dim/mod.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { deadCode } from "./dead_code.ts";
import type { PassContext } from "./pass.ts";
import { recognizeAttention } from "./recognize_attention.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => true,
};
const S = symbol("S", { min: 1 }), T = symbol("T", { min: 1 });
const LIMITS = { S: 5, T: 7 };

interface Parts {
  readonly builder: GraphBuilder;
  one(
    op: string,
    inputs: readonly (Value | undefined)[],
    attributes?: Record<string, unknown>,
  ): Value;
  number(value: number): Value;
  input(name: string, shape: readonly Dim[]): Value;
}

function build(write: (parts: Parts) => Value): Graph {
  const builder = createGraphBuilder("attention", getOp);
  let count = 0;
  const parts: Parts = {
    builder,
    one: (op, inputs, attributes = {}) =>
      builder.op(op, inputs, attributes as Record<string, number>, `${op}.${count++}`)[0]!,
    number: (value) => builder.constant(`number.${count++}`, Float32Array.of(value), []),
    input: (name, shape) => builder.input(name, shape, "f32"),
  };
  builder.output("y", write(parts));
  return builder.build();
}

// How exporters write it, each with the ops that must be left.
const WRITTEN: Readonly<Record<string, { write(parts: Parts): Value; left: readonly string[] }>> = {
  "scales on q and k, k transposed from [B, T, H, D]": {
    write({ one, number, input }) {
      const q = one("binary", [input("q", [1, 4, S, 8]), number(0.5)], { kind: "mul" });
      const k = one("transpose", [input("k", [1, T, 4, 8])], { perm: [0, 2, 3, 1] });
      const scores = one("matmul_nd", [q, one("binary", [k, number(0.7)], { kind: "mul" })]);
      return one("matmul_nd", [one("softmax", [scores], { axis: 3 }), input("v", [1, 4, T, 6])]);
    },
    left: ["transpose", "attention"],
  },
  "a quotient and a mask on the scores": {
    write({ one, number, input }) {
      const k = one("transpose", [input("k", [1, 2, T, 8])], { perm: [0, 1, 3, 2] });
      const scores = one("matmul_nd", [input("q", [1, 2, S, 8]), k]);
      const divided = one("binary", [scores, number(2)], { kind: "div" });
      const masked = one("binary", [input("mask", [1, 1, S, T]), divided], { kind: "add" });
      return one("matmul_nd", [one("softmax", [masked], { axis: -1 }), input("v", [1, 2, T, 8])]);
    },
    left: ["attention"],
  },
  "a safe softmax, k transposed without heads": {
    write({ one, number, input }) {
      const k = one("reshape", [input("k", [2, 3, T, 8])], { shape: [6, T, 8] });
      const turned = one("transpose", [k], { perm: [0, 2, 1] });
      const keys = one("binary", [one("reshape", [turned], { shape: [2, 3, 8, T] }), number(0.6)], {
        kind: "mul",
      });
      const masked = one("binary", [
        one("matmul_nd", [input("q", [2, 3, S, 8]), keys]),
        input("mask", [2, 1, S, T]),
      ], { kind: "add" });
      const weights = one("softmax", [masked], { axis: -1 });
      const nothing = one("unary", [weights], { kind: "is_nan" });
      const safe = one("where", [nothing, number(0), weights]);
      return one("matmul_nd", [safe, input("v", [2, 3, T, 8])]);
    },
    left: ["attention"],
  },
  "heads repeated for grouped queries": {
    write({ one, input }) {
      const repeat = (value: Value) => {
        const single = one("reshape", [value], { shape: [1, 2, 1, T, 8] });
        const spread = one("expand", [single], { shape: [1, 2, 3, T, 8] });
        return one("reshape", [spread], { shape: [1, 6, T, 8] });
      };
      const k = repeat(input("k", [1, 2, T, 8])), v = repeat(input("v", [1, 2, T, 8]));
      const turned = one("transpose", [k], { perm: [0, 1, 3, 2] });
      const scores = one("matmul_nd", [input("q", [1, 6, S, 8]), turned]);
      return one("matmul_nd", [one("softmax", [scores], { axis: 3 }), v]);
    },
    left: ["attention"],
  },
};

async function outputOf(graph: Graph): Promise<Float32Array> {
  const executable = await createReferenceBackend().prepare(plan(graph, { limits: LIMITS }), {
    slots: 1,
  });
  const random = createCaseRandom(7);
  for (const { name } of graph.inputs) {
    const data = executable.input(name) as Float32Array;
    data.set(random.normal(data.length));
    // The first row of a mask of several rows sees nothing.
    const hidden = name === "mask" && data.length > LIMITS.T;
    if (hidden) data.fill(-Infinity, 0, LIMITS.T);
  }
  await executable.run(LIMITS);
  const result = (executable.output("y") as Float32Array).slice();
  executable.dispose();
  return result;
}

for (const [name, { write, left }] of Object.entries(WRITTEN)) {
  Deno.test(`attention written with ${name} becomes one op of the same result`, async () => {
    const before = build(write);
    const after = deadCode.run(recognizeAttention.run(before, CONTEXT), CONTEXT);
    verify(after, getOp);
    assertEquals(after.nodes.map(({ op }) => op), [...left]);
    const wanted = await outputOf(before), got = await outputOf(after);
    assert(wanted.some((value) => value !== 0));
    wanted.forEach((value, i) =>
      assert(
        Object.is(value, got[i]) || Math.abs(value - got[i]!) < 1e-5,
        `${got[i]}, not ${value}`,
      )
    );
  });
}

function plainAttention(use: (parts: Parts, scores: Value, weights: Value) => void): Graph {
  return build((parts) => {
    const { one, input } = parts;
    const k = one("transpose", [input("k", [1, 2, T, 8])], { perm: [0, 1, 3, 2] });
    const scores = one("matmul_nd", [input("q", [1, 2, S, 8]), k]);
    const weights = one("softmax", [scores], { axis: 3 });
    use(parts, scores, weights);
    return one("matmul_nd", [weights, input("v", [1, 2, T, 8])]);
  });
}

Deno.test("whatever repeats to whatever, items or heads of q, k or v, the result stays", async () => {
  const sides = [1, 2].flatMap((batch) => [1, 4].map((heads) => [batch, heads] as const));
  const found = new Set<string>();
  for (const q of sides) {
    for (const k of sides) {
      for (const v of sides) {
        const before = build(({ one, input }) => {
          const turned = one("transpose", [input("k", [...k, T, 8])], { perm: [0, 1, 3, 2] });
          const scores = one("matmul_nd", [input("q", [...q, S, 8]), turned]);
          const values = input("v", [...v, T, 6]);
          return one("matmul_nd", [one("softmax", [scores], { axis: 3 }), values]);
        });
        const after = deadCode.run(recognizeAttention.run(before, CONTEXT), CONTEXT);
        verify(after, getOp);
        if (after.nodes.length > 1) continue;
        found.add(`${q} ${k} ${v}`);
        const wanted = await outputOf(before), got = await outputOf(after);
        wanted.forEach((value, i) => assert(Math.abs(value - got[i]!) < 1e-5, `${q} ${k} ${v}`));
      }
    }
  }
  // Alike, and heads of keys and values that are one for all queries.
  assertEquals([...found].sort(), [
    ...["1,1 1,1 1,1", "1,4 1,1 1,1", "1,4 1,4 1,4"],
    ...["2,1 2,1 2,1", "2,4 2,1 2,1", "2,4 2,4 2,4"],
  ]);
});

Deno.test("scores or weights that are read elsewhere stay", () => {
  for (const which of ["scores", "weights"] as const) {
    const graph = plainAttention(({ builder }, scores, weights) =>
      builder.output("also", which === "scores" ? scores : weights)
    );
    assertEquals(recognizeAttention.run(graph, CONTEXT), graph);
  }
});

Deno.test("weights that are chosen by another test, or against another number, stay", () => {
  for (const [kind, other] of [["is_infinite", 0], ["is_nan", 1]] as const) {
    const graph = build(({ one, number, input }) => {
      const k = one("transpose", [input("k", [1, 2, T, 8])], { perm: [0, 1, 3, 2] });
      const scores = one("matmul_nd", [input("q", [1, 2, S, 8]), k]);
      const weights = one("softmax", [scores], { axis: 3 });
      const choice = one("unary", [weights], { kind });
      const chosen = one("where", [choice, number(other), weights]);
      return one("matmul_nd", [chosen, input("v", [1, 2, T, 8])]);
    });
    assertEquals(recognizeAttention.run(graph, CONTEXT), graph);
  }
});

Deno.test("a device without the op keeps what is written", () => {
  const graph = plainAttention(() => {});
  assertEquals(recognizeAttention.run(graph, { ...CONTEXT, hasKernel: () => false }), graph);
  assert(recognizeAttention.run(graph, CONTEXT) !== graph);
});
