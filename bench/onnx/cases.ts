// What `deno task bench onnx` runs: graphs with inputs described as data, so that engines in other
// processes and languages make the same ones.

import { openModel } from "../../engine/models/open_model.ts";
import { pullModel } from "../../engine/formats/hub/pull.ts";
import { miniLmOnnx } from "../../tests/support/minilm_onnx.ts";
import { nbitsDecoder } from "./decoder.ts";
import type { InputRule } from "./inputs.ts";
import { clipPicture, resNet50 } from "./networks.ts";

/** A graph to measure. */
export interface GraphCase {
  readonly name: string;
  /** Path of the file; made or fetched when it is asked for. */
  model(folder: string): Promise<string>;
  readonly inputs: readonly InputRule[];
  /** `tokens/s`: runs a second; `ms`: milliseconds a run. */
  readonly unit: "ms" | "tokens/s";
  /** Of this engine. */
  readonly precision: "exact" | "fast";
  /** Least cosine of the first output to a peer's. */
  readonly cosine: number;
  /** Sizes at which multiply-adds are counted, for the share of the machine's limit; absent: not shown. */
  readonly counted?: Readonly<Record<string, number>>;
}

const TOKENS = 32;

function encoderInputs(batch: number): InputRule[] {
  const dims = [batch, TOKENS], type = "int64";
  return [
    { name: "input_ids", type, dims, fill: "ids" },
    { name: "attention_mask", type, dims, fill: "one" },
    { name: "token_type_ids", type, dims, fill: "zero" },
  ];
}

/** MiniLM in floats as an ONNX graph, made in a folder once. */
export async function floatMiniLm(folder: string): Promise<string> {
  const path = `${folder}/minilm-float.onnx`;
  return await once(path, async () => {
    const checkpoint = await openModel(await pullModel("minilm"));
    try {
      return await miniLmOnnx(checkpoint);
    } finally {
      checkpoint.close();
    }
  });
}

async function once(path: string, make: () => Promise<Uint8Array> | Uint8Array): Promise<string> {
  try {
    await Deno.stat(path);
  } catch {
    await Deno.writeFile(`${path}.part`, await make());
    await Deno.rename(`${path}.part`, path);
  }
  return path;
}

const common = { unit: "ms", precision: "exact", cosine: 0.99999 } as const;

/** All cases. */
export const GRAPH_CASES: readonly GraphCase[] = [
  ...[1, 16].flatMap((batch): GraphCase[] => [
    {
      ...common,
      name: `minilm float batch ${batch}`,
      model: floatMiniLm,
      inputs: encoderInputs(batch),
      counted: { batch, sequence: TOKENS },
    },
    {
      ...common,
      name: `minilm fast batch ${batch}`,
      model: floatMiniLm,
      inputs: encoderInputs(batch),
      precision: "fast",
      cosine: 0.999,
    },
    {
      ...common,
      name: `minilm int8 batch ${batch}`,
      model: () => pullModel("minilm-int8"),
      inputs: encoderInputs(batch),
    },
  ]),
  {
    ...common,
    name: "text detection 640×640",
    model: () => pullModel("ppocr-v4"),
    inputs: [{ name: "x", type: "float32", dims: [1, 3, 640, 640], fill: "strokes" }],
  },
  {
    ...common,
    name: "ResNet-50 224×224, random weights",
    model: (folder) => once(`${folder}/resnet50-1.onnx`, resNet50),
    inputs: [{ name: "x", type: "float32", dims: [1, 3, 224, 224], fill: "wave" }],
  },
  ...(["exact", "fast"] as const).map((precision): GraphCase => ({
    ...common,
    name: `picture through CLIP ViT-B/32 ${precision}, random weights`,
    model: (folder) => once(`${folder}/clip-picture-1.onnx`, clipPicture),
    inputs: [{ name: "x", type: "float32", dims: [1, 3, 224, 224], fill: "wave" }],
    precision,
    cosine: precision === "fast" ? 0.99 : common.cosine,
  })),
  {
    ...common,
    name: "speech chunk",
    model: () => pullModel("silero-vad"),
    inputs: [
      { name: "input", type: "float32", dims: [1, 576], fill: "wave" },
      { name: "state", type: "float32", dims: [2, 1, 128], fill: "zero" },
      { name: "sr", type: "int64", dims: [], fill: 16000 },
    ],
  },
  ...(["exact", "fast"] as const).map((precision): GraphCase => ({
    name: `decode MatMulNBits ${precision}, SmolLM2's shape`,
    model: (folder) => once(`${folder}/decoder-nbits.onnx`, () => nbitsDecoder().bytes),
    inputs: nbitsDecoder({ weights: false }).inputs,
    unit: "tokens/s",
    precision,
    cosine: 0.999,
  })),
];
