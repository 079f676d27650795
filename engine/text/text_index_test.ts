import { assert, assertEquals } from "@std/assert";
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
  const started = performance.now();
  const index = createTextIndex(texts);
  texts.forEach((text, i) => assertEquals(index.get(text), i));
  assert(performance.now() - started < 1000);
});
