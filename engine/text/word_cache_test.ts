import { assert, assertEquals } from "@std/assert";
import { rememberWords } from "./word_cache.ts";

Deno.test("a word that comes again is not encoded again, a long one always is", () => {
  const encoded: string[] = [];
  const encode = rememberWords((word) => (encoded.push(word), [word.length]));
  const long = "x".repeat(1000);
  for (const word of ["a", "a", long, long]) assertEquals(encode(word), [word.length]);
  assertEquals(encoded, ["a", long, long]);
});

Deno.test("the cache is bounded and keeps what is used", () => {
  let count = 0;
  const encode = rememberWords((word) => (count++, [word.length]));
  for (let i = 0; i < 100_000; i++) {
    encode("often");
    encode(`w${i}`);
  }
  assert(count <= 100_001, String(count));
  count = 0;
  encode("w0");
  assertEquals(count, 1, "the first words are forgotten");
});
