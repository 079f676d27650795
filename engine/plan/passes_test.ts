import { assert, assertEquals } from "@std/assert";
import { TOY_LIMITS, toyDecoder } from "../../tests/support/toy_decoder.ts";
import { createGraphBuilder } from "../graph/builder.ts";
import { mul, symbol } from "../graph/dim/mod.ts";
import type { Graph } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import { besidesProduct } from "../ops/records/matmul.ts";
import { GPU_KERNELS, LEAST_GPU } from "../run/gpu/kernel_table.ts";
import { answersOf } from "../run/kernel_choice.ts";
import { LEAST_WASM, WASM_KERNELS } from "../run/wasm/kernel_table.ts";
import { verify } from "../graph/verify.ts";
import type { PreparedPlan } from "../run/backend.ts";
import { tensorInMemory } from "../run/case_graph.ts";
import { optimize, passes } from "./passes.ts";
import type { PassContext } from "./passes/pass.ts";
import { deadCode } from "./passes/dead_code.ts";
import { plan } from "./planner.ts";
import { createReferenceBackend } from "../run/reference/reference_backend.ts";
import { roundedWeights } from "./rounded_weights.ts";

const EXACT: PassContext = {
  precision: "exact",
  ...answersOf(WASM_KERNELS, LEAST_WASM),
};
const FAST: PassContext = { ...EXACT, precision: "fast" };
/** The same on a device that has no kernels for rows of 16 bit. */
const NARROW: PassContext = {
  ...FAST,
  takes: (draft) => draft.attributes.wide !== true && FAST.takes(draft),
};
/** A device that has kernels for fused forms. */
const FUSED = answersOf(GPU_KERNELS, LEAST_GPU);

/** Nodes by op; of products by what they multiply and do besides, of others that write 8-bit rows with that. */
function countOps({ nodes }: Graph): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const node of nodes) {
    const { op, inputs: [x], attributes: { to } } = node;
    const words = op === "matmul" ? [x!.dtype, besidesProduct(node)] : [to === "q8" ? "q8" : ""];
    const form = [op, ...words].filter((word) => word !== "" && word !== "f32").join(" ");
    counts[form] = (counts[form] ?? 0) + 1;
  }
  return counts;
}

async function logits(graph: Graph): Promise<Float32Array> {
  const executable = await prepared(graph);
  const tokens = [3, 1, 4, 1, 5];
  const slot = executable.openSlot();
  executable.input("tokens").set(tokens as never);
  executable.input("positions").set([0, 1, 2, 3, 4] as never);
  executable.input("slots").set(tokens.map(() => slot) as never);
  executable.input("logit_rows").set([0, 4] as never);
  await executable.run({ M: 5, L: 2 });
  return Float32Array.from(executable.output("logits") as Float32Array);
}

function prepared(graph: Graph): Promise<PreparedPlan> {
  return createReferenceBackend().prepare(plan(graph, { limits: TOY_LIMITS }), { slots: 1 });
}

Deno.test("every pass gives a well-formed graph and leaves its argument as it was", () => {
  for (const context of [EXACT, FAST]) {
    const graph = toyDecoder("f16", "Q8_0");
    const before = JSON.stringify(graph.nodes.map(({ name, op }) => [name, op]));
    const seen: string[] = [];
    optimize(graph, {
      context,
      observe: (name, result) => {
        verify(result, getOp);
        seen.push(name);
      },
    });
    assertEquals(seen, passes.map(({ name }) => name));
    assertEquals(JSON.stringify(graph.nodes.map(({ name, op }) => [name, op])), before);
  }
});

Deno.test("exact precision keeps the numbers to the bit", async () => {
  const graph = toyDecoder();
  const optimized = optimize(graph, { context: EXACT });
  assertEquals(countOps(optimized).rope_table, 1);
  assertEquals(countOps(optimized).matmul, countOps(graph).matmul);
  assertEquals(await logits(optimized), await logits(graph));
});

