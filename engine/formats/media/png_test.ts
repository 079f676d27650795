import { assertEquals, assertThrows } from "@std/assert";
import { deflateSync } from "node:zlib";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { readPng } from "./png.ts";

interface Parts {
  readonly width: number;
  readonly height: number;
  readonly depth?: number;
  readonly colour: number;
  readonly interlace?: number;
  /** Rows with their filter in front. */
  readonly rows: readonly (readonly number[])[];
  readonly extra?: Readonly<Record<string, readonly number[]>>;
}

function png({ width, height, depth = 8, colour, interlace = 0, rows, extra = {} }: Parts) {
  const word = (
    value: number,
  ) => [value >>> 24, value >>> 16 & 255, value >>> 8 & 255, value & 255];
  const chunk = (name: string, data: readonly number[]) => [
    ...word(data.length),
    ...new TextEncoder().encode(name),
    ...data,
    ...word(0),
  ];
  return Uint8Array.of(
    ...[0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
    ...chunk("IHDR", [...word(width), ...word(height), depth, colour, 0, 0, interlace]),
    ...Object.entries(extra).flatMap(([name, data]) => chunk(name, data)),
    ...chunk("IDAT", [...deflateSync(Uint8Array.from(rows.flat()))]),
    ...chunk("IEND", []),
  );
}

const GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGBA = 6;

Deno.test("every filter gives back the pixels it was made from", () => {
  // Each row is 10 20 30 | 40 50 60 after filtering, written as its filter sees it.
  const rows = [
    [0, 10, 20, 30, 40, 50, 60],
    [1, 10, 20, 30, 30, 30, 30],
    [2, 0, 0, 0, 0, 0, 0],
    [3, 5, 10, 15, 15, 15, 15],
    [4, 0, 0, 0, 0, 0, 0],
  ];
  const { data } = readPng(png({ width: 2, height: 5, colour: RGB, rows }));
  for (let y = 0; y < 5; y++) {
    assertEquals([...data.subarray(6 * y, 6 * y + 6)], [10, 20, 30, 40, 50, 60], `row ${y}`);
  }
});

Deno.test("colour types and depths become red, green and blue on white", () => {
  const cases: readonly (readonly [Parts, readonly number[]])[] = [
    [{ width: 3, height: 1, depth: 1, colour: GREY, rows: [[0, 0b01000000]] }, [
      ...[0, 0, 0, 255, 255, 255, 0, 0, 0],
    ]],
    [{ width: 1, height: 1, depth: 16, colour: GREY, rows: [[0, 7, 99]] }, [7, 7, 7]],
    [{ width: 1, height: 1, colour: GREY_ALPHA, rows: [[0, 100, 0]] }, [255, 255, 255]],
    [{ width: 1, height: 1, colour: RGBA, rows: [[0, 1, 2, 3, 255]] }, [1, 2, 3]],
    [{
      ...{ width: 2, height: 1, depth: 4, colour: PALETTE, rows: [[0, 0x10]] },
      extra: { PLTE: [1, 2, 3, 4, 5, 6], tRNS: [0] },
    }, [4, 5, 6, 255, 255, 255]],
  ];
  for (const [parts, expected] of cases) assertEquals([...readPng(png(parts)).data], expected);
});

Deno.test("what is no picture, damaged or interlaced is refused", () => {
  const whole: Parts = { width: 1, height: 1, colour: GREY, rows: [[0, 1]] };
  assertThrows(() => readPng(new Uint8Array(9)), FormatError, "no PNG file");
  assertThrows(() => readPng(png(whole).subarray(0, 50), "a.png"), FormatError, "cut off");
  assertThrows(() => readPng(png({ ...whole, rows: [[0]] })), FormatError, "1 bytes of pixels");
  assertThrows(() => readPng(png({ ...whole, rows: [[0, 1, 2]] })), FormatError, "damaged");
  assertThrows(() => readPng(png({ ...whole, rows: [[9, 1]] })), FormatError, "filter 9");
  assertThrows(() => readPng(png({ ...whole, colour: 5 })), FormatError, "colour type 5");
  assertThrows(() => readPng(png({ ...whole, colour: PALETTE })), FormatError, "no palette");
  assertThrows(() => readPng(png({ ...whole, interlace: 1 })), UnsupportedError, "interlaced");
  assertThrows(() => readPng(png({ ...whole, width: 2 ** 31 })), FormatError, "pixels");
});
