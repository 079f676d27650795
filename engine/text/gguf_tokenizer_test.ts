import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { fixturePath, readFixture } from "../../tests/support/fixtures.ts";
import { byteBpeKeys, charBpeKeys, toyTokenizer } from "../../tests/support/toy_vocabularies.ts";
import { FormatError, TroodonError, UnsupportedError } from "../errors.ts";
import { openModel } from "../models/open_model.ts";
import { type Tokenizer, tokenizerFromGguf } from "./tokenizer.ts";

interface FileCase {
  readonly file: string;
  readonly verdict: "must be read" | "refuse" | "read or refuse" | "refuse or warn" | "warn";
}

const FOLDER = "public/pc-gguf-03";
const CASES: readonly FileCase[] = JSON.parse(readFixture(`${FOLDER}/expected.json`)).cases;

async function read(file: string): Promise<Tokenizer> {
  const model = await openModel(fixturePath(`${FOLDER}/${file}`));
  try {
    return tokenizerFromGguf(model.metadata, file);
  } finally {
    model.close();
  }
}

for (const { file, verdict } of CASES) {
  Deno.test(`tokenizer keys of other writers: ${file}: ${verdict}`, async () => {
    let tokenizer: Tokenizer | undefined;
    let refusal: unknown;
    try {
      tokenizer = await read(file);
    } catch (error) {
      refusal = error;
    }
    if (refusal !== undefined) {
      assert(refusal instanceof TroodonError, String(refusal));
      assertMatch(refusal.message, new RegExp(`^${file}, tokenizer\\.ggml\\.\\w+: `));
    }
    if (verdict === "must be read" || verdict === "warn") assert(tokenizer !== undefined);
    if (verdict === "refuse") assert(refusal !== undefined);
    if (verdict === "warn") assertEquals(tokenizer?.warnings.length, 2);
    if (tokenizer !== undefined) assertMatch(tokenizer.decode(tokenizer.encode("b")), /b$/);
  });
}

Deno.test("a beginning token that the file does not name is the documented one, and is said", async () => {
  const tokenizer = await read("bos_absent.gguf");
  assertEquals(tokenizer.bosId, 1);
  assertMatch(tokenizer.warnings.join("\n"), /bos_token_id is missing; 1 \(<s>\) is taken/);
});

Deno.test("no beginning token is guessed for a byte-level vocabulary", () => {
  const { bos_token_id: _, ...keys } = byteBpeKeys();
  assertEquals(toyTokenizer({ ...keys, add_bos_token: true }).bosId, undefined);
});

Deno.test("of two tokens with the same text both decode and the first is used", async () => {
  const tokenizer = await read("tokens_duplicate.gguf");
  assertEquals(tokenizer.decode([3]), "b");
  assertEquals(tokenizer.decode([4]), "b");
  assertEquals(tokenizer.idOf("b"), 3);
});

Deno.test("several end tokens all end generation", async () => {
  const tokenizer = await read("eos_array.gguf");
  assertEquals([...tokenizer.endOfGenerationIds], [2, 4]);
});

Deno.test("a list of half a million end tokens is read like any other", () => {
  const many = new Uint32Array(500_000).fill(3), keys = charBpeKeys();
  for (const key of ["eos_token_id", "eot_token_id"]) {
    const tokenizer = toyTokenizer({ ...keys, [key]: many } as typeof keys);
    assertEquals(tokenizer.endOfGenerationIds.has(3), true, key);
  }
});

Deno.test("an unknown kind of pre-tokenizer is refused by its name", () => {
  assertThrows(
    () => toyTokenizer({ ...byteBpeKeys(), pre: "never-heard-of" }),
    UnsupportedError,
    'toy.gguf, tokenizer.ggml.pre: pre-tokenizer "never-heard-of" is not known',
  );
});

