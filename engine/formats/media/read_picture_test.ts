import { assertEquals, assertRejects } from "@std/assert";
import { FormatError, ResourceError, UnsupportedError } from "../../errors.ts";
import { fixturePath } from "../../../tests/support/fixtures.ts";
import { readPicture } from "./read_picture.ts";

const bytesOf = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));
const webp = Deno.readFileSync(fixturePath("pictures/inputs/glyphs.webp"));

Deno.test("other kinds of pictures are named, and what is none shows its first bytes", async () => {
  const kinds: Readonly<Record<string, string>> = {
    "GIF89a": "GIF pictures are not read",
    "BM\x46\0\0\0\0\0\0\0": "BMP pictures",
    "II*\0": "TIFF pictures",
    "\0\0\0\x1cftypavif": "AVIF or HEIC pictures",
    '<?xml version="1.0"?><svg': "SVG pictures",
  };
  for (const [text, words] of Object.entries(kinds)) {
    const read = () => readPicture(bytesOf(text), { file: "a.jpg" });
    await assertRejects(read, UnsupportedError, words);
  }
  await assertRejects(() => readPicture(new Uint8Array()), FormatError, "is empty. Give another");
  const text = () => readPicture(bytesOf("hello"));
  await assertRejects(text, FormatError, "with 68 65 6c 6c 6f. Save it as PNG");
});

Deno.test("a WebP file that is cut off or animated is refused, with the place", async () => {
  for (let length = 13; length < webp.length; length += 7) {
    const read = () => readPicture(webp.subarray(0, length), { file: "a.webp" });
    const { remedy } = await assertRejects(read, FormatError, "a.webp, RIFF: is cut off");
    assertEquals(remedy?.includes("fetch it again"), true);
  }
  const long = webp.slice();
  long[16]! += 100;
  await assertRejects(() => readPicture(long), FormatError, 'chunk "VP8 " at byte 12');
  const none = webp.slice();
  none.set(bytesOf("JUNK"), 12);
  await assertRejects(() => readPicture(none), FormatError, "no chunk of pixels");
  const animated = Uint8Array.of(...bytesOf("RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x02"), ...Array(9));
  await assertRejects(() => readPicture(animated), UnsupportedError, "animated WebP");
  await assertRejects(() => readPicture(webp, { maxPixels: 99 }), ResourceError, "73 × 45");
});

Deno.test("files are told by their bytes, wherever these lie in memory", async () => {
  const within = Uint8Array.of(9, ...webp).subarray(1);
  const { width, height, channels } = await readPicture(within, { file: "a.png" });
  assertEquals([width, height, channels], [73, 45, 3]);
  assertEquals((await readPicture(webp, { alpha: "keep" })).channels, 4);
});
