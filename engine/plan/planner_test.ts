import { assert, assertEquals, assertGreater, assertThrows } from "@std/assert";
import { TOY_LIMITS, toyDecoder } from "../../tests/support/toy_decoder.ts";
import { ResourceError } from "../errors.ts";
import { createGraphBuilder } from "../graph/builder.ts";
import { createCaseRandom } from "../ops/case_random.ts";
import { type DimEnv, evaluate, sub, symbol } from "../graph/dim/mod.ts";
import type { Graph, Value } from "../graph/graph.ts";
import type { CaseRandom } from "../ops/op_case.ts";
import { getOp } from "../ops/mod.ts";
import { tensorInMemory } from "../run/case_graph.ts";
import { formatPlan } from "./format_plan.ts";
import { establishedFit } from "./transformer_lite.ts";
import { type MemoryPolicy, type Placement, type Plan, rootOf } from "./plan.ts";
import { plan } from "./planner.ts";
import { byteSize } from "./sizes.ts";

const SEED = 4;
const LIMITS: DimEnv = { N: 40, sumN: 300 };

/** Overlapping pairs of live placements, by bytes under a binding (default: the planned bytes). */
function overlaps(placements: readonly Placement[], bytes: (p: Placement) => number): string[] {
  const found: string[] = [];
  for (const [i, a] of placements.entries()) {
    for (const b of placements.slice(i + 1)) {
      const live = a.first <= b.last && b.first <= a.last;
      const apart = a.offset + bytes(a) <= b.offset || b.offset + bytes(b) <= a.offset;
      if (live && !apart) found.push(`${a.value.name} and ${b.value.name}`);
    }
  }
  return found;
}

/** A random DAG over rows N, sumN and sumN - N, with views, matmuls and values of many readers. */
function randomGraph(random: CaseRandom): Graph {
  const builder = createGraphBuilder("random", getOp);
  const sumN = symbol("sumN", { min: 1, max: 4096 });
  const N = symbol("N", { min: 1, max: sumN });
  const rows = [N, sumN, sub(sumN, N)];
  const indices = rows.map((row, i) => builder.input(`rows${i}`, [row], "i32"));
  const values: Value[] = [
    builder.input("x", [N, 64], "f32"),
    builder.input("y", [sumN, 7], "f32"),
  ];
  const pick = () => values[random.integer(Math.max(0, values.length - 6), values.length - 1)]!;
  const count = random.integer(2, 30);
  for (let i = 0; i < count; i++) {
    const input = pick();
    const width = input.shape.at(-1) as number;
    const matrix = new Uint8Array(4 * width * random.integer(1, 96));
    const shape = [matrix.length / 4 / width, width];
    const choices: readonly (() => Value[])[] = [
      () => builder.op("unary", [input], { kind: "scale", alpha: 2 }, `scale${i}`),
      () => builder.op("binary", [input, input], { kind: "add" }, `add${i}`),
      () => builder.op("select_rows", [input, indices[i % 3]], {}, `select${i}`),
      () =>
        builder.op(
          "matmul",
          [
            input,
            builder.weight(
              `w${i}`,
              tensorInMemory(`w${i}`, { format: "F32", shape, bytes: matrix }),
            ),
          ],
          {},
          `matmul${i}`,
        ),
      () => builder.op("softmax", [input], {}, `softmax${i}`),
    ];
    values.push(choices[random.integer(0, choices.length - 1)]!()[0]!);
  }
  // Some values stay unread, some are outputs besides the last.
  const outputs = new Set([values.at(-1)!, pick(), pick()]);
  for (const value of outputs) {
    if (value.role === "activation") builder.output(`out_${value.name}`, value);
  }
  return builder.build();
}