Deno.test("fast precision quantises each input of matmuls once, in the op before where it can", () => {
  const counts = countOps(optimize(toyDecoder("f16", "Q8_0"), { context: FAST }));
  assertEquals(counts.matmul, undefined);
  assertEquals([counts["matmul q8"], counts["matmul wide"]], [2 * 7, 1]);
  // Norms and gated units quantise themselves, and so does the head, to 16 bit; attention's result is left.
  assertEquals(counts["norm q8"], 4);
  assertEquals(counts["glu q8"], 2);
  assertEquals(counts.quantize, 2);
  assertEquals([counts.norm, counts.glu], [undefined, undefined]);
  const narrow = countOps(optimize(toyDecoder("f16", "Q8_0"), { context: NARROW }));
  assertEquals([narrow["matmul q8"], narrow.quantize], [2 * 7 + 1, 2 + 1]);
});

Deno.test("the head takes rows in 16 bit where its weights are signed bytes, whatever reads its input", () => {
  const heads = (format: string) =>
    countOps(optimize(toyDecoder("f16", format), { context: FAST }));
  assertEquals(heads("Q8_0")["matmul wide"], 1);
  assertEquals(heads("Q4_0")["matmul wide"], undefined);
});

Deno.test("fast precision changes the numbers by 8-bit rounding only", async () => {
  const graph = toyDecoder("f16", "Q8_0");
  const exact = await logits(graph), fast = await logits(optimize(graph, { context: FAST }));
  const largest = exact.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const worst = exact.reduce((most, value, i) => Math.max(most, Math.abs(value - fast[i]!)), 0);
  assert(worst > 0 && worst < 0.05 * largest, `off by ${worst} of ${largest}`);
});

Deno.test("fused and unfused 8-bit graphs give the same numbers to the bit", async () => {
  const graph = toyDecoder("f16", "Q8_0");
  const takes: PassContext["takes"] = (draft) => draft.op === "matmul" && FAST.takes(draft);
  const unfused = optimize(graph, { context: { ...FAST, takes } });
  assertEquals(countOps(unfused)["norm q8"], undefined);
  assertEquals(await logits(optimize(graph, { context: FAST })), await logits(unfused));
});

Deno.test("matmuls keep floats where rows do not divide by 32", () => {
  const builder = createGraphBuilder("odd", getOp);
  const x = builder.input("x", [2, 33], "f32");
  const matrix = tensorInMemory("matrix", {
    format: "F32",
    shape: [4, 33],
    bytes: new Uint8Array(4 * 4 * 33),
  });
  builder.output("y", builder.op("matmul", [x, builder.weight("w", matrix)], {}, "matmul")[0]!);
  assertEquals(countOps(optimize(builder.build(), { context: FAST })), { matmul: 1 });
});

Deno.test("two equal outputs of a graph stay two outputs", () => {
  const builder = createGraphBuilder("twins", getOp);
  const x = builder.input("x", [2], "f32");
  for (const name of ["a", "b"]) {
    builder.output(name, builder.op("unary", [x], { kind: "scale", alpha: 2 }, name)[0]!);
  }
  const graph = optimize(builder.build(), { context: EXACT });
  verify(graph, getOp);
  assertEquals(graph.outputs.map(({ name }) => name), ["a", "b"]);
});

Deno.test("matmuls keep floats where the format has no integer kernel", () => {
  const graph = toyDecoder("f16", "Q8_0");
  const without = optimize(graph, { context: { ...FAST, takes: () => false } });
  assertEquals(countOps(without)["matmul q8"], undefined);
  assertEquals(
    countOps(optimize(toyDecoder("f16", "F16"), { context: FAST }))["matmul q8"],
    undefined,
  );
  assertEquals(countOps(optimize(graph, { context: FAST })).matmul, undefined);
});

Deno.test("a float result that something else reads too is not fused away", () => {
  const builder = createGraphBuilder("shared", getOp);
  const x = builder.input("x", [2, 32], "f32");
  const norm = builder.op("norm", [x], { epsilon: 1e-5 }, "norm")[0]!;
  const quantized = builder.op("quantize", [norm], {}, "q8")[0]!;
  const matrix = builder.constant("matrix", new Float32Array(32 * 32), [32, 32]);
  builder.output("y", builder.op("matmul", [quantized, matrix], {}, "matmul")[0]!);
  builder.output("z", builder.op("unary", [norm], { kind: "scale", alpha: 2 }, "scale")[0]!);
  assertEquals(countOps(optimize(builder.build(), { context: FAST }))["norm q8"], undefined);
});

