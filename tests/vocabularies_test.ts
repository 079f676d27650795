// Vocabularies of published models, read from the files that models have, against stored ids of outside
// implementations.

import { assert, assertEquals } from "@std/assert";
import { checkTokenizer, type TokenizerGolden } from "../tools/fixtures/golden_tokenizer.ts";
import {
  checkReported,
  REPORTED_VOCABULARIES,
  reportedTexts,
} from "../tools/fixtures/public_vocabularies.ts";
import { openModel } from "../engine/models/open_model.ts";
import { readTextParts } from "../engine/text/text_parts.ts";
import type { Tokenizer } from "../engine/text/tokenizer.ts";
import { readReal, REAL_NAMES, realNeed } from "../tools/fuzz/beside/real_vocabularies.ts";
import { fixturePath, readFixture } from "./support/fixtures.ts";
import { modelPath } from "./support/models.ts";
import { testWith } from "./support/skip.ts";
import { readVocabulary, VOCABULARY_NAMES, vocabularyNeed } from "./support/vocabularies.ts";

const { strings } = JSON.parse(readFixture("golden/tokenizer-strings.json")) as {
  strings: string[];
};

const STORED = new Set([...Deno.readDirSync(fixturePath("golden"))].map(({ name }) => name));

for (const name of VOCABULARY_NAMES) {
  // Of others the public reports have ids.
  if (!STORED.has(`tokenizer-${name}.json`)) continue;
  testWith([vocabularyNeed(name)], `the ${name} vocabulary gives the stored ids`, () => {
    const golden = JSON.parse(readFixture(`golden/tokenizer-${name}.json`)) as TokenizerGolden;
    checkTokenizer(readVocabulary(name), strings, golden);
  });
}

const REPORTED = reportedTexts(fixturePath("public/pc-tok-04/expected.json"));

for (const [vocabulary, name] of Object.entries(REPORTED_VOCABULARIES)) {
  testWith([vocabularyNeed(name)], `texts of public reports get the ids of ${vocabulary}`, () => {
    const texts = REPORTED.filter((one) => one.vocabulary === vocabulary);
    assert(texts.length > 0);
    checkReported(readVocabulary(name), texts);
  });
}

const ODD: { texts: readonly string[]; ids: Readonly<Record<string, readonly string[]>> } = JSON
  .parse(readFixture("tokenizers/odd_texts.json"));

/** Vocabularies in GGUF files, which are read without what their references need. */
const GGUF_MODELS: ReadonlyMap<string, string> = new Map([
  ["smollm2", "smollm2-135m"],
  ["gemma3", "gemma3-270m"],
]);

async function readTokenizer(name: string): Promise<Tokenizer> {
  const model = GGUF_MODELS.get(name);
  if (model === undefined) return (await readReal(name)).tokenizer;
  const file = await openModel(modelPath(model)!);
  try {
    return (await readTextParts(file)).tokenizer();
  } finally {
    file.close();
  }
}

/** Of the references only Hugging Face's looks for control tokens in any text. */
const FINDS_CONTROL = ["clip", "minilm", "smollm2"];

for (const name of REAL_NAMES) {
  testWith([realNeed(name)], `marks, NUL and joined emoji get the ids of ${name}`, async () => {
    const tokenizer = await readTokenizer(name);
    const special = FINDS_CONTROL.includes(name);
    ODD.texts.forEach((text, i) => {
      const ids = tokenizer.encode(text, { special, addSpecial: false }).join(" ");
      assertEquals(ids, ODD.ids[name]![i], JSON.stringify(text));
    });
  });
}
