import { assertEquals } from "@std/assert";
import { exifOrientation } from "./exif.ts";
import { orient, type RgbaPicture, withAlpha } from "./picture.ts";

/** Pixels of a grey picture, whose opacity is full. */
function grey(width: number, height: number, values: readonly number[]): RgbaPicture {
  const data = Uint8Array.from(values.flatMap((value) => [value, value, value, 255]));
  return { width, height, channels: 4, data };
}

Deno.test("all eight orientations hang right: rows and columns of TIFF's table", () => {
  const stored = grey(3, 2, [1, 2, 3, 4, 5, 6]);
  const expected: readonly (readonly number[])[] = [
    [1, 2, 3, 4, 5, 6], // 1: as it is
    [3, 2, 1, 6, 5, 4], // 2: the first column is right
    [6, 5, 4, 3, 2, 1], // 3: the first row below, the first column right
    [4, 5, 6, 1, 2, 3], // 4: the first row below
    [1, 4, 2, 5, 3, 6], // 5: the first row is the left column
    [4, 1, 5, 2, 6, 3], // 6: the first row is the right column
    [6, 3, 5, 2, 4, 1], // 7: as 6, the first column below
    [3, 6, 2, 5, 1, 4], // 8: the first row is the left column, the first column below
  ];
  expected.forEach((values, i) => {
    const [width, height] = i < 4 ? [3, 2] as const : [2, 3] as const;
    assertEquals(orient(stored, i + 1), grey(width, height, values), `orientation ${i + 1}`);
  });
  assertEquals(orient(stored, 9), stored);
});

Deno.test("transparency is laid on white, dropped or kept", () => {
  const data = Uint8Array.of(10, 20, 30, 0, 10, 20, 30, 128, 10, 20, 30, 255);
  const picture: RgbaPicture = { width: 3, height: 1, channels: 4, data };
  const on = (mode: "white" | "drop" | "keep") => [...withAlpha(picture, mode).data];
  assertEquals(on("white"), [255, 255, 255, 132, 137, 142, 10, 20, 30]);
  assertEquals(on("drop"), [10, 20, 30, 10, 20, 30, 10, 20, 30]);
  assertEquals(on("keep"), [...data]);
});

Deno.test("EXIF's orientation is found in both byte orders, and broken EXIF tells none", () => {
  const little = [0x49, 0x49, 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0];
  const big = [0x4d, 0x4d, 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 8, 0, 0];
  const name = [...new TextEncoder().encode("Exif\0\0")];
  const read = (bytes: readonly number[]) => exifOrientation(Uint8Array.from(bytes));
  assertEquals([read(little), read([...name, ...little]), read(big)], [6, 6, 8]);
  assertEquals(read(little.with(18, 99)), 1, "no such orientation");
  assertEquals(read(little.with(12, 4)), 1, "no short");
  assertEquals(read(little.with(4, 255)), 1, "a directory behind the end");
  for (let length = 0; length < little.length - 3; length++) {
    assertEquals(read(little.slice(0, length)), 1, `cut off at ${length}`);
  }
});
