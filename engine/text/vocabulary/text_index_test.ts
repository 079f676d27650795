import { assertEquals, assertLess } from "@std/assert";
import fc from "fast-check";
import { createTextIndex } from "./text_index.ts";

Deno.test("an index finds the first of like texts and nothing that is not there", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 3 }), { maxLength: 60 }),
      fc.string({ maxLength: 3 }),
      (texts, other) => {
        const index = createTextIndex(texts);
        for (const text of [...texts, other]) {
          const wanted = text === "" ? -1 : texts.indexOf(text);
          assertEquals(index.get(text), wanted < 0 ? undefined : wanted);
        }
      },
    ),
    { seed: 23, numRuns: 500 },
  );
});

Deno.test("texts that were written to collide do not make an index slow", () => {
  // Texts of one residue: candidates are hashed as the index does, and only those of one slot are kept.
  const texts: string[] = [];
  for (let i = 0; texts.length < 3000; i++) {
    const text = i.toString(36);
    let hash = 0x811c9dc5;
    for (const char of text) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
    if (((hash ^ (hash >>> 15)) & 0xff) === 0) texts.push(text);
  }
  let reads = 0;
  const counted = new Proxy(texts, {
    get(list, key, receiver) {
      reads++;
      return Reflect.get(list, key, receiver);
    },
  });
  const index = createTextIndex(counted);
  texts.forEach((text, i) => assertEquals(index.get(text), i));
  // With a chain for each of 32 slots it would be a hundred thousand.
  assertLess(reads, 20 * texts.length);
});
