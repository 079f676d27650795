import { assertEquals, assertThrows } from "@std/assert";
import { ResourceError } from "../errors.ts";
import type { Picture } from "../formats/media/picture.ts";
import { centerCrop } from "./crop.ts";
import { type ResizeFilter, resizePicture } from "./resize.ts";

/** A row of grey pixels. */
function row(...values: readonly number[]): Picture {
  const data = Uint8Array.from(values.flatMap((value) => [value, value, value]));
  return { width: values.length, height: 1, data };
}

const greys = ({ data }: Picture) => [...data].filter((_, i) => i % 3 === 0);

Deno.test("six pixels become four and nine by every filter, as Pillow 13.0.0 has it", () => {
  // Image.frombytes("L", (6, 1), bytes([0, 255, 10, 90, 200, 35])).resize((n, 1), filter)
  const expected: Readonly<Record<ResizeFilter, readonly (readonly number[])[]>> = {
    nearest: [[0, 10, 90, 35], [0, 255, 255, 10, 10, 90, 200, 35, 35]],
    box: [[128, 10, 145, 35], [0, 255, 255, 10, 90, 90, 200, 35, 35]],
    bilinear: [[96, 101, 118, 97], [0, 128, 214, 51, 50, 108, 182, 118, 35]],
    hamming: [[71, 78, 118, 81], [0, 128, 248, 17, 50, 93, 197, 118, 35]],
    bicubic: [[99, 101, 119, 98], [0, 134, 239, 38, 28, 110, 197, 119, 24]],
    lanczos: [[108, 102, 113, 105], [0, 141, 247, 48, 0, 123, 207, 118, 17]],
  };
  for (const [filter, [four, nine]] of Object.entries(expected)) {
    const resized = (width: number) =>
      resizePicture(row(0, 255, 10, 90, 200, 35), {
        ...{ width, height: 1, filter: filter as ResizeFilter },
      });
    assertEquals([greys(resized(4)), greys(resized(9))], [four!, nine!], filter);
  }
});

Deno.test("a size that is the picture's own gives the picture; sizes and filters are checked", () => {
  const picture = row(1, 2);
  assertEquals(resizePicture(picture, { width: 2, height: 1 }), picture);
  for (const width of [0, 1.5, NaN]) {
    assertThrows(() => resizePicture(picture, { width, height: 1 }), RangeError, "cannot be");
  }
  const filter = "cubic" as ResizeFilter;
  assertThrows(
    () => resizePicture(picture, { width: 1, height: 1, filter }),
    RangeError,
    "filter must be one of nearest, box, bilinear",
  );
});

Deno.test("the middle is cut out, and black is put around what is smaller", () => {
  assertEquals(greys(centerCrop(row(1, 2, 3, 4, 5), { width: 2, height: 1 })), [2, 3]);
  const padded = centerCrop(row(7, 8), { width: 5, height: 3 });
  assertEquals(greys(padded), [0, 0, 0, 0, 0, 0, 0, 7, 8, 0, 0, 0, 0, 0, 0]);
  assertThrows(() => resizePicture(row(3), { width: 1e9, height: 1e9 }), ResourceError, "limit");
  // Each side is within the limit, and what lies between the two is not.
  const tall = { width: 1, height: 20_000, data: new Uint8Array(60_000) };
  assertThrows(() => resizePicture(tall, { width: 20_000, height: 1 }), ResourceError, "limit");
  assertThrows(() => centerCrop("a" as never, { width: 1, height: 1 }), TypeError, "readPicture");
  assertThrows(() => centerCrop(row(1), { width: 0, height: 1 }), RangeError, "0 × 1");
});
