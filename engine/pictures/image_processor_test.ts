import { assertEquals, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../errors.ts";
import { readImageProcessor } from "./image_processor.ts";
import { preparePictures } from "./prepare.ts";

const CLIP = { image_processor_type: "CLIPImageProcessor" };

Deno.test("what a file leaves out is as its processor has it, by every name it had", () => {
  const { resize, crop, scale, mean } = readImageProcessor({
    feature_extractor_type: "CLIPFeatureExtractor",
    size: 336,
  });
  assertEquals(resize, { size: { shortestEdge: 336 }, filter: "bicubic" });
  assertEquals([crop, scale, mean[0]], [{ width: 224, height: 224 }, 1 / 255, 0.48145466]);
  const plain = readImageProcessor({ image_processor_type: "ViTImageProcessorFast", size: 96 });
  assertEquals(plain.resize, { size: { width: 96, height: 96 }, filter: "bilinear" });
  assertEquals([plain.crop, plain.mean], [undefined, [0.5, 0.5, 0.5]]);
});

Deno.test("ConvNext cuts a border off below 384, and nothing from there on", () => {
  const read = (edge: number) =>
    readImageProcessor({
      image_processor_type: "ConvNextImageProcessor",
      size: { shortest_edge: edge },
      crop_pct: 0.875,
    });
  assertEquals(read(224).resize?.size, { shortestEdge: 256 });
  assertEquals(read(224).crop, { width: 224, height: 224 });
  assertEquals(read(384).resize?.size, { width: 384, height: 384 });
  assertEquals(read(384).crop, undefined);
});

Deno.test("steps that are switched off are left out", () => {
  const picture = { width: 2, height: 1, data: Uint8Array.of(1, 2, 3, 4, 5, 6) };
  const off = { do_resize: false, do_center_crop: false, do_rescale: false, do_normalize: false };
  const { data, dims } = preparePictures([picture], { ...CLIP, ...off });
  assertEquals([[...data], dims], [[1, 4, 2, 5, 3, 6], [1, 3, 1, 2]]);
});

Deno.test("unknown processors, sizes and wrong values are refused with their place", () => {
  const read = (fields: object) => () => readImageProcessor({ ...CLIP, ...fields }, "p.json");
  const unsupported = [
    [
      { image_processor_type: "OddImageProcessor" },
      'p.json, image_processor_type: image processor "Odd',
    ],
    [{ image_processor_type: undefined }, "without name"],
    [{ size: { longest_edge: 9 } }, "a size by longest_edge"],
    [{ do_pad: true }, "p.json, do_pad: a step that is not done"],
  ] as const;
  for (const [fields, words] of unsupported) assertThrows(read(fields), UnsupportedError, words);
  const wrong = [
    [{ size: { shortest_edge: 0 } }, "p.json, size: must be a whole number of 1 or more, not 0"],
    [{ size: "big" }, "size: must be a size"],
    [{ resample: 9 }, "resample: must be a number from 0 to 5"],
    [{ image_mean: [0] }, "image_mean: must be three numbers"],
    [{ do_resize: 1 }, "do_resize: must be true or false, not 1"],
  ] as const;
  for (const [fields, words] of wrong) assertThrows(read(fields), FormatError, words);
});

Deno.test("pictures that stay of different sizes are no tensor, and none is none", () => {
  const blank = (width: number) => ({ width, height: 1, data: new Uint8Array(3 * width) });
  const config = { ...CLIP, do_resize: false, do_center_crop: false };
  assertThrows(() => preparePictures([blank(1), blank(2)], config), RangeError, "1 × 1, 2 × 1");
  assertThrows(() => preparePictures([], config), RangeError, "no picture");
});
