import { assertEquals } from "@std/assert";
import { attentionList } from "../ops/attention_inputs.ts";
import { createGraphBuilder, type GraphBuilder } from "../graph/builder.ts";
import { symbol } from "../graph/dim/mod.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import { aliasRoots } from "./aliases.ts";
import { schedule } from "./schedule.ts";

const M = symbol("M", { min: 1 });
const WIDTH = 8;

/** Wave of each step by node name. */
function waves(graph: Graph): Record<string, number> {
  const steps = schedule(graph, aliasRoots(graph));
  return Object.fromEntries(steps.map(({ node, wave }) => [node.name, wave]));
}

function built(make: (b: GraphBuilder, x: Value, y: Value) => Value): Record<string, number> {
  const b = createGraphBuilder("chains", getOp);
  const x = b.input("x", [M, WIDTH], "f32"), y = b.input("y", [M, WIDTH], "f32");
  b.output("out", make(b, x, y));
  return waves(b.build());
}

const add = (b: GraphBuilder, x: Value, y: Value, name: string) =>
  b.op("binary", [x, y], { kind: "add" }, name)[0]!;
const norm = (b: GraphBuilder, x: Value, name: string, weight?: Value) =>
  b.op("norm", [x, weight], { epsilon: 1e-5 }, name)[0]!;

Deno.test("a norm shares the wave of the sum that it reads, and what follows moves up", () => {
  assertEquals(
    built((b, x, y) => {
      const sum = add(b, norm(b, x, "post"), y, "sum");
      const scaled = b.op(
        "unary",
        [norm(b, sum, "next")],
        { kind: "scale", alpha: 2 },
        "scale",
      )[0]!;
      return add(b, scaled, sum, "end");
    }),
    { post: 0, sum: 0, next: 0, scale: 1, end: 2 },
  );
});

Deno.test("heads are rows of their token: norm, rotation and cache are one chain", () => {
  const b = createGraphBuilder("heads", getOp);
  const x = b.input("x", [M, WIDTH], "f32"), table = b.input("table", [M, 4], "f32");
  const positions = b.input("positions", [M], "i32"), slots = b.input("slots", [M], "i32");
  const heads = b.op("reshape", [x], { shape: [M, 2, 4] }, "heads")[0]!;
  const rotated = b.op("rope", [norm(b, heads, "head_norm"), table], { style: "half" }, "rope")[0]!;
  const cache = b.state("cache", [16, 2, 4], "f32");
  const kept = b.op("kv_append", [cache, rotated, positions, slots], {}, "append")[0]!;
  b.output(
    "y",
    b.op("attention", attentionList({ q: rotated, k: kept, v: kept, positions, slots }), {
      scale: 1,
    }, "attend")[0]!,
  );
  assertEquals(waves(b.build()), { head_norm: 0, rope: 0, append: 0, attend: 1 });
});

Deno.test("what reads more than its own rows waits", () => {
  // The weight is read by every row; of a sum of two norms neither is the head; rows of another length; sums of sums.
  assertEquals(
    built((b, x) => norm(b, x, "late", norm(b, b.input("w", [WIDTH], "f32"), "weight"))),
    { weight: 0, late: 1 },
  );
  assertEquals(
    built((b, x, y) => add(b, norm(b, x, "left"), norm(b, y, "right"), "sum")),
    { left: 0, right: 0, sum: 1 },
  );
  assertEquals(
    built((b, x) => {
      const cut = b.op("reshape", [norm(b, x, "whole")], { shape: ["M*2", "4"] }, "view")[0]!;
      return norm(b, cut, "halves");
    }),
    { whole: 0, halves: 1 },
  );
  assertEquals(
    built((b, x, y) => add(b, add(b, x, y, "first"), y, "second")),
    { first: 0, second: 1 },
  );
});
