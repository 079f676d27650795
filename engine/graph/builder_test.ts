import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { attentionList } from "../ops/attention_inputs.ts";
import { UnsupportedError } from "../errors.ts";
import { tensorInMemory } from "../run/case_graph.ts";
import { createGraphBuilder } from "./builder.ts";
import { formatDim, sub, symbol } from "./dim/mod.ts";
import type { Graph, Node, Value } from "./graph.ts";
import { getOp } from "../ops/mod.ts";
import { formatType, verify } from "./verify.ts";

const M = symbol("M", { max: 8 });

function matrix(rows: number, columns: number) {
  return tensorInMemory("w", {
    format: "F32",
    shape: [rows, columns],
    bytes: new Uint8Array(4 * rows * columns),
  });
}

Deno.test("shapes are inferred as nodes are added", () => {
  const builder = createGraphBuilder("g", getOp);
  const x = builder.input("x", [M, 64], "f32");
  const q = builder.op("matmul", [x, builder.weight("w", matrix(96, 64))], {}, "q")[0]!;
  assertEquals(formatType(q), "f32[M, 96]");
  const heads = builder.op("reshape", [q], { shape: ["M", "6", "16"] }, "heads")[0]!;
  assertEquals(formatType(heads), "f32[M, 6, 16]");
  const table = builder.op(
    "embed",
    [
      builder.input("tokens", [M], "i32"),
      builder.weight("table", matrix(10, 64)),
    ],
    {},
    "table",
  )[0]!;
  assertEquals(
    formatType(builder.op("binary", [x, table], { kind: "add" }, "sum")[0]!),
    "f32[M, 64]",
  );
});

Deno.test("a past and what is new are as long as their sum says [TL-2]", () => {
  const builder = createGraphBuilder("g", getOp);
  const sumN = symbol("sumN", { min: 1, max: 64 }), N = symbol("N", { min: 1, max: sumN });
  const past = builder.input("past", [sub(sumN, N), 1, 2, 128], "f32");
  const fresh = builder.input("fresh", [N, 1, 2, 128], "f32");
  const [all] = builder.op("concat", [past, fresh], { axis: 0 }, "all");
  assertEquals(formatType(all!), "f32[sumN, 1, 2, 128]");
});

Deno.test("attributes of nodes are complete", () => {
  const builder = createGraphBuilder("g", getOp);
  const x = builder.input("x", [M, 4], "f32");
  builder.output("y", builder.op("norm", [x], { epsilon: 1e-6 }, "norm")[0]!);
  assertEquals(builder.build().nodes[0]!.attributes, {
    centred: false,
    epsilon: 1e-6,
    base: 0,
    to: "f32",
  });
});

