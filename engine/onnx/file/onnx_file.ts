// What a model of ONNX files is to who loads it; opening one takes more (open_onnx_model.ts).

import type { WeightFile } from "../../formats/source.ts";
import type { OnnxModel } from "./model.ts";

/** A model of ONNX files. */
export interface OnnxFile extends WeightFile {
  readonly kind: "onnx";
  /** In the order in which they run. */
  readonly models: readonly OnnxModel[];
  /** What a decoder reads first: the encoder, and the graph that makes keys and values of what it gives. */
  readonly source?: { readonly encoder: OnnxModel; readonly first: OnnxModel } | undefined;
  /** Steps are of one token each: the graph was traced so, and may leave out what hides later tokens. */
  readonly oneTokenSteps: boolean;
}

/** True for a model of ONNX files. */
export function isOnnxFile(file: WeightFile): file is OnnxFile {
  return file.kind === "onnx";
}
