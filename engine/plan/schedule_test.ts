import { assert, assertEquals, assertThrows } from "@std/assert";
import { attentionList } from "../ops/attention_inputs.ts";
import { toyDecoder } from "../../tests/support/toy_decoder.ts";
import { createGraphBuilder } from "../graph/builder.ts";
import type { Graph } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import { aliasRoots } from "./aliases.ts";
import { rowwiseOf } from "./chains.ts";
import { commonSubexpressions } from "./passes/common_subexpressions.ts";
import { schedule } from "./schedule.ts";

/** Wave of each step by node name. */
function waves(graph: Graph): Record<string, number> {
  const steps = schedule(graph, aliasRoots(graph));
  return Object.fromEntries(steps.map(({ node, wave }) => [node.name, wave]));
}

Deno.test("q, k and v share a wave, and so do gate and up", () => {
  const wave = waves(toyDecoder());
  for (const layer of ["layers.0", "layers.1"]) {
    assertEquals(wave[`${layer}.k`], wave[`${layer}.q`]);
    assertEquals(wave[`${layer}.v`], wave[`${layer}.q`]);
    assertEquals(wave[`${layer}.up`], wave[`${layer}.gate`]);
    assertEquals(wave[`${layer}.k_rope`], wave[`${layer}.q_rope`]);
  }
});

Deno.test("what depends on inputs only is not computed before it is needed", () => {
  const wave = waves(toyDecoder());
  for (const layer of ["layers.0", "layers.1"]) {
    assertEquals(wave[`${layer}.rope_table`], wave[`${layer}.q_rope`]! - 1);
  }
  const shared = waves(commonSubexpressions.run(toyDecoder(), {
    ...{ precision: "exact", hasKernel: () => false, takes: () => false },
  }));
  assertEquals(shared["layers.0.rope_table"], shared["layers.0.q_rope"]! - 1);
});

Deno.test("a node sinks only if its inputs do not live longer for it", () => {
  const builder = createGraphBuilder("sink", getOp);
  const x = builder.input("x", [8], "f32");
  const scale = (input: typeof x, name: string) =>
    builder.op("unary", [input], { kind: "scale", alpha: 2 }, name)[0]!;
  const start = scale(x, "start");
  const chain = scale(scale(scale(start, "a"), "b"), "c");
  // Its input is kept by nobody else: it stays early. `late` reads what the last add keeps alive anyway.
  const early = scale(start, "early");
  const late = scale(chain, "late");
  const sum = builder.op("binary", [chain, early], { kind: "add" }, "sum")[0]!;
  builder.output(
    "result",
    builder.op("binary", [builder.op("binary", [sum, late], { kind: "add" }, "s2")[0]!, chain], {
      kind: "add",
    }, "s3")[0]!,
  );
  const wave = waves(builder.build());
  assertEquals(wave.early, wave.a);
  assertEquals(wave.late, wave.sum);
});

Deno.test("nodes of one wave depend on each other only where they take rows", () => {
  const graph = toyDecoder();
  const steps = schedule(graph, aliasRoots(graph));
  const wave = new Map(steps.map(({ node, wave }) => [node, wave]));
  const roots = aliasRoots(graph);
  for (const { node } of steps) {
    for (const other of steps.map((step) => step.node)) {
      const made = other.outputs.map((value) => value.id);
      const reads = node.inputs.some((value) =>
        value && (made.includes(value.id) || made.includes(roots.get(value.id)?.id ?? -1))
      );
      const takesRows = rowwiseOf(node) && rowwiseOf(other) &&
        steps.findIndex((step) => step.node === other) <
          steps.findIndex((step) => step.node === node);
      const latest = wave.get(node)! - (takesRows ? 0 : 1);
      if (reads) assert(wave.get(other)! <= latest, `${node.name} needs ${other.name}`);
    }
  }
});

Deno.test("views are no steps, and waves are in order", () => {
  const graph = toyDecoder();
  const steps = schedule(graph, aliasRoots(graph));
  assertEquals(steps.length, graph.nodes.filter(({ op }) => op !== "reshape").length);
  for (const [i, step] of steps.slice(1).entries()) {
    const before = steps[i]!;
    assert(before.wave <= step.wave);
  }
});

function stateGraph(): Graph {
  const builder = createGraphBuilder("state", getOp);
  const positions = builder.input("positions", [1], "i32"),
    slots = builder.input("slots", [1], "i32");
  const x = builder.input("x", [1, 1, 4], "f32");
  const old = builder.state("cache", [8, 1, 4], "f32");
  const append = (input: typeof x, name: string) =>
    builder.op("kv_append", [old, input, positions, slots], {}, name)[0]!;
  const attend = (cache: typeof x, name: string) =>
    builder.op("attention", attentionList({ q: x, k: cache, v: cache, positions, slots }), {
      scale: 1,
    }, name)[0]!;
  const appended = append(x, "append");
  const fresh = attend(appended, "fresh");
  const stale = attend(old, "stale");
  builder.output("fresh_out", fresh);
  builder.output("stale_out", stale);
  return builder.build();
}

Deno.test("whoever reads a state as it was runs before the node that changes it", () => {
  const wave = waves(stateGraph());
  assert(wave.stale! < wave.append!);
  assert(wave.append! < wave.fresh!);
});

Deno.test("reads and changes of a state that contradict each other are refused", () => {
  const builder = createGraphBuilder("knot", getOp);
  const positions = builder.input("positions", [1], "i32"),
    slots = builder.input("slots", [1], "i32");
  const x = builder.input("x", [1, 1, 4], "f32");
  const cache = builder.state("cache", [8, 1, 4], "f32");
  const written = builder.op("kv_append", [cache, x, positions, slots], {}, "append")[0]!;
  const fresh = builder.op(
    "attention",
    attentionList({ q: x, k: written, v: written, positions, slots }),
    { scale: 1 },
    "a",
  )[0]!;
  const heads = builder.op("reshape", [fresh], { shape: ["1", "1", "4"] }, "heads")[0]!;
  // Needs the result of the write, and the state before it.
  const stale = builder.op(
    "attention",
    attentionList({ q: heads, k: cache, v: cache, positions, slots }),
    { scale: 1 },
    "b",
  )[0]!;
  builder.output("out", stale);
  const graph = builder.build();
  assertThrows(() => schedule(graph, aliasRoots(graph)), TypeError, "waits for itself");
});