const refused = [
  {
    name: "columns that differ",
    op: (b: ReturnType<typeof createGraphBuilder>, x: Value) =>
      b.op("matmul", [x, b.weight("w", matrix(8, 32))], {}, "layers.3.attention.q"),
    error: RangeError,
    message: "Cannot add matmul at layers.3.attention.q: " +
      "the columns of x and of the weight must be equal: they are 64 and 32",
  },
  {
    name: "a wrong element type",
    op: (b: ReturnType<typeof createGraphBuilder>) =>
      b.op("norm", [b.input("ids", [M], "i32")], { epsilon: 1 }, "norm"),
    error: TypeError,
    message: "Cannot add norm at norm: input 0 (x) is i32[M]: must be f32",
  },
  {
    name: "a wrong rank",
    op: (b: ReturnType<typeof createGraphBuilder>, x: Value) =>
      b.op("rope", [x, x], { style: "half" }, "rope"),
    error: RangeError,
    message: "Cannot add rope at rope: input 0 (x) is f32[M, 64]: must be of 3 dims",
  },
  {
    name: "a missing input",
    op: (b: ReturnType<typeof createGraphBuilder>) =>
      b.op("unary", [], { kind: "softcap", alpha: 2 }, "cap"),
    error: TypeError,
    message: "Cannot add unary at cap: input 0 (x) is missing",
  },
  {
    name: "too many inputs",
    op: (b: ReturnType<typeof createGraphBuilder>, x: Value) =>
      b.op("unary", [x, x], { kind: "scale", alpha: 2 }, "scale"),
    error: TypeError,
    message: "Cannot add unary at scale: got 2 inputs, takes 1",
  },
  {
    name: "an unknown attribute",
    op: (b: ReturnType<typeof createGraphBuilder>, x: Value) =>
      b.op("norm", [x], { epsilon: 1, eps: 2 }, "norm"),
    error: TypeError,
    message: 'Cannot add norm at norm: unknown attribute "eps" (known: centred, epsilon, base, to)',
  },
  {
    name: "a missing attribute",
    op: (b: ReturnType<typeof createGraphBuilder>, x: Value) => b.op("norm", [x], {}, "norm"),
    error: TypeError,
    message: 'Cannot add norm at norm: attribute "epsilon" is missing',
  },
  {
    name: "a mistyped attribute",
    op: (b: ReturnType<typeof createGraphBuilder>, x: Value) =>
      b.op("glu", [x, x], { activation: "swish" }, "act"),
    error: TypeError,
    message: 'Cannot add glu at act: attribute "activation" must be one of ' +
      'silu, gelu_tanh, gelu, relu, sigmoid, clamped: it is "swish"',
  },
  {
    name: "a view of another size",
    op: (b: ReturnType<typeof createGraphBuilder>, x: Value) =>
      b.op("reshape", [x], { shape: ["M", "65"] }, "view"),
    error: RangeError,
    message: "Cannot add reshape at view: cannot view 64*M elements as 65*M",
  },
  {
    name: "a view by an unknown symbol",
    op: (b: ReturnType<typeof createGraphBuilder>, x: Value) =>
      b.op("reshape", [x], { shape: ["N", "64"] }, "view"),
    error: RangeError,
    message: 'Cannot add reshape at view: x has no dim named "N"',
  },
  {
    name: "rows that do not divide into groups",
    op: (b: ReturnType<typeof createGraphBuilder>) =>
      b.op("quantize", [b.input("odd", [M, 33], "f32")], {}, "q8"),
    error: RangeError,
    message: "Cannot add quantize at q8: the last dim of x must be a multiple of 32: it is 33",
  },
  {
    name: "shapes that do not broadcast",
    op: (b: ReturnType<typeof createGraphBuilder>, x: Value) =>
      b.op("binary", [x, b.input("other", [symbol("N"), 64], "f32")], { kind: "add" }, "add"),
    error: RangeError,
    message: "Cannot add binary at add: cannot broadcast dims M and N",
  },
  {
    name: "heads that do not divide",
    op: (b: ReturnType<typeof createGraphBuilder>) => {
      const rows = b.input("rows", [M], "i32");
      const cache = b.state("cache", [16, 2, 8], "f32");
      return b.op(
        "attention",
        attentionList({
          q: b.input("q", [M, 3, 8], "f32"),
          ...{ k: cache, v: cache, positions: rows, slots: rows },
        }),
        { scale: 1 },
        "attention",
      );
    },
    error: RangeError,
    message:
      "Cannot add attention at attention: the heads of q must be a multiple of the heads of k",
  },
];

for (const { name, op, error, message } of refused) {
  Deno.test(`${name} is refused with the node's path`, () => {
    const builder = createGraphBuilder("g", getOp);
    const thrown = assertThrows(() => op(builder, builder.input("x", [M, 64], "f32")), error);
    assertEquals(thrown.message, message);
  });
}

Deno.test("an unknown op is an UnsupportedError that lists the known ones", () => {
  const builder = createGraphBuilder("g", getOp);
  const error = assertThrows(() => builder.op("no_such_op", [], {}, "conv1"), UnsupportedError);
  assert(
    error.message.startsWith(
      'Cannot use op "no_such_op": this build does not have it. Known ops are',
    ),
  );
});

Deno.test("one tensor is one value", () => {
  const builder = createGraphBuilder("g", getOp);
  const tensor = matrix(4, 4);
  assertStrictEquals(builder.weight("a", tensor), builder.weight("b", tensor));
  assert(builder.weight("a", tensor) !== builder.weight("c", matrix(4, 4)));
});