Deno.test(`TL-4: 1000 random graphs keep live tensors apart at every binding (seed ${SEED})`, () => {
  const random = createCaseRandom(SEED);
  let saved = 0, literalSaved = 0;
  for (let i = 0; i < 1000; i++) {
    const graph = randomGraph(random);
    const alignment = [1, 16, 256][i % 3]!;
    const plans = (["gbs", "shared", "literal", "naive"] as const)
      .map((
        policy,
      ): [MemoryPolicy, Plan] => [policy, plan(graph, { limits: LIMITS, alignment, policy })]);
    const sumN = random.integer(1, LIMITS.sumN!);
    const env = { sumN, N: random.integer(1, Math.min(sumN, LIMITS.N!)) };
    for (const [policy, { placements, arenaBytes, naiveBytes, lowerBoundBytes }] of plans) {
      const list = [...placements.values()];
      const sizes = new Map(list.map((p) => [p, evaluate(byteSize(p.value), env)]));
      const actual = (placement: Placement) => sizes.get(placement)!;
      const at = `${policy}, graph ${i}`;
      assertEquals(overlaps(list, ({ bytes }) => bytes), [], at);
      assertEquals(overlaps(list, actual), [], at);
      for (const placement of list) {
        assert(
          actual(placement) <= placement.bytes,
          `${at}: ${placement.value.name} outgrows its place`,
        );
        assertEquals(placement.offset % alignment, 0, at);
        assert(placement.offset + placement.bytes <= arenaBytes, at);
      }
      assert(lowerBoundBytes <= arenaBytes && arenaBytes <= naiveBytes, at);
    }
    const bytes = Object.fromEntries(plans.map(([policy, { arenaBytes }]) => [policy, arenaBytes]));
    if (bytes.gbs! < bytes.naive!) saved++;
    if (bytes.literal! < bytes.naive!) literalSaved++;
  }
  assertGreater(saved, 500);
  assertGreater(literalSaved, 300);
});

Deno.test("a plan of the toy decoder meets its lower bound", () => {
  const { arenaBytes, naiveBytes, lowerBoundBytes } = plan(toyDecoder(), { limits: TOY_LIMITS });
  assertEquals(arenaBytes, lowerBoundBytes);
  assert(arenaBytes * 4 < naiveBytes);
});

Deno.test("graph outputs live to the end and views live as long as what they show", () => {
  const builder = createGraphBuilder("views", getOp);
  const x = builder.input("x", [6], "f32");
  const first = builder.op("unary", [x], { kind: "scale", alpha: 2 }, "first")[0]!;
  const view = builder.op("reshape", [first], { shape: ["2", "3"] }, "view")[0]!;
  const viewOfView = builder.op("reshape", [view], { shape: ["3", "2"] }, "view2")[0]!;
  const second = builder.op("unary", [x], { kind: "scale", alpha: 3 }, "second")[0]!;
  const third = builder.op("softmax", [second], {}, "third")[0]!;
  const fourth = builder.op("softmax", [third], {}, "fourth")[0]!;
  builder.output("sum", builder.op("unary", [viewOfView], { kind: "scale", alpha: 1 }, "last")[0]!);
  builder.output("kept", third);
  builder.output("end", builder.op("softmax", [fourth], {}, "fifth")[0]!);
  const made = plan(builder.build(), { limits: {} });
  assertEquals(rootOf(made, viewOfView), first);
  assertEquals(rootOf(made, first), first);
  assertEquals(made.placements.has(view.id), false);
  assertEquals(made.placements.get(third.id)!.last, made.waves - 1);
});

Deno.test("a symbol that makes a size smaller does not make its place smaller", () => {
  const builder = createGraphBuilder("difference", getOp);
  const sumN = symbol("sumN", { min: 1, max: 100 });
  const past = builder.input("past", [sub(sumN, symbol("N", { min: 1, max: sumN })), 4], "f32");
  builder.output("out", builder.op("unary", [past], { kind: "scale", alpha: 1 }, "scale")[0]!);
  const { placements } = plan(builder.build(), { limits: { N: 50, sumN: 100 }, alignment: 1 });
  assertEquals([...placements.values()][0]!.bytes, 99 * 4 * 4);
});