Deno.test("keys that do not fit the vocabulary are refused", () => {
  const keys = charBpeKeys();
  const types = (odd: number, id: number) => {
    const list = new Array<number>((keys.tokens as string[]).length).fill(1);
    list[id] = odd;
    return list;
  };
  const refused: [string, unknown, string][] = [
    ["tokens", "text", "must be an array of strings"],
    ["tokens", [], "the vocabulary is empty"],
    ["tokens", ["a", 1], "entry 1 is no string"],
    ["token_type", [1], "holds 1 entries for"],
    ["token_type", new Array(280).fill(9), "entry 0 is 9"],
    ["token_type", Int32Array.from(types(7, 3)), "entry 3 is 7"],
    ["token_type", Int32Array.from(types(-1, 2)), "entry 2 is -1"],
    ["token_type", Uint32Array.from(types(257, 4)), "entry 4 is 257"],
    ["scores", [0], "holds 1 scores for"],
    ["scores", 5, "must be an array of numbers"],
    ["bos_token_id", -1, "id -1 is outside"],
    ["bos_token_id", 1.5, "must be an integer"],
    ["bos_token_id", [1, 2], "names 2 ids instead of one"],
    ["eos_token_id", "x", "must be an integer"],
    ["add_bos_token", 1, "must be a boolean"],
  ];
  for (const [key, value, message] of refused) {
    const changed = { ...keys, [key]: value } as typeof keys;
    const error = assertThrows(() => toyTokenizer(changed), FormatError, message);
    assertMatch(error.message, new RegExp(`^toy\\.gguf, tokenizer\\.ggml\\.${key}: `));
  }
  const { tokens: _, ...without } = keys;
  assertThrows(() => toyTokenizer(without), FormatError, "tokens");
});

Deno.test("types are the same from a list and from a typed array, 0 being a normal token", () => {
  const keys = charBpeKeys();
  const types = (keys.tokens as string[]).map((_, id) => id % 7);
  const isSpecial = (token_type: number[] | Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>) => {
    const tokenizer = toyTokenizer({ ...keys, token_type });
    return types.map((_, id) => tokenizer.isSpecial(id));
  };
  const expected = types.map((type) => type === 2 || type === 3);
  for (const list of [types, Int32Array.from(types), Uint32Array.from(types)]) {
    assertEquals(isSpecial(list), expected);
  }
});

Deno.test("a token that ends a turn ends generation though the file does not name it", () => {
  const tokenizer = toyTokenizer(byteBpeKeys());
  const ids = ["<|im_end|>", "<|endoftext|>"].map((text) => tokenizer.idOf(text));
  assertEquals([...tokenizer.endOfGenerationIds].sort(), ids.sort());
});

Deno.test("a vocabulary without some bytes is used with a warning, and drops them", () => {
  const keys = byteBpeKeys();
  const tokens = (keys.tokens as string[]).map((text) => text === "x" ? "unreachable" : text);
  const tokenizer = toyTokenizer({ ...keys, tokens });
  assertMatch(tokenizer.warnings.join(), /no token for 1 of 256 bytes/);
  assertEquals(tokenizer.decode(tokenizer.encode("axb")), "ab");
});

Deno.test("a literal mark is a blank, also in words of blanks that were added by hand", () => {
  const keys = charBpeKeys();
  const tokens = [...keys.tokens as string[], "  "];
  const tokenizer = toyTokenizer({
    ...keys,
    add_space_prefix: false,
    tokens,
    scores: tokens.map((_, id) => -id),
    token_type: [...keys.token_type as number[], 4],
  });
  const blanks = tokenizer.idOf("  ");
  // SentencePiece 0.2.3 on a model whose piece "▁▁" is defined by the user: one id for all four.
  for (const text of ["a  a", "a▁▁a", "a ▁a", "a▁ a"]) {
    const ids = tokenizer.encode(text, { addSpecial: false });
    assertEquals(ids, [tokenizer.idOf("a"), blanks, tokenizer.idOf("a")], text);
  }
});
