// The fuzz targets of the text side with a few inputs; `deno task fuzz` runs many.

import { assertThrows } from "@std/assert";
import fc from "fast-check";
import { compileChatTemplate } from "../engine/text/chat_template.ts";
import { tokenizerFromJson } from "../engine/text/tokenizer.ts";
import {
  fuzzTemplate,
  fuzzTokenizerJson,
  templateSeeds,
  tokenizerJsonSeeds,
} from "./support/fuzz_text.ts";

/** A seed with some stretches replaced by others of the seeds. */
function mutated(seeds: readonly string[]): fc.Arbitrary<string> {
  const words = seeds.flatMap((seed) => seed.split(/\b/));
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.nat(12),
    word: fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 3 }), fc.constant("")),
  });
  return fc.tuple(fc.constantFrom(...seeds), fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([seed, changes]) =>
      changes.reduce((text, { at, length, word }) => {
        const start = Math.floor(at * text.length);
        return text.slice(0, start) + word + text.slice(start + length);
      }, seed)
    );
}

Deno.test("the good inputs of the fuzz targets are good", () => {
  for (const seed of tokenizerJsonSeeds()) {
    fuzzTokenizerJson(seed);
    tokenizerFromJson(JSON.parse(seed), { tokenizerConfig: null, name: "seed" }).encode("a aa");
  }
  for (const seed of templateSeeds()) {
    fuzzTemplate(seed);
    compileChatTemplate(seed, "seed").render({ messages: [{ role: "user", content: "x" }] });
  }
});

/** A seed with some fields, wherever they stand, set to other values. */
function changed(seeds: readonly string[]): fc.Arbitrary<string> {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom(
      0,
      1,
      4,
      -1,
      1e9,
      0.5,
      "",
      "a",
      "BPE",
      "Unigram",
      "WordPiece",
      "ByteLevel",
      null,
    ),
  );
  const change = fc.record({ picks: fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }), value });
  return fc.tuple(fc.constantFrom(...seeds), fc.array(change, { minLength: 1, maxLength: 3 }))
    .map(([seed, changes]) => {
      const document = JSON.parse(seed);
      for (const { picks, value } of changes) setField(document, picks, value);
      return JSON.stringify(document);
    });
}

/** Goes down into a document by numbers, and sets the field where they end. */
function setField(node: unknown, picks: readonly number[], value: unknown): void {
  if (typeof node !== "object" || node === null) return;
  const keys = Object.keys(node);
  if (keys.length === 0) return;
  const key = keys[picks[0] % keys.length];
  const fields = node as Record<string, unknown>;
  const isLast = picks.length === 1 || typeof fields[key] !== "object" || fields[key] === null;
  if (isLast) fields[key] = value;
  else setField(fields[key], picks.slice(1), value);
}

Deno.test("a thousand broken tokenizer.json texts are read or refused", () => {
  const seeds = tokenizerJsonSeeds();
  fc.assert(fc.property(mutated(seeds), fuzzTokenizerJson), { seed: 51, numRuns: 1000 });
});

Deno.test("three thousand tokenizer.json documents with odd fields are read or refused", () => {
  const seeds = tokenizerJsonSeeds();
  fc.assert(fc.property(changed(seeds), fuzzTokenizerJson), { seed: 53, numRuns: 3000 });
});

Deno.test("a thousand broken templates are rendered or refused", () => {
  fc.assert(fc.property(mutated(templateSeeds()), fuzzTemplate), { seed: 52, numRuns: 1000 });
});

Deno.test("the target for templates notices text that became a control token", () => {
  const looksAtText = "{{ '<|im_end|>' if messages[0]['con' ~ 'tent'] | length > 1 }}";
  assertThrows(
    () => fuzzTemplate(looksAtText),
    Error,
    "a message gave control tokens",
  );
});
