// Reads the text of a PNG, JPEG or WebP picture.
//
//   deno run --allow-read --allow-write --allow-env --allow-run=pip examples/ocr.ts FILE

import { loadGraph, pullModel, readPicture, readText } from "../mod.ts";

const [file] = Deno.args;
if (file === undefined) throw new TypeError("Name a PNG, JPEG or WebP file");

// One name of the catalogue, three networks in one folder.
const folder = (await pullModel("ppocr-v4")).replace(/[^/\\]+$/, "");
using detection = await loadGraph(`${folder}ch_PP-OCRv4_det_infer.onnx`);
using direction = await loadGraph(`${folder}ch_ppocr_mobile_v2.0_cls_infer.onnx`);
using recognition = await loadGraph(`${folder}ch_PP-OCRv4_rec_infer.onnx`);

const picture = await readPicture(await Deno.readFile(file), { file });
for (const { text, score } of await readText({ detection, direction, recognition }, picture)) {
  console.log(`${score.toFixed(3)}  ${text}`);
}
