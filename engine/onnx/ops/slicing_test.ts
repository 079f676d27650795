// Slices of symbolic dims: what is proven from the bounds leaves no clamp behind.

import { assertEquals, assertThrows } from "@std/assert";
import { type Dim, formatDim, sub, symbol } from "../../graph/dim/mod.ts";
import { cutOf } from "./slicing.ts";

const N = symbol("N", { min: 1 }), SUM = symbol("sumN", { min: N });
const END = Number.MAX_SAFE_INTEGER;

const cases: readonly (readonly [
  what: string,
  readonly [dim: Dim, start: Dim, end: Dim, step: number],
  string,
  string,
])[] = [
  ["a whole dim", [N, 0, END, 1], "0", "N"],
  ["all but the first", [N, 1, END, 1], "1", "N - 1"],
  ["all but the last", [N, 0, -1, 1], "0", "N - 1"],
  ["the last", [N, -1, END, 1], "N - 1", "1"],
  ["the new part of a cache", [SUM, sub(SUM, N), END, 1], "sumN - N", "N"],
  ["every second", [N, 0, END, 2], "0", "ceildiv(N, 2)"],
  ["backwards", [N, -1, -END, -1], "N - 1", "N"],
  ["backwards", [symbol("maybe"), -1, -END, -1], "maybe - 1", "maybe"],
  ["backwards from 3", [0, 3, -END, -1], "-1", "0"],
  ["a known dim, clamped", [10, -100, 100, 3], "0", "4"],
];

for (const [what, [dim, start, end, step], first, size] of cases) {
  Deno.test(`${what} of ${formatDim(dim)} is ${size} from ${first}`, () => {
    const cut = cutOf(dim, { start, end, step });
    assertEquals([formatDim(cut.start), formatDim(cut.size)], [first, size]);
  });
}

Deno.test("a start whose sign is not proven is an error", () => {
  const unknown: Dim = sub(symbol("a"), symbol("b"));
  assertThrows(
    () => cutOf(N, { start: unknown, end: END, step: 1 }),
    RangeError,
    "depends on the bindings",
  );
});
