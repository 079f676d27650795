import { assertEquals, assertThrows } from "@std/assert";
import { decodePng, readPng } from "./png.ts";
import { writePng } from "./write_png.ts";

Deno.test("a written PNG is read as it was, with three channels and with four", () => {
  const wave = (length: number) =>
    Uint8Array.from({ length }, (_, i) => (i * i * 7 + i * 31) % 256);
  for (const [width, height] of [[1, 1], [7, 3], [64, 33]] as const) {
    const data = wave(3 * width * height);
    assertEquals(readPng(writePng({ width, height, data })), { width, height, channels: 3, data });
    const clear = { width, height, channels: 4, data: wave(4 * width * height) } as const;
    assertEquals(decodePng(writePng(clear), {}), clear);
  }
});

Deno.test("a picture whose data do not fit its sizes is not written", () => {
  for (const width of [2, 0]) {
    assertThrows(() => writePng({ width, height: 2, data: new Uint8Array(9) }), RangeError, "× 2");
  }
});
