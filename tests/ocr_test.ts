// PP-OCR's three networks on a drawn page, beside what the package that ships them makes of it.

import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { readPicture } from "../engine/formats/media/read_picture.ts";
import { loadGraph } from "../engine/onnx/running/load_graph.ts";
import { readText } from "../engine/pipelines/ocr/text_reader.ts";
import { fixturePath } from "./support/fixtures.ts";
import { modelNeed, modelPath } from "./support/models.ts";
import { testWith } from "./support/skip.ts";

interface Expected {
  readonly lines: readonly {
    readonly text: string;
    readonly score: number;
    readonly corners: readonly (readonly number[])[];
  }[];
}

testWith([modelNeed("ppocr-v4")], "a page reads as RapidOCR reads it", async () => {
  const folder = modelPath("ppocr-v4")!.replace(/[^/]+$/, "");
  const open = (name: string) => loadGraph(folder + name, { device: "wasm" });
  using detection = await open("ch_PP-OCRv4_det_infer.onnx");
  using direction = await open("ch_ppocr_mobile_v2.0_cls_infer.onnx");
  using recognition = await open("ch_PP-OCRv4_rec_infer.onnx");
  const picture = await readPicture(Deno.readFileSync(fixturePath("pictures/page.png")));
  const { lines }: Expected = JSON.parse(
    Deno.readTextFileSync(fixturePath("pictures/page.json")),
  );
  const found = await readText({ detection, direction, recognition }, picture);
  assertEquals(found.map(({ text }) => text), lines.map(({ text }) => text));
  lines.forEach(({ score, corners }, i) => {
    assertAlmostEquals(found[i]!.score, score, 0.01);
    corners.flat().forEach((value, at) => {
      assert(Math.abs(found[i]!.corners.flat()[at]! - value) <= 1, `${found[i]!.corners}`);
    });
  });
});
