import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { createMerger, type Merge } from "./merge_bpe.ts";

/** The definition: merge the best pair, the leftmost among equals, until there is none. */
function mergeNaively(
  symbols: number[],
  lookup: (left: number, right: number) => Merge | undefined,
): number[] {
  const list = [...symbols];
  while (true) {
    let best: { at: number; merge: Merge } | undefined;
    for (let at = 0; at + 1 < list.length; at++) {
      const merge = lookup(list[at], list[at + 1]);
      if (merge && (best === undefined || merge.rank < best.merge.rank)) best = { at, merge };
    }
    if (best === undefined) return list;
    list.splice(best.at, 2, best.merge.id);
  }
}

Deno.test("merging equals the definition for short and long words and any table", () => {
  const row = fc.tuple(fc.nat(15), fc.nat(15), fc.nat(5), fc.integer({ min: 4, max: 15 }));
  fc.assert(
    fc.property(
      fc.array(row, { maxLength: 30 }),
      fc.array(fc.nat(3), { maxLength: 120 }),
      (rows, symbols) => {
        const table = new Map(
          rows.map(([left, right, rank, id]) => [left * 16 + right, { rank, id }]),
        );
        const lookup = (left: number, right: number) => table.get(left * 16 + right);
        const array = Int32Array.from(symbols);
        const count = createMerger(lookup)(array, array.length);
        assertEquals([...array.subarray(0, count)], mergeNaively(symbols, lookup));
      },
    ),
    { seed: 21, numRuns: 1000 },
  );
});

Deno.test("negative symbols merge by what the lookup says of them", () => {
  const merge = createMerger((left, right) =>
    left === -5 && right === -6 ? { rank: 0, id: 7 } : undefined
  );
  const symbols = Int32Array.of(-5, -6, 1);
  assertEquals(merge(symbols, 3), 2);
  assertEquals([...symbols.subarray(0, 2)], [7, 1]);
});

Deno.test("each pair is looked up once while it stays in the table", () => {
  let lookups = 0;
  const merge = createMerger(() => {
    lookups++;
    return undefined;
  });
  merge(new Int32Array(1000), 1000);
  assertEquals(lookups, 1);
});