Deno.test("dead code goes, changes of states stay", () => {
  const builder = createGraphBuilder("dead", getOp);
  const positions = builder.input("positions", [1], "i32");
  const slots = builder.input("slots", [1], "i32");
  const x = builder.input("x", [1, 1, 4], "f32");
  const kept = builder.op("unary", [x], { kind: "scale", alpha: 2 }, "kept")[0]!;
  builder.op(
    "kv_append",
    [builder.state("cache", [8, 1, 4], "f32"), kept, positions, slots],
    {},
    "a",
  );
  builder.op(
    "softmax",
    [builder.op("unary", [x], { kind: "scale", alpha: 3 }, "dead1")[0]!],
    {},
    "dead2",
  );
  builder.output("y", builder.op("unary", [x], { kind: "scale", alpha: 4 }, "y")[0]!);
  const graph = deadCode.run(builder.build(), EXACT);
  verify(graph, getOp);
  assertEquals(graph.nodes.map(({ name }) => name), ["kept", "a", "y"]);
});

Deno.test("equal constants become one, and nodes with other attributes stay apart", () => {
  const builder = createGraphBuilder("constants", getOp);
  const positions = builder.input("positions", [3], "i32");
  const [a, b, c] = [[1, 0.5], [1, 0.5], [1, -0]].map((data, i) =>
    builder.constant(`constant${i}`, Float32Array.from(data))
  );
  const table = (frequencies: typeof a, magnitude: number, name: string) =>
    builder.output(
      name,
      builder.op("rope_table", [positions, frequencies], { magnitude }, name)[0]!,
    );
  const first = builder.op("rope_table", [positions, a], {}, "t0")[0]!;
  const second = builder.op("rope_table", [positions, b], {}, "t1")[0]!;
  builder.output("sum", builder.op("binary", [first, second], { kind: "add" }, "sum")[0]!);
  table(c, 1, "other_data");
  table(a, 2, "other_magnitude");
  const graph = optimize(builder.build(), { context: EXACT });
  assertEquals(countOps(graph), { rope_table: 3, binary: 1 });
  assertEquals(graph.outputs.map(({ name }) => name), ["sum", "other_data", "other_magnitude"]);
});

Deno.test("large float matrices are rounded for fast precision, each once; what is sensitive stays", () => {
  const context: PassContext = {
    ...FAST,
    roundsWeights: true,
    takes: (draft) => draft.inputs[1]!.tensor!.format === "F32" && FAST.takes(draft),
  };
  const matrix = (name: string, rows: number, columns: number, format = "F32") =>
    tensorInMemory(name, { format, shape: [rows, columns], bytes: new Uint8Array(0) });
  const b = createGraphBuilder("rounding", getOp);
  const tokens = b.input("tokens", [3], "i32");
  const table = b.weight("table", matrix("table", 512, 64));
  const [x] = b.op("embed", [tokens, table], {}, "embedding");
  const product = (name: string, input: typeof x, weight = b.weight(name, matrix(name, 512, 64))) =>
    b.op("matmul", [input, weight], {}, name)[0]!;
  const shared = b.weight("shared", matrix("shared", 512, 64));
  const results = [
    product("large", x),
    product("first", x, shared),
    product("second", x, shared),
    product("head", x, table),
    product("small", x, b.weight("small", matrix("small", 32, 64))),
    product("narrow", x, b.weight("half", matrix("half", 512, 64, "F16"))),
  ];
  const router = product("router", x);
  const [, weights] = b.op("route", [router], { count: 2, score: "softmax" }, "route");
  for (const [i, result] of [...results, weights!].entries()) b.output(`output${i}`, result);
  const graph = b.build();
  const rounded = (nodes: Graph["nodes"]) =>
    nodes.filter(({ attributes }) => attributes.rounded).map(({ name }) => name).join();
  const { nodes } = optimize(graph, { context });
  assertEquals(rounded(nodes), "large,first,second");
  assertEquals(roundedWeights(nodes).size, 2);
  assertEquals(rounded(optimize(graph, { context: { ...context, precision: "exact" } }).nodes), "");
  const unable: PassContext = { ...FAST, takes: () => false };
  assertEquals(countOps(optimize(graph, { context: unable })).matmul, 7);
});

