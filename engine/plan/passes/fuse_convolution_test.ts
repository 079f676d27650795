// fold_affine_after, fuse_branch, fuse_activation and fold_affine_before, as they follow each other.

import { assert, assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { symbol } from "../../graph/dim/mod.ts";
import { EPILOGUE_NAMES } from "../../../functions/unary.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { deadCode } from "./dead_code.ts";
import { foldAffineAfter, foldAffineBefore } from "./fold_affine.ts";
import { fuseActivation } from "./fuse_activation.ts";
import { fuseBranch } from "./fuse_residual.ts";
import type { PassContext } from "./pass.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => true,
};
const W = symbol("W", { min: 1 });
const CHANNELS = 4, HEIGHT = 5;

function writer() {
  const builder = createGraphBuilder("conv", getOp);
  let count = 0;
  const one = (
    op: string,
    inputs: readonly (Value | undefined)[],
    attributes: Record<string, unknown> = {},
  ) => builder.op(op, inputs, attributes as Record<string, number>, `${op}.${count++}`)[0]!;
  const number = (value: number) => builder.constant(`n.${count++}`, Float32Array.of(value), []);
  const random = (shape: readonly number[]) =>
    builder.constant(
      `r.${count}`,
      createCaseRandom(++count).normal(shape.reduce((a, b) => a * b, 1)),
      shape,
    );
  const binary = (kind: string, a: Value, b: Value) => one("binary", [a, b], { kind });
  const conv = (x: Value, size: number, { groups = 1, bias = true } = {}) =>
    one("conv", [
      x,
      random([CHANNELS, CHANNELS / groups, size, size]),
      bias ? random([CHANNELS]) : undefined,
    ], {
      pads: Array<number>(4).fill((size - 1) / 2),
      groups,
    });
  const transposed = (x: Value, groups = 1) =>
    one("conv_transpose", [x, random([CHANNELS, CHANNELS / groups, 2, 2])], {
      strides: [2, 2],
      groups,
    });
  return { builder, one, number, random, binary, conv, transposed };
}

type Writer = ReturnType<typeof writer>;

function build(write: (w: Writer, x: Value) => Value): Graph {
  const w = writer();
  const x = w.builder.input("x", [2, CHANNELS, HEIGHT, W], "f32");
  w.builder.output("y", write(w, x));
  return w.builder.build();
}

function fuse(graph: Graph): Graph {
  return [foldAffineAfter, fuseBranch, fuseActivation, deadCode, foldAffineBefore, deadCode]
    .reduce((current, pass) => pass.run(current, CONTEXT), graph);
}

async function run(graph: Graph): Promise<Float32Array> {
  const executable = await createReferenceBackend().prepare(plan(graph, { limits: { W: 6 } }), {
    slots: 1,
  });
  const input = executable.input("x") as Float32Array;
  input.set(createCaseRandom(99).normal(input.length).map((value) => 4 * value));
  await executable.run({ W: 6 });
  return (executable.output("y") as Float32Array).slice();
}

const hardSwish = ({ one, number, binary }: Writer, x: Value, divideFirst: boolean) => {
  const raised = one("binary", [number(3), x], { kind: "add" });
  const clipped = binary("min", binary("max", raised, number(0)), number(6));
  if (divideFirst) return one("binary", [x, binary("div", clipped, number(6))], { kind: "mul" });
  return binary("div", one("binary", [x, clipped], { kind: "mul" }), number(6));
};

