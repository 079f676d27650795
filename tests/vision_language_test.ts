// Models of pictures and text beside transformers. The cases are those of `deno task fixtures`, in a small copy whose large
// files are packed; llava_toy is without weights, and shows how pictures are prepared.

import { assertEquals } from "@std/assert";
import { visionLanguage } from "../tools/fixtures/vision_language.ts";
import { unpackedVisionLanguage } from "./support/vision_language.ts";

const CASES = [
  ...visionLanguage.cases(unpackedVisionLanguage(), { device: "wasm", full: false }) as Iterable<
    { readonly name: string; run?(): void | Promise<void> }
  >,
];

for (const { name, run } of CASES) {
  Deno.test(`${name} is as transformers has it`, () => run!());
}

Deno.test("all parts of the fixtures are among the cases", () => {
  const counts: Record<string, number> = {};
  for (const { name } of CASES) {
    const part = name.split("/").at(-1)!;
    counts[part] = (counts[part] ?? 0) + 1;
  }
  assertEquals(counts, { pixels: 5, prompt: 9, tower: 1, places: 3, logits: 9, whole: 9 });
});
