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

Deno.test("what was fetched in place of a picture is named", async () => {
  const page = () => readPicture(bytesOf("<!DOCTYPE html><html>"), { file: "a.jpg" });
  await assertRejects(page, FormatError, "a.jpg: is an HTML page, not a picture. Fetch");
  const pointer = () => readPicture(bytesOf("version https://git-lfs.github.com/spec/v1\n"));
  await assertRejects(pointer, FormatError, "is a Git LFS pointer, not the picture");
});

Deno.test("of an animated WebP file the first picture is read, where it lies on its canvas", async () => {
  const three = (value: number) => [value & 255, value >> 8, 0], frame = webp.subarray(12);
  const animation = (canvas: readonly [number, number], place: readonly [number, number]) => {
    const size = frame.length + 16;
    const chunks = [
      ...bytesOf("VP8X\x0a\0\0\0\x02\0\0\0"),
      ...canvas.flatMap((side) => three(side - 1)),
      ...bytesOf("ANMF"),
      ...[size & 255, size >> 8, 0, 0],
      ...place.flatMap((at) => three(at / 2)),
      ...[...three(72), ...three(44), ...three(100), 0],
      ...frame,
    ];
    const length = 4 + chunks.length;
    return Uint8Array.of(
      ...bytesOf("RIFF"),
      ...[length & 255, length >> 8, 0, 0],
      ...bytesOf("WEBP"),
      ...chunks,
    );
  };
  const still = await readPicture(webp, { alpha: "keep" });
  assertEquals(await readPicture(animation([73, 45], [0, 0]), { alpha: "keep" }), still);
  const { width, height, data } = await readPicture(animation([80, 60], [4, 6]), { alpha: "keep" });
  assertEquals([width, height], [80, 60]);
  const wanted = new Uint8Array(4 * 80 * 60);
  for (let y = 0; y < 45; y++) {
    wanted.set(still.data.subarray(4 * 73 * y, 4 * 73 * (y + 1)), 4 * (80 * (y + 6) + 4));
  }
  assertEquals(data, wanted);
  const outside = () => readPicture(animation([73, 45], [2, 0]));
  await assertRejects(outside, FormatError, "outside of its canvas");
  const huge = () => readPicture(animation([16000, 16000], [0, 0]));
  await assertRejects(huge, ResourceError, "16000 × 16000");
});

Deno.test("a WebP file that is cut off is refused, with the place", async () => {
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
  await assertRejects(() => readPicture(animated), FormatError, "no picture to begin with");
  await assertRejects(() => readPicture(webp, { maxPixels: 99 }), ResourceError, "73 × 45");
});

Deno.test("files are told by their bytes, wherever these lie in memory", async () => {
  const within = Uint8Array.of(9, ...webp).subarray(1);
  const { width, height, channels } = await readPicture(within, { file: "a.png" });
  assertEquals([width, height, channels], [73, 45, 3]);
  assertEquals((await readPicture(webp, { alpha: "keep" })).channels, 4);
});
