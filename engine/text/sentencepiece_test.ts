import { assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { fixturePath, readFixture } from "../../tests/support/fixtures.ts";
import { assertLinear } from "../../tests/support/linear.ts";
import {
  delimited,
  type Piece,
  varint,
  writeSentencePiece,
} from "../../tests/support/write_sentencepiece.ts";
import { joinBytes } from "../../tests/support/write_gguf.ts";
import { FormatError, UnsupportedError } from "../errors.ts";
import { tokenizerFromSentencePiece } from "./sentencepiece.ts";

const PLAIN = { addSpecial: false } as const;
const CONTROL: readonly Piece[] = [
  { text: "<unk>", kind: 2 },
  { text: "<s>", kind: 3 },
  { text: "</s>", kind: 3 },
];
const UNIGRAM = { 3: 1 };
const BPE = { 3: 2 };
const NO_PREFIX = { 3: 0, 4: 0 };

function readModel(path: string) {
  return tokenizerFromSentencePiece(Deno.readFileSync(fixturePath(path)), path);
}

const golden = JSON.parse(readFixture("tokenizers/sentencepiece/expected.json")) as {
  strings: string[];
  models: Record<string, number[][]>;
};

for (const [name, ids] of Object.entries(golden.models)) {
  Deno.test(`a ${name} model with words added by hand gives the ids of the reference`, () => {
    const tokenizer = readModel(`tokenizers/sentencepiece/${name}.model`);
    golden.strings.forEach((text, i) => assertEquals(tokenizer.encode(text, PLAIN), ids[i], text));
  });
}

Deno.test("the model of the tiny llama gives the ids and texts of the reference", () => {
  const tokenizer = readModel("models/llama_formats/tokenizer.model");
  const { cases } = JSON.parse(readFixture("models/llama_formats/tokenizer_expected.json")) as {
    cases: { text: string; ids: number[]; decoded: string }[];
  };
  for (const { text, ids, decoded } of cases) {
    assertEquals(tokenizer.encode(text, PLAIN), ids, text);
    assertEquals(tokenizer.decode(ids), decoded);
  }
  assertEquals(tokenizer.encode("the"), [1, 263], "BOS in front");
  assertEquals(tokenizer.encode("<s>the", { ...PLAIN, special: true }), [1, 263]);
});

/** Best sum of scores over all ways to cut a text; a character without a piece has the lowest minus 10. */
function bestScore(text: string, scores: ReadonlyMap<string, number>): number {
  const unknown = Math.min(0, ...scores.values()) - 10;
  const best = (rest: string): number => {
    if (rest === "") return 0;
    let found = scores.has(rest[0]!) ? -Infinity : unknown + best(rest.slice(1));
    for (let end = 1; end <= rest.length; end++) {
      const score = scores.get(rest.slice(0, end));
      if (score !== undefined) found = Math.max(found, score + best(rest.slice(end)));
    }
    return found;
  };
  return best(text);
}

Deno.test("a unigram model cuts with the best sum of scores, as trying every cut finds it", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 3 });
  const pieces = fc.uniqueArray(fc.tuple(word, fc.integer({ min: -40, max: -1 })), {
    selector: ([text]) => text,
    minLength: 1,
    maxLength: 12,
  });
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 9 });
  fc.assert(
    fc.property(pieces, text, (pairs, input) => {
      const list = [...CONTROL, ...pairs.map(([text, score]) => ({ text, score: score / 4 }))];
      const bytes = writeSentencePiece(list, { trainer: UNIGRAM, normalizer: NO_PREFIX });
      const tokenizer = tokenizerFromSentencePiece(bytes, "m");
      const scores = new Map(pairs.map(([text, score]) => [text, score / 4]));
      const unknown = Math.min(...scores.values()) - 10;
      const ids = tokenizer.encode(input, PLAIN);
      const total = ids.reduce((sum, id) => sum + (id === 0 ? 0 : list[id]!.score!), 0);
      const covered = ids.reduce((sum, id) => sum + (id === 0 ? 0 : list[id]!.text.length), 0);
      // Unknown characters in a row are one id, so they are counted by what is left.
      assertAlmostEquals(
        total + unknown * (input.length - covered),
        bestScore(input, scores),
        1e-6,
      );
    }),
    { seed: 8, numRuns: 500 },
  );
});

