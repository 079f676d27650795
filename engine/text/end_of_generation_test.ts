import { assertEquals } from "@std/assert";
import { endOfGenerationIds } from "./end_of_generation.ts";
import { createVocabulary, TOKEN_KIND } from "./vocabulary/vocabulary.ts";

/** Texts of the ends in a vocabulary of marks and ordinary words. */
function endsOf(marks: readonly string[], words: readonly string[] = [], named: number[] = []) {
  const texts = [...marks, ...words];
  const kinds = texts.map((_, id) => id < marks.length ? TOKEN_KIND.control : TOKEN_KIND.normal);
  const found = endOfGenerationIds(createVocabulary(texts, Uint8Array.from(kinds)), named);
  return [...found].map((id) => texts[id]);
}

// Expected sets are those of llama.cpp (llama-vocab.cpp).
Deno.test("a mark ends an answer only where nothing beside it says that it closes a message", () => {
  assertEquals(endsOf(["<|user|>", "<|end|>", "<|endoftext|>"]), ["<|endoftext|>", "<|end|>"]);
  const harmony = ["<|return|>", "<|call|>", "<|end|>", "<|start|>", "<|endoftext|>"];
  assertEquals(endsOf(harmony), ["<|endoftext|>", "<|return|>", "<|call|>"]);
  assertEquals(endsOf(["<|flush|>", "<|calls|>", "<|end|>"]), ["<|flush|>", "<|calls|>"]);
  for (const lone of ["<|return|>", "<|call|>", "<|flush|>", "<|calls|>"]) {
    assertEquals(endsOf([lone, "<|end|>"]), ["<|end|>", lone]);
  }
});

Deno.test("what a file names counts too, but for a mark that closes a message", () => {
  assertEquals(endsOf(["</s>", "<|user|>"]), []);
  assertEquals(endsOf(["</s>", "<|user|>"], [], [0, 1]), ["</s>", "<|user|>"]);
  assertEquals(endsOf(["<|return|>", "<|call|>", "<|end|>"], [], [2]), ["<|return|>", "<|call|>"]);
});

Deno.test("ordinary words of such a text are no marks, and take no meaning from others", () => {
  assertEquals(endsOf([], ["<|im_end|>", "<|end|>"]), []);
  assertEquals(endsOf(["<|end|>"], ["<|return|>", "<|call|>"]), ["<|end|>"]);
});