Deno.test("a built graph is frozen, and its parts are its own", () => {
  const builder = createGraphBuilder("g", getOp);
  const x = builder.input("x", [M, 4], "f32");
  const y = builder.op("unary", [x], { kind: "scale", alpha: 2 }, "scale")[0]!;
  builder.output("result", y);
  const graph = builder.build();
  assertEquals(graph.outputs.map(({ name }) => name), ["result"]);
  for (
    const part of [graph, graph.nodes, graph.nodes[0]!, graph.nodes[0]!.attributes, y, y.shape]
  ) {
    assert(Object.isFrozen(part));
  }
  assertThrows(
    () => createGraphBuilder("other", getOp).op("unary", [x], { kind: "scale", alpha: 1 }, "s"),
    TypeError,
    "of another graph",
  );
});

Deno.test("only results of nodes become outputs, once and under a name of their own", () => {
  const builder = createGraphBuilder("g", getOp);
  const x = builder.input("x", [M, 4], "f32");
  assertThrows(() => builder.output("y", x), TypeError, "it is a graph input");
  const y = builder.op("unary", [x], { kind: "scale", alpha: 2 }, "scale")[0]!;
  builder.output("y", y);
  assertThrows(() => builder.output("z", y), TypeError, "it is an output already");
  builder.output("y", builder.op("unary", [x], { kind: "scale", alpha: 3 }, "other")[0]!);
  assertThrows(() => builder.build(), TypeError, "y occurs twice");
});

Deno.test("constants must fill their shape", () => {
  const builder = createGraphBuilder("g", getOp);
  assertThrows(
    () => builder.constant("c", new Float32Array(5), [2, 3]),
    RangeError,
    "5 values for",
  );
  const ids = builder.constant("ids", Int32Array.of(1, 2));
  assertEquals([ids.dtype, ids.shape.map(formatDim)], ["i32", ["2"]]);
});

Deno.test("two nodes that change one version of a state are refused, a chain is not", () => {
  const build = (chained: boolean) => {
    const builder = createGraphBuilder("g", getOp);
    const rows = builder.input("rows", [M], "i32");
    const x = builder.input("x", [M, 1, 4], "f32");
    const cache = builder.state("cache", [16, 1, 4], "f32");
    const first = builder.op("kv_append", [cache, x, rows, rows], {}, "first")[0]!;
    assertEquals(first.role, "state");
    builder.op("kv_append", [chained ? first : cache, x, rows, rows], {}, "second");
    return builder.build();
  };
  build(true);
  assertThrows(() => build(false), TypeError, "second and first both change cache");
});

/** A well-formed graph with one node, to be broken. */
function sound(): Graph {
  const builder = createGraphBuilder("g", getOp);
  const x = builder.input("x", [M, 4], "f32");
  builder.output("y", builder.op("unary", [x], { kind: "scale", alpha: 2 }, "scale")[0]!);
  return builder.build();
}

const broken: readonly { name: string; change: (graph: Graph) => Graph; message: string }[] = [
  {
    name: "a value that is used before it is produced",
    change: (graph) => ({ ...graph, inputs: [] }),
    message: "scale uses x, which is not produced before",
  },
  {
    name: "an output that nothing produces",
    change: (graph) => ({ ...graph, nodes: [] }),
    message: "output y is not produced",
  },
  {
    name: "a value produced twice",
    change: (graph) => ({ ...graph, nodes: [...graph.nodes, { ...graph.nodes[0]!, id: 9 }] }),
    message: "scale produces y again",
  },
  {
    name: "an id used twice",
    change: (graph) => ({ ...graph, nodes: [...graph.nodes, graph.nodes[0]!] }),
    message: "node 0 occurs twice",
  },
  {
    name: "a type that the op does not give",
    change: (graph) => {
      const node: Node = graph.nodes[0]!;
      const output: Value = { ...node.outputs[0]!, shape: [M, 5] };
      return { ...graph, nodes: [{ ...node, outputs: [output] }], outputs: [output] };
    },
    message: "y is f32[M, 5], unary gives f32[M, 4]",
  },
  {
    name: "a weight without a tensor",
    change: (graph) => {
      const node: Node = graph.nodes[0]!;
      const input: Value = { ...node.inputs[0]!, role: "weight" };
      return { ...graph, inputs: [], nodes: [{ ...node, inputs: [input] }] };
    },
    message: "x is a weight and must have a tensor",
  },
];

for (const { name, change, message } of broken) {
  Deno.test(`verify() finds ${name}`, () => {
    verify(sound(), getOp);
    assertThrows(() => verify(change(sound()), getOp), TypeError, message);
  });
}
