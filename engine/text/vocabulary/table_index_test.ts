import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { decodeText, StringTable } from "../../formats/string_table.ts";
import { createTableIndex } from "./table_index.ts";
import { createTextIndex } from "./text_index.ts";

/** A table as a file has it, each string behind its length. */
function tableOf(strings: readonly Uint8Array[]): StringTable {
  const bytes: number[] = [];
  const starts: number[] = [];
  for (const string of strings) {
    bytes.push(string.length & 255, string.length >> 8, 0, 0, 0, 0, 0, 0);
    starts.push(bytes.length);
    bytes.push(...string);
  }
  starts.push(bytes.length + 8);
  return new StringTable(Uint8Array.from(bytes), Uint32Array.from(starts), 8);
}

/** Valid texts, and bytes that are none. */
const strings = fc.array(
  fc.oneof(
    fc.string({ unit: "binary", maxLength: 4 }).map((text) => new TextEncoder().encode(text)),
    fc.constantFrom("▁a", "Ġ", "é", "👍", "a".repeat(200))
      .map((text) => new TextEncoder().encode(text)),
    fc.uint8Array({ maxLength: 3 }),
    fc.constantFrom([0xf0, 0x9f], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xe2, 0x96]).map((bytes) =>
      Uint8Array.from(bytes)
    ),
  ),
  { maxLength: 40 },
);

Deno.test("a table gives the texts that its strings stand for, one by one and all at once", () => {
  fc.assert(
    fc.property(strings, (list) => {
      const wanted = list.map(decodeText);
      const table = tableOf(list);
      assertEquals(list.map((_, i) => table.get(i)), wanted);
      assertEquals([table.get(-1), table.get(list.length)], [undefined, undefined]);
      assertEquals(table.all(), wanted);
      assertEquals(list.map((_, i) => table.get(i)), wanted);
    }),
    { seed: 7, numRuns: 300 },
  );
});

Deno.test("an index over bytes finds what one over texts finds", () => {
  fc.assert(
    fc.property(strings, fc.string({ unit: "binary", maxLength: 3 }), (list, other) => {
      const texts = list.map(decodeText);
      const index = createTableIndex(tableOf(list));
      const wanted = createTextIndex(texts);
      for (
        const text of [
          ...texts,
          ...texts.map((text) => text + other),
          other,
          "\ud800",
          "\udc41",
        ]
      ) {
        assertEquals(index.get(text), wanted.get(text), JSON.stringify(text));
      }
    }),
    { seed: 11, numRuns: 500 },
  );
});
