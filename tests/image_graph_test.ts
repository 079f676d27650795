// Graphs of pictures that stand alone, as classifiers are handed out: no config, no processor, names of their own.

import { assert, assertAlmostEquals, assertEquals, assertStringIncludes } from "@std/assert";
import { classifyImage, embedImage, loadImageGraph, writePng } from "../mod.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { withFolder } from "./support/folder.ts";
import { floats, writeOnnx } from "./support/write_onnx.ts";

/** Of one colour, so that resizing and cropping change nothing. */
const COLOUR = [200, 100, 50] as const;
const PICTURE = {
  ...{ width: 40, height: 30 },
  data: Uint8Array.from({ length: 3 * 1200 }, (_, i) => COLOUR[i % 3]!),
};
/** What torchvision's classifiers of ImageNet see of it (its weights' transforms()). */
const SEEN = [0.485, 0.456, 0.406].map((mean, i) =>
  (COLOUR[i]! / 255 - mean) / [0.229, 0.224, 0.225][i]!
);

/** Means of colours, as they are or times a matrix to so many labels, of which label 7 has the first two. */
function graphOf(labels?: number): Uint8Array {
  const weights = new Float32Array(3 * (labels ?? 0));
  if (labels) weights.set([1], 7), weights.set([1], labels + 7);
  return writeOnnx({
    nodes: [
      {
        op: "ReduceMean",
        inputs: ["data"],
        outputs: [labels ? "means" : "features"],
        attributes: { axes: { ints: [2, 3] }, keepdims: { i: 0 } },
      },
      ...labels ? [{ op: "MatMul", inputs: ["means", "w"], outputs: ["fc"] }] : [],
    ],
    inputs: [["data", 1, ["N", 3, 24, 24]]],
    outputs: [[labels ? "fc" : "features", 1, ["N", labels ?? 3]]],
    initializers: labels
      ? [{ name: "w", type: 1, dims: [3, labels], raw: floats(...weights) }]
      : [],
  }, { opsets: { "": 13 } });
}

const ON_WASM = { device: "wasm", threads: 1 } as const;
const USUAL =
  "no preprocessor_config.json beside it, so pictures are prepared as ImageNet's are: " +
  "the shorter edge 27, of that the middle 24 × 24";

Deno.test("a classifier alone is given pictures as ImageNet's are, and says so", () =>
  withFolder(async (folder) => {
    const path = `${folder}/resnet.onnx`;
    Deno.writeFileSync(path, graphOf(1000));
    using graph = await loadImageGraph(path, ON_WASM);
    assertEquals(graph.notes.length, 2);
    assertStringIncludes(graph.notes[0]!, 'takes "fc", 1000 numbers a picture, for the scores');
    assertStringIncludes(graph.notes[1]!, USUAL);
    const [labels] = await classifyImage(graph, PICTURE, { top: 2 });
    const [first, second] = labels!;
    assertEquals(first!.label, "LABEL_7");
    assertAlmostEquals(first!.logit, SEEN[0]! + SEEN[1]!, 1e-5);
    assertEquals(second!.logit, 0);

    const picture = `${folder}/picture.png`, flags = ["--device", "wasm", "--threads", "1"];
    Deno.writeFileSync(picture, writePng(PICTURE));
    const told = await troodon(["classify-image", path, picture, "--top", "1", "--json", ...flags]);
    assertEquals(told.code, 0, told.err);
    assertEquals(JSON.parse(told.out).results[0].labels[0].label, "LABEL_7");
    assertStringIncludes(told.err, `note: there is ${USUAL}`);
  }));

Deno.test("an encoder alone gives vectors, by the call and by embed", () =>
  withFolder(async (folder) => {
    const path = `${folder}/encoder.onnx`, picture = `${folder}/picture.png`;
    Deno.writeFileSync(path, graphOf());
    Deno.writeFileSync(picture, writePng(PICTURE));
    using graph = await loadImageGraph(path, ON_WASM);
    assertStringIncludes(graph.notes[0]!, 'takes "features", 3 numbers a picture, for its vector');
    const [vector] = await embedImage(graph, PICTURE, { normalize: false });
    SEEN.forEach((value, i) => assertAlmostEquals(vector![i]!, value, 1e-5));
    const args = ["embed", path, "--image", picture, "--device", "wasm", "--threads", "1"];
    const told = await troodon([...args, "--raw"]);
    assertEquals(told.code, 0, told.err);
    assertEquals(JSON.parse(told.out), [...vector!]);
    assertStringIncludes(told.err, USUAL);
    assertRefused(await troodon([...args, "--text", "a cat"]), 2, /--text does not go with/);
  }));

Deno.test("what files beside a graph say is not taken for granted", () =>
  withFolder(async (folder) => {
    const path = `${folder}/model.onnx`;
    Deno.writeFileSync(path, graphOf(9));
    const id2label = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [i, `kind ${i}`]));
    Deno.writeTextFileSync(`${folder}/config.json`, JSON.stringify({ id2label }));
    const processor = { image_processor_type: "ViTImageProcessor", size: 24 };
    Deno.writeTextFileSync(`${folder}/preprocessor_config.json`, JSON.stringify(processor));
    using graph = await loadImageGraph(path, ON_WASM);
    assertEquals(graph.notes.length, 1);
    assert(graph.notes[0]!.endsWith("for the scores of labels"));
    const [labels] = await classifyImage(graph, PICTURE, { top: 1 });
    assertEquals(labels![0]!.label, "kind 7");
    assertAlmostEquals(labels![0]!.logit, 2 * (200 / 255 + 100 / 255) - 2, 1e-5);
  }));
