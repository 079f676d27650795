// Vocabularies of published models, read from the files that models have, against stored ids of outside
// implementations.

import { assert } from "@std/assert";
import { checkTokenizer, type TokenizerGolden } from "../tools/fixtures/golden_tokenizer.ts";
import {
  checkReported,
  REPORTED_VOCABULARIES,
  reportedTexts,
} from "../tools/fixtures/public_vocabularies.ts";
import { fixturePath, readFixture } from "./support/fixtures.ts";
import { testWith } from "./support/skip.ts";
import { readVocabulary, VOCABULARY_NAMES, vocabularyNeed } from "./support/vocabularies.ts";

const { strings } = JSON.parse(readFixture("golden/tokenizer-strings.json")) as {
  strings: string[];
};

for (const name of VOCABULARY_NAMES) {
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
