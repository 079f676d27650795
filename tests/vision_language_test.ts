// Models of pictures and text beside transformers. The cases are those of `deno task fixtures`, in a small copy whose large
// files are packed; idefics3_toy and llava_toy are without weights, and show how pictures are prepared.

import { assertEquals } from "@std/assert";
import { gunzipSync } from "node:zlib";
import { visionLanguage } from "../tools/fixtures/vision_language.ts";
import { fixturePath } from "./support/fixtures.ts";

/** The copy with its files unpacked. */
function unpacked(): string {
  const from = fixturePath("vision_language"), to = Deno.makeTempDirSync();
  for (const { name: folder } of Deno.readDirSync(from)) {
    Deno.mkdirSync(`${to}/${folder}`);
    for (const { name } of Deno.readDirSync(`${from}/${folder}`)) {
      const bytes = Deno.readFileSync(`${from}/${folder}/${name}`);
      const isPacked = name.endsWith(".gz"), plain = isPacked ? name.slice(0, -3) : name;
      Deno.writeFileSync(`${to}/${folder}/${plain}`, isPacked ? gunzipSync(bytes) : bytes);
    }
  }
  return to;
}

const FOLDER = unpacked();
addEventListener("unload", () => Deno.removeSync(FOLDER, { recursive: true }));

const CASES = [
  ...visionLanguage.cases(FOLDER, { device: "wasm", full: false }) as Iterable<
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
  assertEquals(counts, { pixels: 5, prompt: 6, tower: 1, places: 3, logits: 6, whole: 6 });
});