Deno.test("matrices of rows that a symbol counts are rounded alone where that is said", () => {
  const b = createGraphBuilder("rounding", getOp);
  const windows = symbol("W", { min: 0 }), rows = symbol("M", { min: 0 });
  for (const [name, count] of [["heard", mul(windows, 3)], ["written", rows]] as const) {
    const x = b.input(`${name}.rows`, [count, 64], "f32");
    const tensor = tensorInMemory(name, {
      ...{ format: "F32", shape: [512, 64], bytes: new Uint8Array(0) },
    });
    b.output(`${name}.result`, b.op("matmul", [x, b.weight(name, tensor)], {}, name)[0]!);
  }
  const takes: PassContext["takes"] = ({ attributes }) => attributes.wide !== true;
  const context: PassContext = { ...FAST, roundsWeights: "W", takes };
  const { nodes } = optimize(b.build(), { context });
  const rounded = nodes.filter(({ attributes }) => attributes.rounded).map(({ name }) => name);
  assertEquals(rounded, ["heard"]);
});

Deno.test("products of one input become one where a device takes their result as a whole", async () => {
  const graph = toyDecoder("f16", "Q8_0");
  const fused = optimize(graph, { context: { ...FAST, ...FUSED } });
  const counts = countOps(fused);
  assertEquals([attended(fused), counts["matmul normed"], counts["matmul normed gated q8"]], [
    2,
    2,
    2,
  ]);
  assertEquals([counts.rope, counts.kv_append, counts["glu q8"]], [
    undefined,
    undefined,
    undefined,
  ]);
  // Per layer: output, down. The head has a norm of its own: its outputs are no multiple of 64.
  assertEquals([counts["matmul q8 residual"], counts["matmul q8"]], [2 * 2, 1]);
  assertEquals(await logits(fused), await logits(optimize(graph, { context: NARROW })));
});

Deno.test("heads are rotated and stored apart where attention cannot do it by itself", async () => {
  const graph = toyDecoder("f16", "Q8_0");
  const takes: PassContext["takes"] = (draft) =>
    FUSED.takes(draft) && (draft.op !== "attention" || draft.attributes.style === "none");
  const fused = optimize(graph, { context: { ...FAST, ...FUSED, takes } });
  const counts = countOps(fused);
  assertEquals([attended(fused), counts.rope, counts.kv_append], [0, 2 * 2, 2 * 2]);
  assertEquals(await logits(fused), await logits(optimize(graph, { context: NARROW })));
});

/** Attentions that rotate and store by themselves. */
function attended({ nodes }: Graph): number {
  return nodes.filter(({ op, attributes }) => op === "attention" && attributes.style !== "none")
    .length;
}

Deno.test("fused forms of float products give the same numbers", async () => {
  const graph = toyDecoder("f32");
  const fused = optimize(graph, { context: { ...EXACT, ...FUSED } });
  const gates = fused.nodes.filter(({ op, attributes }) =>
    op === "matmul" && attributes.gate !== "none"
  );
  assertEquals([gates.length, countOps(fused).glu], [2, undefined]);
  assertEquals(await logits(fused), await logits(graph));
});

Deno.test("products of weights in different formats stay apart, and their heads are stored in one", async () => {
  const mixed = toyDecoder("f16", (name) => name.endsWith(".v.weight") ? "Q4_0" : "Q8_0");
  const fused = optimize(mixed, { context: { ...FAST, ...FUSED } });
  const counts = countOps(fused);
  assertEquals([attended(fused), counts.rope, counts.kv_append], [2, undefined, undefined]);
  assertEquals((counts["matmul q8"] ?? 0) + (counts["matmul q8 residual"] ?? 0), 2 * 5 + 1);
  assertEquals(await logits(fused), await logits(optimize(mixed, { context: NARROW })));
});
