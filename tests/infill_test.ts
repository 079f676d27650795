// Filling in: the order in which families want the two texts, the ends, and vocabularies without marks. Expected
// orders are those of the families' model cards: Qwen2.5-Coder and StarCoder (front first), DeepSeek-Coder (a hole
// where the middle belongs), Seed-Coder and Codestral (rear first).

import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { infill, UnsupportedError } from "../mod.ts";
import { ggufInfillIds, infillTokensOf } from "../engine/text/answer/infill_tokens.ts";
import type { Tokenizer } from "../engine/text/tokenizer_types.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import { loadScripted } from "./support/scripted.ts";

/** A vocabulary that has some marks at its end. */
function withMarks(tokenizer: Tokenizer, ...marks: readonly string[]): Tokenizer {
  const first = tokenizer.vocabSize - marks.length;
  return {
    ...tokenizer,
    idOf: (text) => marks.includes(text) ? first + marks.indexOf(text) : tokenizer.idOf(text),
    isSpecial: (id) => id >= first || tokenizer.isSpecial(id),
    tokenText: (id) => marks[id - first] ?? tokenizer.tokenText(id),
  };
}

function useTokenizer(model: LoadedModel, tokenizer: Tokenizer): void {
  Object.assign(model, { runtime: { ...model.runtime, tokenizer: () => tokenizer } });
}

const ORDERS: readonly (readonly [marks: readonly string[], order: string])[] = [
  [
    ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"],
    "<|fim_prefix|> a <|fim_suffix|> b <|fim_middle|>",
  ],
  [["<fim_prefix>", "<fim_suffix>", "<fim_middle>"], "<fim_prefix> a <fim_suffix> b <fim_middle>"],
  [["▁<PRE>", "▁<SUF>", "▁<MID>"], "▁<PRE> a ▁<SUF> b ▁<MID>"],
  [
    ["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"],
    "<｜fim▁begin｜> a <｜fim▁hole｜> b <｜fim▁end｜>",
  ],
  [
    ["<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"],
    "<[fim-suffix]> b <[fim-prefix]> a <[fim-middle]>",
  ],
  [["[PREFIX]", "[SUFFIX]"], "[SUFFIX] b [PREFIX] a"],
];

Deno.test("both texts stand behind their marks, in the family's order, behind the beginning token", async () => {
  for (const [marks, order] of ORDERS) {
    using scripted = await loadScripted(["x"], { template: "x" });
    const { model } = scripted;
    const tokenizer = withMarks(model.runtime.tokenizer(), ...marks);
    useTokenizer(model, tokenizer);
    using session = model.createSession();
    const { text, finishReason } = await infill(session, { prefix: "a", suffix: "b" }).result;
    assertEquals([text.trim(), finishReason], ["x", "eos"]);
    const expected = order.split(" ").flatMap((part) =>
      marks.includes(part)
        ? [tokenizer.idOf(part)!]
        : model.runtime.tokenizer().encode(part, { addSpecial: false })
    );
    assertEquals(session.tokens.slice(0, expected.length + 1), [tokenizer.bosId!, ...expected]);
  }
});

Deno.test("a filling ends at a mark, and control tokens in the texts stay text", async () => {
  using scripted = await loadScripted(["ab"], { template: "x" });
  const { model } = scripted;
  const plain = model.runtime.tokenizer();
  const [, last] = plain.encode("ab", { addSpecial: false }).slice(-2);
  const tokenizer = withMarks(plain, ...ORDERS[0]![0]);
  // The vocabulary's `b` is a mark now, too.
  useTokenizer(model, { ...tokenizer, infillIds: { ends: [last!] } });
  using session = model.createSession();
  const { text, finishReason } = await infill(session, { prefix: "<s>", suffix: "</s>" }).result;
  assertEquals([text.trim(), finishReason], ["a", "eos"]);
  assertEquals(session.tokens.filter((id) => id === plain.eosId || id === plain.bosId).length, 1);
});

Deno.test("a GGUF file's own marks count, older names too, and ids outside the vocabulary are refused", () => {
  const keys = (entries: Record<string, number>) =>
    new Map(Object.entries(entries).map(([key, id]) => [`tokenizer.ggml.${key}`, id]));
  const options = { file: "a.gguf", vocabSize: 10 };
  assertEquals(
    ggufInfillIds(
      keys({ fim_pre_token_id: 1, prefix_token_id: 7, suffix_token_id: 2, fim_sep_token_id: 3 }),
      options,
    ),
    { prefix: 1, suffix: 2, ends: [3] },
  );
  assertEquals(ggufInfillIds(new Map(), options), undefined);
  assertThrows(() => ggufInfillIds(keys({ fim_mid_token_id: 10 }), options), Error, "from 0 to 9");
  const tokenizer = {
    idOf: () => undefined,
    infillIds: { prefix: 1, suffix: 2, middle: 3, ends: [4] },
  };
  const tokens = infillTokensOf(tokenizer as unknown as Tokenizer)!;
  assertEquals([tokens.prefix, tokens.suffix, tokens.middle, [...tokens.ends]], [1, 2, 3, [
    4,
    1,
    2,
    3,
  ]]);
});

Deno.test("a model without marks says so", async () => {
  using scripted = await loadScripted([], { template: "x" });
  const error = assertThrows(
    () => infill(scripted.model, { prefix: "a", suffix: "b" }),
    UnsupportedError,
  );
  assertMatch(error.message, /no tokens for filling in. Use a model of code/);
  assertThrows(
    () => infill(scripted.model, { prefix: "a" } as { prefix: string; suffix: string }),
    TypeError,
  );
});
