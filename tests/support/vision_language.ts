// The tiny models of pictures and text, whose large files are stored packed.

import { gunzipSync } from "node:zlib";
import { fixturePath } from "./fixtures.ts";

/** A copy with all files unpacked, removed when the tests of the process end. */
export function unpackedVisionLanguage(): string {
  const from = fixturePath("vision_language"), to = Deno.makeTempDirSync();
  for (const { name: folder } of Deno.readDirSync(from)) {
    Deno.mkdirSync(`${to}/${folder}`);
    for (const { name } of Deno.readDirSync(`${from}/${folder}`)) {
      const bytes = Deno.readFileSync(`${from}/${folder}/${name}`);
      const isPacked = name.endsWith(".gz"), plain = isPacked ? name.slice(0, -3) : name;
      Deno.writeFileSync(`${to}/${folder}/${plain}`, isPacked ? gunzipSync(bytes) : bytes);
    }
  }
  addEventListener("unload", () => Deno.removeSync(to, { recursive: true }));
  return to;
}
