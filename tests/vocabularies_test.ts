// Vocabularies of published models, read from the files that models have, against stored ids of outside
// implementations.

import { checkTokenizer, type TokenizerGolden } from "../tools/fixtures/golden_tokenizer.ts";
import { readFixture } from "./support/fixtures.ts";
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
