import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  hashOf,
  type HashTable,
  measureStrings,
  type StringRun,
  stringWithout,
  tableOf,
} from "./strings.ts";

/** A list of strings as a file has it, behind some bytes of others. */
function listOf(strings: readonly Uint8Array[], lengthBytes: 4 | 8, base = 0): StringRun {
  const bytes = new Uint8Array(
    base + strings.reduce((sum, { length }) => sum + lengthBytes + length, 0),
  );
  let at = base;
  for (const string of strings) {
    new DataView(bytes.buffer).setUint32(at, string.length, true);
    bytes.set(string, at + lengthBytes);
    at += lengthBytes + string.length;
  }
  const starts = new Uint32Array(strings.length + 1);
  starts[0] = lengthBytes;
  return { bytes, starts, lengthBytes };
}

/** By string, the first that equals it. */
function firsts(strings: readonly Uint8Array[]): number[] {
  const first = new Map<string, number>();
  return strings.map((bytes, i) => {
    const text = new TextDecoder("latin1").decode(bytes);
    if (!first.has(text)) first.set(text, i);
    return first.get(text)!;
  });
}

function tabulated(run: StringRun, first: readonly number[], most = 2 ** 31) {
  return tableOf(run, { most, isSame: (i, j) => first[i] === first[j] });
}

/** By string, what a table has for it, looked for from the slot of its hash. */
function found({ hashes, slots }: HashTable, first: readonly number[]): number[] {
  const mask = slots.length - 1;
  return [...hashes].map((hash, i) => {
    let at = hash & mask;
    while (slots[at] !== 0 && first[slots[at]! - 1] !== first[i]) at = (at + 1) & mask;
    return slots[at]! - 1;
  });
}

/** Lists with strings that are longer than what is looked at in one call, and with more of them. */
const lists = fc.oneof(
  fc.array(fc.uint8Array({ maxLength: 12 }), { maxLength: 40 }),
  fc.constantFrom(
    [new Uint8Array(3), new Uint8Array(300_000).fill(7), new Uint8Array(5)],
    Array.from({ length: 40_000 }, (_, i) => Uint8Array.of(i, i >> 8).subarray(0, i % 3)),
    Array.from({ length: 5 }, (_, i) => new Uint8Array(60_000).fill(i)),
  ),
);

Deno.test("strings are measured, hashed and searched as a loop over their bytes does it", () => {
  fc.assert(
    fc.property(
      lists,
      fc.constantFrom(4 as const, 8 as const),
      fc.nat(9),
      (strings, length, base) => {
        const list = listOf(strings, length, base);
        let from = 0;
        for (; from < strings.length; from++) {
          from = measureStrings(list, { from, base });
          if (from === strings.length) break;
          // Longer than a call's bytes: the caller steps over it.
          assertEquals(strings[from]!.length > 100_000, true);
          list.starts[from + 1] = list.starts[from]! + strings[from]!.length + length;
        }
        const run = { ...list, bytes: list.bytes.subarray(base) };
        const seen = strings.map((_, i) =>
          run.bytes.subarray(run.starts[i], run.starts[i + 1]! - length)
        );
        assertEquals(seen.every((bytes, i) => bytes.length === strings[i]!.length), true);
        const first = firsts(strings), table = tabulated(run, first)!;
        assertEquals([...table.hashes], strings.map((bytes) => hashOf(bytes, bytes.length)));
        assertEquals(
          table.longest,
          strings.reduce((most, { length }) => Math.max(most, length), 0),
        );
        assertEquals(table.slots.filter((slot) => slot !== 0).length, new Set(first).size);
        assertEquals(found(table, first), first);
        for (const byte of [0, 7, 250]) {
          const place = strings.findIndex((bytes) => bytes.indexOf(byte, 1) < 0);
          assertEquals(stringWithout(run, byte), place);
        }
      },
    ),
    { seed: 5, numRuns: 200 },
  );
});

Deno.test("measuring ends where the bytes do, and at a length that nothing could have", () => {
  const list = listOf([Uint8Array.of(1, 2), Uint8Array.of(3)], 8);
  const cut = { ...list, bytes: list.bytes.subarray(0, list.bytes.length - 1) };
  assertEquals(measureStrings(cut, { from: 0, base: 0 }), 1);
  assertEquals(list.starts[1], 8 + 2 + 8);
  list.bytes[10 + 7] = 1; // the highest byte of the second length
  assertEquals(measureStrings(list, { from: 0, base: 0 }), 1);
  assertEquals(measureStrings({ ...list, bytes: new Uint8Array(0) }, { from: 0, base: 0 }), 0);
});

Deno.test("strings of one hash are all entered, equal ones once, and too many probes end it", () => {
  // Strings of four bytes by their hashes.
  const byHash = new Map<number, Uint8Array>(), twins: Uint8Array[] = [];
  for (let n = 0; twins.length === 0; n++) {
    const bytes = new Uint8Array(Uint32Array.of(Math.imul(n, 0x9e3779b1)).buffer);
    const hash = hashOf(bytes, 4), other = byHash.get(hash);
    if (other) twins.push(other, bytes);
    else byHash.set(hash, bytes);
  }
  const table = (strings: readonly Uint8Array[], most?: number) => {
    const run = listOf(strings, 8), first = firsts(strings);
    measureStrings(run, { from: 0, base: 0 });
    const made = tabulated(run, first, most);
    return made && found(made, first);
  };
  const [a, b] = twins as [Uint8Array, Uint8Array];
  assertEquals(table([a, b, a, Uint8Array.of(1), b]), [0, 1, 0, 3, 1]);
  assertEquals(table([a, b, a, Uint8Array.of(1), b], 1), undefined);
  // Of a table of 128 slots all begin at one: n strings take n (n - 1) / 2 steps.
  const crowd = [...byHash].filter(([hash]) => (hash & 127) === 5).slice(0, 64)
    .map(([, bytes]) => bytes);
  assertEquals(table(crowd, 64 * 63 / 2), crowd.map((_, i) => i));
  assertEquals(table(crowd, 64 * 63 / 2 - 1), undefined);
});
