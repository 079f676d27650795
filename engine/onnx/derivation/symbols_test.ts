import { assert, assertEquals } from "@std/assert";
import type { OnnxDim, OnnxValueInfo } from "../file/model.ts";
import {
  type Dim,
  equal,
  formatDim,
  min,
  parseDim,
  substitute,
  symbol,
} from "../../graph/dim/mod.ts";
import {
  assumeEqual,
  contradictions,
  createBinder,
  declareInputs,
  describeAssumptions,
  NO_ASSUMPTIONS,
} from "./symbols.ts";

function inputs(shapes: Readonly<Record<string, readonly OnnxDim[]>>): OnnxValueInfo[] {
  return Object.entries(shapes).map(([name, shape]) => ({
    name,
    type: { kind: "tensor", dtype: "f32", shape },
  }));
}

function sizes(shapes: Readonly<Record<string, readonly number[]>>) {
  return new Map(Object.entries(shapes));
}

// The inputs of a decoder as exporters write them: past length under a name of its own, or as a difference.
const LAST_SUM = inputs({
  input_ids: [1, "N"],
  attention_mask: [1, 1, "N", "sumN"],
  past_key_in0: [1, 4, "lastSum", 8],
});
const DIFFERENCE = inputs({
  input_ids: [1, "N"],
  attention_mask: [1, 1, "N", "sumN"],
  past_key_in0: [1, 4, "sumN-N", 8],
});
const PREFILL = sizes({
  input_ids: [1, 7],
  attention_mask: [1, 1, 7, 7],
  past_key_in0: [1, 4, 0, 8],
});
const DECODE = sizes({
  input_ids: [1, 1],
  attention_mask: [1, 1, 1, 9],
  past_key_in0: [1, 4, 8, 8],
});

function shown(dims: ReadonlyMap<string, readonly Dim[]>): Record<string, string> {
  return Object.fromEntries(
    [...dims].map(([name, list]) => [name, list.map(formatDim).join(", ")]),
  );
}

Deno.test("names are symbols, differences are expressions of them and bound them", () => {
  const { dims, order } = declareInputs(DIFFERENCE, PREFILL, NO_ASSUMPTIONS);
  assertEquals(shown(dims).past_key_in0, "1, 4, sumN - N, 8");
  assertEquals(order, ["N", "sumN"]);
  // N <= sumN follows, because a size is not negative.
  const [, , n, sum] = dims.get("attention_mask")!;
  assertEquals(formatDim(min(n!, sum!)), "N");
});

Deno.test("adding a mask of sumN columns to lastSum + N makes lastSum := sumN - N", () => {
  const { dims, order } = declareInputs(LAST_SUM, PREFILL, NO_ASSUMPTIONS);
  const [, , n, sum] = dims.get("attention_mask")!;
  const total = substitute(parseDim("a + b"), { a: dims.get("past_key_in0")![2]!, b: n! });
  const assumed = assumeEqual(total, { b: sum!, order, before: NO_ASSUMPTIONS })!;
  assertEquals(describeAssumptions(assumed), ["lastSum := sumN - N"]);
  const again = declareInputs(LAST_SUM, PREFILL, assumed);
  assertEquals(shown(again.dims).past_key_in0, "1, 4, sumN - N, 8");
  const binder = createBinder(again.dims)!;
  assertEquals(binder.bind(PREFILL), { N: 7, sumN: 7 });
  assertEquals(binder.bind(DECODE), { N: 1, sumN: 9 });
  const wrong = new Map([...DECODE, ["past_key_in0", [1, 4, 5, 8]]]);
  assertEquals(binder.bind(wrong), "past_key_in0 2");
});

Deno.test("a size that was halved and doubled again must be a multiple", () => {
  const image = inputs({ x: [1, 3, "H", "W"] });
  const shapes = sizes({ x: [1, 3, 16, 8] });
  const { dims, order } = declareInputs(image, shapes, NO_ASSUMPTIONS);
  const [, , h] = dims.get("x")!;
  const twice = substitute(parseDim("2 * floordiv(h + 1, 2)"), { h: h! });
  const assumed = assumeEqual(h!, { b: twice, order, before: NO_ASSUMPTIONS })!;
  assertEquals(describeAssumptions(assumed), ["H is a multiple of 2"]);
  const again = declareInputs(image, shapes, assumed);
  const [, , even] = again.dims.get("x")!;
  assert(equal(even!, substitute(parseDim("2 * floordiv(h + 1, 2)"), { h: even! })));
  const binder = createBinder(again.dims)!;
  assertEquals(binder.bind(shapes), { "H/2": 8, W: 8 });
  assertEquals(binder.bind(sizes({ x: [1, 3, 15, 8] })), "x 2");
});

Deno.test("a table cut to N bounds N; a mask cut to a length has that length", () => {
  const N = symbol("N", { min: 1 }), M = symbol("M", { min: 1 });
  const table = assumeEqual(N, { b: min(32, N), order: ["N"], before: NO_ASSUMPTIONS })!;
  assertEquals(describeAssumptions(table), ["N <= 32"]);
  const mask = assumeEqual(N, { b: min(N, M), order: ["N", "M"], before: NO_ASSUMPTIONS })!;
  assertEquals(describeAssumptions(mask), ["M := N"]);
});

Deno.test("what nothing makes equal is not assumed", () => {
  assertEquals(assumeEqual(3, { b: 4, order: [], before: NO_ASSUMPTIONS }), undefined);
  assertEquals(
    assumeEqual(parseDim("2 * N"), { b: parseDim("4 * N"), order: ["N"], before: NO_ASSUMPTIONS }),
    undefined,
  );
});

Deno.test("declared sizes that contradict a run are found, the first of a name counts", () => {
  const optimum = inputs({
    input_ids: ["batch", "length"],
    attention_mask: ["batch", "past + 1"],
    past: ["batch", 2, "past", 8],
    wrong: ["length", "past"],
  });
  const shapes = sizes({
    input_ids: [1, 7],
    attention_mask: [1, 7],
    past: [1, 2, 0, 8],
    wrong: [3, 0],
  });
  assertEquals([...contradictions(optimum, shapes)], ["wrong 0", "attention_mask 1"]);
  const dropped = contradictions(optimum, shapes);
  const { dims } = declareInputs(optimum, shapes, { ...NO_ASSUMPTIONS, dropped });
  assertEquals(shown(dims).attention_mask, "batch, attention_mask_dim_1");
});

Deno.test("names that are no identifiers and text that is no expression are symbols too", () => {
  const odd = inputs({ x: ["Concatpast_key0_dim_2", "a b", "2 * unknown", undefined] });
  const { dims } = declareInputs(odd, sizes({ x: [2, 3, 4, 5] }), NO_ASSUMPTIONS);
  const binder = createBinder(dims)!;
  assertEquals(
    Object.values(binder.bind(sizes({ x: [2, 3, 4, 5] }))),
    [2, 3, 4, 5],
  );
});
