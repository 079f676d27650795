import { assertEquals, assertThrows } from "@std/assert";
import { crc32, deflateSync } from "node:zlib";
import { FormatError, ResourceError } from "../../errors.ts";
import { decodePng, readPng } from "./png.ts";

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
    ...word(crc32(Uint8Array.of(...new TextEncoder().encode(name), ...data))),
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
    [{ width: 1, height: 1, depth: 16, colour: GREY, rows: [[0, 7, 200]] }, [8, 8, 8]],
    [{
      ...{ width: 2, height: 1, depth: 4, colour: GREY, rows: [[0, 0x12]] },
      extra: { tRNS: [0, 2] },
    }, [17, 17, 17, 255, 255, 255]],
    [{
      ...{ width: 2, height: 1, colour: RGB, rows: [[0, 1, 2, 3, 1, 2, 4]] },
      extra: { tRNS: [0, 1, 0, 2, 0, 3] },
    }, [255, 255, 255, 1, 2, 4]],
    [{ width: 1, height: 1, colour: GREY_ALPHA, rows: [[0, 100, 0]] }, [255, 255, 255]],
    [{ width: 1, height: 1, colour: RGBA, rows: [[0, 1, 2, 3, 255]] }, [1, 2, 3]],
    [{
      ...{ width: 2, height: 1, depth: 4, colour: PALETTE, rows: [[0, 0x10]] },
      extra: { PLTE: [1, 2, 3, 4, 5, 6], tRNS: [0] },
    }, [4, 5, 6, 255, 255, 255]],
  ];
  for (const [parts, expected] of cases) assertEquals([...readPng(png(parts)).data], expected);
});

Deno.test("what is no picture or damaged is refused", () => {
  const whole: Parts = { width: 1, height: 1, colour: GREY, rows: [[0, 1]] };
  assertThrows(() => readPng(new Uint8Array(9)), FormatError, "no PNG file");
  assertThrows(() => readPng(png(whole).subarray(0, 50), "a.png"), FormatError, "cut off");
  assertThrows(() => readPng(png({ ...whole, rows: [[0]] })), FormatError, "1 bytes of pixels");
  assertThrows(() => readPng(png({ ...whole, rows: [[0, 1, 2]] })), FormatError, "more than the 2");
  assertThrows(() => readPng(png({ ...whole, rows: [[9, 1]] })), FormatError, "filter 9");
  assertThrows(() => readPng(png({ ...whole, colour: 5 })), FormatError, "colour type 5");
  assertThrows(() => readPng(png({ ...whole, colour: PALETTE })), FormatError, "no palette");
  assertThrows(() => readPng(png({ ...whole, interlace: 2 })), FormatError, "interlacing 2");
  assertThrows(() => readPng(png({ ...whole, depth: 3 })), FormatError, "with 3 bits");
  assertThrows(() => readPng(png({ ...whole, width: 2 ** 31 })), FormatError, "pixels");
});

Deno.test("the seven passes of Adam7 come to their places, empty ones take no bytes", () => {
  // Values are numbers of pixels; of 3 × 2 the passes are (0), none, none, (2), none, (1), (3 4 5).
  const rows = [[0, 0], [0, 2], [0, 1], [0, 3, 4, 5]];
  const { data } = readPng(png({ width: 3, height: 2, colour: GREY, interlace: 1, rows }));
  assertEquals([...data].filter((_, i) => i % 3 === 0), [0, 1, 2, 3, 4, 5]);
});

Deno.test("a chunk with a wrong check sum, or none at the end, is named with its place", () => {
  const bytes = png({ width: 1, height: 1, colour: GREY, rows: [[0, 1]] });
  const broken = bytes.slice();
  broken[20]! ^= 1;
  assertThrows(() => readPng(broken, "a.png"), FormatError, 'a.png, chunk "IHDR" at byte 8: ');
  const words = "no IEND chunk ends it. The picture is damaged or cut short: fetch it again";
  assertThrows(() => readPng(bytes.subarray(0, -12)), FormatError, words);
});

Deno.test("a colour that the palette lacks is refused", () => {
  const parts: Parts = { width: 1, height: 1, depth: 8, colour: PALETTE, rows: [[0, 1]] };
  const extra = { PLTE: [1, 2, 3] };
  assertThrows(() => readPng(png({ ...parts, extra })), FormatError, "has colour 1");
});

Deno.test("more pixels than allowed are refused by the header", () => {
  const parts: Parts = { width: 60000, height: 60000, colour: GREY, rows: [[0, 1]] };
  assertThrows(() => readPng(png(parts)), ResourceError, "3600000000 pixels, and 100000000");
  const small = png({ width: 2, height: 1, colour: GREY, rows: [[0, 1, 2]] });
  assertThrows(() => decodePng(small, { maxPixels: 1 }), ResourceError, "1 are the limit");
  assertEquals(decodePng(small, { maxPixels: 2 }).channels, 4);
});