const CASES: Readonly<Record<string, readonly [(w: Writer, x: Value) => Value, ops: string]>> = {
  "factors and sums behind a convolution": [
    ({ conv, one, random, number, binary }, x) => {
      const scaled = one("binary", [random([1, CHANNELS, 1, 1]), conv(x, 3)], { kind: "mul" });
      return binary(
        "div",
        one("binary", [scaled, random([CHANNELS, 1, 1])], { kind: "add" }),
        number(3),
      );
    },
    "conv none",
  ],
  "a factor behind a convolution in groups without bias": [
    ({ conv, one, number }, x) =>
      one("binary", [conv(x, 3, { groups: 4, bias: false }), number(2)], { kind: "mul" }),
    "conv none",
  ],
  "factors and sums before a single place": [
    ({ conv, one, random, number }, x) =>
      conv(
        one("binary", [
          one("binary", [one("unary", [x], { kind: "abs" }), random([CHANNELS, 1, 1])], {
            kind: "mul",
          }),
          number(2),
        ], { kind: "add" }),
        1,
      ),
    "unary, conv none",
  ],
  "a sum before a padded window stays": [
    ({ conv, one, number }, x) => conv(one("binary", [x, number(1)], { kind: "add" }), 3),
    "binary, conv none",
  ],
  "a rectifier behind a convolution that rounds off its own results": [
    ({ one, random, binary, number }, x) => {
      const filters = random([CHANNELS, CHANNELS, 1, 1]);
      const capped = one("conv", [x, filters], { activation: "relu6" });
      return binary("max", one("unary", [capped], { kind: "neg" }), number(0));
    },
    "conv relu6, unary, binary",
  ],
  "a sigmoid behind a convolution that has a function": [
    ({ one, random }, x) => {
      const filters = random([CHANNELS, CHANNELS, 1, 1]);
      const active = one("conv", [x, filters], { activation: "relu" });
      return one("unary", [active], { kind: "sigmoid" });
    },
    "conv relu, unary",
  ],
  "a branch, and a rectifier": [
    ({ conv, binary, one }, x) => one("unary", [binary("add", conv(x, 1), x)], { kind: "relu" }),
    "conv relu",
  ],
  "a branch beside a function, and one beside the other": [
    ({ conv, binary, number, one }, x) => {
      const active = one("unary", [conv(x, 3)], { kind: "relu" });
      return binary("add", binary("add", binary("add", active, x), conv(x, 1)), number(2));
    },
    "conv relu, binary, conv none, binary",
  ],
  "a rectifier by a maximum": [
    ({ conv, binary, number }, x) => binary("max", conv(x, 3), number(0)),
    "conv relu",
  ],
  "a rectifier with a limit, over two groups": [
    ({ conv, binary, number }, x) => {
      return binary("min", binary("max", conv(x, 3, { groups: 2 }), number(0)), number(6));
    },
    "conv relu6",
  ],
  "a hard swish with learned scales, and the next point": [
    (w, x) => {
      const scaled = w.one("binary", [
        w.one("binary", [w.number(0.9), w.conv(x, 3)], { kind: "mul" }),
        w.number(0.5),
      ], { kind: "add" });
      const active = hardSwish(w, scaled, false);
      return w.conv(
        w.one("binary", [w.one("binary", [active, w.number(0.4)], { kind: "mul" }), w.number(-1)], {
          kind: "add",
        }),
        1,
      );
    },
    "conv hard_swish, conv none",
  ],
  "a hard swish that divides first": [
    (w, x) => hardSwish(w, w.conv(x, 1), true),
    "conv hard_swish",
  ],
  "a product with its own sigmoid": [
    ({ conv, one }, x) => {
      const y = conv(x, 3);
      return one("binary", [y, one("unary", [y], { kind: "sigmoid" })], { kind: "mul" });
    },
    "conv silu",
  ],
  "a result that something else reads keeps its function apart": [
    ({ conv, binary, number, one }, x) => {
      const y = conv(x, 3);
      return one("binary", [binary("max", y, number(0)), y], { kind: "add" });
    },
    "conv none, binary, binary",
  ],
  "a sum, a norm and a rectifier behind a transposed convolution": [
    ({ transposed, one, random, binary, number }, x) => {
      const sum = one("binary", [transposed(x), random([1, CHANNELS, 1, 1])], { kind: "add" });
      const spread = binary("max", random([CHANNELS]), number(0.5));
      const norm = one("batch_norm", [
        sum,
        ...[random([CHANNELS]), random([CHANNELS]), random([CHANNELS])],
        spread,
      ], { epsilon: 1e-3 });
      return one("unary", [norm], { kind: "relu" });
    },
    "conv_transpose none, binary, batch_norm, unary",
  ],
  "a sum and a rectifier behind a transposed convolution in groups": [
    ({ transposed, one, random }, x) => {
      const scaled = one("binary", [transposed(x, 2), random([1, CHANNELS, 1, 1])], {
        kind: "mul",
      });
      return one("unary", [one("binary", [scaled, random([1, CHANNELS, 1, 1])], { kind: "add" })], {
        kind: "relu",
      });
    },
    "conv_transpose relu",
  ],
  "a limit that is another one stays": [
    ({ conv, binary, number }, x) => {
      return binary("min", binary("max", conv(x, 3), number(0)), number(5));
    },
    "conv relu, binary",
  ],
};

for (const [name, [write, ops]] of Object.entries(CASES)) {
  Deno.test(`convolutions take in what is around them: ${name}`, async () => {
    const graph = build(write), fused = fuse(graph);
    verify(fused, getOp);
    const found = fused.nodes.map(({ op, attributes }) =>
      op.startsWith("conv") ? `${op} ${attributes.activation}` : op
    );
    assertEquals(found.join(", "), ops);
    const expected = await run(graph), got = await run(fused);
    expected.forEach((value, i) => {
      assert(
        Math.abs(value - got[i]!) <= 1e-4 * (1 + Math.abs(value)),
        `${i}: ${got[i]}, ${value}`,
      );
    });
  });
}

Deno.test("a function that already is one node moves into the convolution", () => {
  for (const kind of EPILOGUE_NAMES) {
    if (kind === "none") continue;
    const fused = fuse(build(({ conv, one }, x) => one("unary", [conv(x, 3)], { kind })));
    assertEquals(fused.nodes.map(({ attributes }) => attributes.activation), [kind]);
  }
});