Deno.test("the literal policy shares only what is established", () => {
  const N = symbol("N", { min: 1 }), sumN = symbol("sumN", { min: 1 });
  const size = (shape: Value["shape"]) => byteSize({ dtype: "f32", shape });
  assert(establishedFit(size([N, 4096]), size([N, 32, 128])));
  assert(establishedFit(size([N, 4096]), size([N, 1024])));
  assert(establishedFit(size([256]), size([128])));
  assert(!establishedFit(size([N, 1024]), size([N, 4096])));
  assert(!establishedFit(size([N, 4096]), size([sumN, 2, 128])));
  assert(!establishedFit(size([sumN, 2, 128]), size([N, 4096])));
});

Deno.test("limits and symbols must correspond", () => {
  const graph = toyDecoder();
  assertThrows(() => plan(graph, { limits: { M: 8 } }), RangeError, "no limit for dim L");
  assertThrows(() => plan(graph, { limits: { M: 8, L: 1, Q: 1 } }), RangeError, "it has no dim Q");
  assertThrows(() => plan(graph, { limits: { M: 1.5, L: 1 } }), RangeError, "integer limit");
  assertThrows(() => plan(graph, { limits: TOY_LIMITS, alignment: 0 }), RangeError, "alignment 0");
});

Deno.test("an arena beyond the device's limit is refused with numbers and the largest tensor", () => {
  plan(toyDecoder(), { limits: TOY_LIMITS, maxBytes: 11_264 });
  const error = assertThrows(
    () => plan(toyDecoder(), { limits: TOY_LIMITS, maxBytes: 10_000 }),
    ResourceError,
  );
  assertEquals(
    error.message,
    "layers.0.gate: Cannot plan toy: activations take 11264 bytes, the limit is 10000 bytes; " +
      "the largest at the peak is 3072 bytes. Lower the batch or the context length",
  );
});

Deno.test("sizes beyond 2^53 are refused by the name of the value", () => {
  const builder = createGraphBuilder("large", getOp);
  const x = builder.input("x", [symbol("N"), 2 ** 30], "f32");
  builder.output("out", builder.op("unary", [x], { kind: "scale", alpha: 1 }, "scale")[0]!);
  const graph = builder.build();
  assertThrows(
    () => plan(graph, { limits: { N: 2 ** 30 } }),
    ResourceError,
    "out: Cannot plan memory",
  );
  assertEquals(plan(graph, { limits: { N: 2 ** 20 } }).arenaBytes, 2 ** 52);
});

Deno.test("a plan prints with names or with numbers", () => {
  const builder = createGraphBuilder("small", getOp);
  const M = symbol("M", { max: 8 });
  const x = builder.input("x", [M, 4], "f32");
  const twice = builder.op("unary", [x], { kind: "scale", alpha: 2 }, "twice")[0]!;
  const view = builder.op("reshape", [twice], { shape: ["4*M"] }, "view")[0]!;
  builder.output("out", builder.op("softmax", [view], {}, "soft")[0]!);
  const made = plan(builder.build(), { limits: { M: 8 } });
  assertEquals(
    formatPlan(made),
    `plan of small: 2 steps in 2 waves, M <= 8
arena 256 bytes (gbs, aligned to 64), lower bound 256, without reuse 256, saved 0.0 %
input   x f32[M, 4]
output  out f32[4*M] @128+128 waves 1..1
0  scale(x) -> twice f32[M, 4] @0+128 waves 0..1
1  softmax(twice) -> out f32[4*M] @128+128 waves 1..1
`,
  );
  assertEquals(
    formatPlan(made, { M: 2 }).split("\n")[4],
    "0  scale(x) -> twice f32[2, 4] @0+128 waves 0..1",
  );
});
