import { assertEquals, assertThrows } from "@std/assert";
import { readImageProcessor } from "./image_processor.ts";
import { partsOf } from "./picture_parts.ts";

const blank = (width: number, height: number) => ({
  ...{ width, height, data: new Uint8Array(3 * width * height) },
});

Deno.test("a picture of free size has transformers' size, also where a side is less than half a step", () => {
  const processor = readImageProcessor({
    image_processor_type: "Qwen2VLImageProcessor",
    size: { shortest_edge: 3136, longest_edge: 1003520 },
  });
  // smart_resize of transformers 5.24.0.
  const sizes = [
    [3, 5, 56, 84],
    [300, 13, 280, 28],
    [13, 300, 28, 280],
    [2000, 10, 812, 28],
    [640, 480, 644, 476],
    [4000, 3000, 1148, 840],
    [28, 28, 56, 56],
    [42, 70, 56, 56],
    [1, 1, 56, 56],
    [10, 9, 84, 56],
  ] as const;
  for (const [width, height, ...wanted] of sizes) {
    const { parts: [only] } = partsOf(processor, blank(width, height));
    assertEquals([only!.width, only!.height], wanted, `${width} × ${height}`);
  }
  assertThrows(() => partsOf(processor, blank(201, 1)), RangeError, "more than 200 times");
});
