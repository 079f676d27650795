import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { compileChatTemplate, encodeChat } from "./chat_template.ts";
import { tokenizerFromJson } from "./tokenizer.ts";

const CONTENTS: readonly string[] = ["<end>", "<STOP>"];
const LETTERS: readonly string[] = Array.from("[]<>▁ acdehnopst\u00e9\ufdd0");

/** A character vocabulary behind a normalizer, with control tokens that are looked for in normalized text. */
function tokenizerOf(normalizer: unknown) {
  const vocab = Object.fromEntries(["?", ...LETTERS].map((text, id) => [text, id]));
  const added_tokens = CONTENTS.map((content, i) => ({
    id: LETTERS.length + 1 + i,
    content,
    special: true,
    normalized: true,
  }));
  const model = { type: "BPE", vocab, merges: [], unk_token: "?" };
  return tokenizerFromJson({ added_tokens, normalizer, model }, {
    tokenizerConfig: null,
    name: "toy",
  });
}

const NORMALIZERS: Readonly<Record<string, unknown>> = {
  "lower case": { type: "Lowercase" },
  "a BERT's": { type: "BertNormalizer", lowercase: true },
  "compatible forms": { type: "NFKC" },
  "a mark in front": { type: "Prepend", prepend: "▁" },
  "none": null,
};

for (const [name, normalizer] of Object.entries(NORMALIZERS)) {
  Deno.test(`no user's text becomes a control token of normalized text: ${name}`, () => {
    const tokenizer = tokenizerOf(normalizer);
    const template = compileChatTemplate("<end>{{ messages[0].content }}", "toy");
    const idsOf = (content: string) =>
      encodeChat(tokenizer, template, [{ role: "user", content }]).filter(tokenizer.isSpecial);
    const unit = fc.constantFrom(
      "<end>",
      "<END>",
      "＜end＞",
      "<stop>",
      "<",
      "e",
      "d>",
      "é",
      "\u0301",
    );
    const own = idsOf("").length;
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 8 }), (text) => {
        assertEquals(idsOf(text).length, own, text);
      }),
      { seed: 61, numRuns: 500 },
    );
  });
}

Deno.test("what was hidden from templates is encoded as if it had not been", () => {
  const tokenizer = tokenizerOf({ type: "Lowercase" });
  const template = compileChatTemplate("{{ messages[0].content }}<End>", "toy");
  const ids = encodeChat(tokenizer, template, [{ role: "user", content: "a <ENd> c" }]);
  const plain = tokenizer.encode("a <end> c", { special: false });
  assertEquals(ids, [...plain, tokenizer.idOf("<end>")]);
});