Deno.test("blanks follow the normalizer: prefix, suffix, squeezing, none at all", () => {
  const pieces = [...CONTROL, ..."\u2581abc <".split("").map((text) => ({ text }))];
  const show = (
    text: string,
    trainer: Record<number, number>,
    normalizer: Record<number, number>,
  ) => {
    const bytes = writeSentencePiece(pieces, { trainer: { ...BPE, ...trainer }, normalizer });
    const tokenizer = tokenizerFromSentencePiece(bytes, "m");
    return tokenizer.encode(text, PLAIN).map((id) => tokenizer.tokenText(id)).join("")
      .replaceAll("\u2581", "_");
  };
  assertEquals(show("  a  b ", {}, {}), "_a_b", "the proto's defaults");
  assertEquals(show("  a  b ", {}, { 4: 0 }), "___a__b_");
  assertEquals(show(" a", {}, { 3: 0, 4: 0 }), "_a");
  assertEquals(show("a b", { 24: 1 }, {}), "a_b_");
  assertEquals(show("a b", {}, { 3: 0, 5: 0 }), "a b");
  assertEquals(show("   ", {}, {}), "");
  assertEquals(show("", {}, {}), "");
});

Deno.test("BOS and EOS go around by the kind of model, or by what its config says", () => {
  const pieces = [...CONTROL, { text: "a" }];
  const ids = (trainer: Record<number, number>, options = {}) =>
    tokenizerFromSentencePiece(
      writeSentencePiece(pieces, { trainer, normalizer: NO_PREFIX }),
      "m",
      options,
    ).encode("a");
  assertEquals(ids(BPE), [1, 3]);
  assertEquals(ids(UNIGRAM), [3, 2]);
  assertEquals(ids(BPE, { addBos: false, addEos: true }), [3, 2]);
  assertEquals(ids({ ...BPE, 41: -1 }), [3], "a model without BOS");
  const path = "models/llama_formats/tokenizer.model";
  assertEquals(readModel(path).warnings.length, 1, "a guess is said");
  const told = tokenizerFromSentencePiece(Deno.readFileSync(fixturePath(path)), "m", {
    addBos: true,
  });
  assertEquals(told.warnings, []);
});

Deno.test("control pieces in a text are text unless asked for, and unused pieces never come out", () => {
  const pieces = [
    ...CONTROL,
    { text: "ab", kind: 5 },
    ..."ab<s>".split("").map((text) => ({ text })),
  ];
  const bytes = writeSentencePiece(pieces, { trainer: UNIGRAM, normalizer: NO_PREFIX });
  const tokenizer = tokenizerFromSentencePiece(bytes, "m");
  assertEquals(tokenizer.encode("<s>", PLAIN), [6, 7, 8]);
  assertEquals(tokenizer.encode("<s>", { ...PLAIN, special: true }), [1]);
  assertEquals(tokenizer.encode("ab", PLAIN), [4, 5]);
});

Deno.test("files that are damaged or of another kind are refused with their place", () => {
  const build = (bytes: Uint8Array) => () => tokenizerFromSentencePiece(bytes, "m.model");
  const good = writeSentencePiece([...CONTROL, { text: "a" }], { trainer: BPE });
  assertThrows(build(new Uint8Array(0)), FormatError, "no pieces");
  assertThrows(build(good.subarray(0, 20)), FormatError, "ModelProto");
  assertThrows(build(writeSentencePiece([{ text: "" }])), FormatError, "piece 0");
  assertThrows(build(writeSentencePiece([{ text: "a", score: NaN }])), FormatError, "score");
  assertThrows(build(writeSentencePiece([{ text: "a", kind: 9 }])), FormatError, "type is 9");
  assertThrows(
    build(writeSentencePiece(CONTROL, { trainer: { 3: 3 } })),
    UnsupportedError,
    '"word"',
  );
  assertThrows(
    build(writeSentencePiece(CONTROL, { trainer: { 41: 77 } })),
    FormatError,
    "bosId is 77",
  );
  assertThrows(build(joinBytes([varint(3)])), FormatError, "field has the number 0");
  assertThrows(build(joinBytes([varint(8 | 3), varint(1)])), FormatError, "wire type 3");
  assertThrows(build(new Uint8Array(11).fill(0x88)), FormatError, "ten bytes");
  const notText = delimited(1, delimited(1, Uint8Array.of(0xff)));
  assertThrows(build(notText), FormatError, "not UTF-8");
});

Deno.test("a word of a megabyte takes linear time in either kind of model", () => {
  for (const name of ["bpe", "unigram"]) {
    const tokenizer = readModel(`tokenizers/sentencepiece/${name}.model`);
    assertLinear(name, 66_000, (size) => {
      const ids = tokenizer.encode("refractions".repeat(size / 11), PLAIN);
      assertEquals(tokenizer.decode(ids).length, size);
    });
  }
});
