import { assert, assertEquals, assertRejects } from "@std/assert";
import { FormatError, ResourceError, UnsupportedError } from "../../errors.ts";
import { fixturePath } from "../../../tests/support/fixtures.ts";
import { decodeJpeg } from "./jpeg.ts";

const whole = Deno.readFileSync(fixturePath("pictures/decode/j420_progressive.jpg"));
const frame = whole.findIndex((byte, i) => byte === 0xff && whole[i + 1] === 0xc2);

/** The file with other bytes from a place on. */
function changed(at: number, ...bytes: readonly number[]): Uint8Array {
  const result = whole.slice();
  result.set(bytes, at);
  return result;
}

Deno.test("a picture cut off anywhere is refused with the place, and never fills up", async () => {
  for (let length = 3; length < whole.length; length += 5) {
    const bytes = whole.subarray(0, length);
    const decode = () => decodeJpeg(bytes, { file: "a.jpg" });
    const { remedy } = await assertRejects(decode, FormatError, "a.jpg, ");
    assertEquals(remedy, "The picture is damaged or cut short: fetch it again, or save it anew");
  }
});

Deno.test("pixels that libjpeg only warns of are refused", async () => {
  // The scan is emptied, its end stands where it was: libjpeg would make grey of it.
  const scan = whole.findIndex((byte, i) => byte === 0xff && whole[i + 1] === 0xda);
  const bytes = Uint8Array.of(...whole.subarray(0, scan + 16), 0xff, 0xd9);
  const error = await assertRejects(() => decodeJpeg(bytes, {}), FormatError, "damaged pixels");
  assert(/premature end/i.test(error.message), error.message);
});

Deno.test("rare kinds are refused by name, sizes by their limit", async () => {
  const refused = async (bytes: Uint8Array, words: string) => {
    await assertRejects(() => decodeJpeg(bytes, {}), UnsupportedError, words);
  };
  await refused(changed(frame + 1, 0xc9), "arithmetic JPEG is not read");
  await refused(changed(frame + 4, 12), "12-bit JPEG is not read");
  await refused(changed(frame + 9, 4), "CMYK");
  await assertRejects(() => decodeJpeg(changed(frame + 5, 0, 0), {}), FormatError, "× 0 pixels");
  const huge = changed(frame + 5, 0xff, 0xff, 0xff, 0xff);
  await assertRejects(() => decodeJpeg(huge, {}), ResourceError, "65535 × 65535");
  await assertRejects(() => decodeJpeg(whole, { maxPixels: 681 }), ResourceError, "682 pixels");
});

Deno.test("what stands behind the end is not looked at, and `location` stays as it is", async () => {
  const before = Object.getOwnPropertyDescriptor(globalThis, "location");
  const { width, height } = await decodeJpeg(Uint8Array.of(...whole, 1, 2, 3), {});
  assertEquals([width, height], [31, 22]);
  assertEquals(Object.getOwnPropertyDescriptor(globalThis, "location"), before);
});
