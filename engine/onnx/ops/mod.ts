// The table of ONNX ops: families are files beside this one, and each has one line here, in alphabetical
// order.

import type { OnnxOp } from "../derivation/op.ts";
import { attentionOps } from "./attention.ts";
import { binaryOps } from "./binary.ts";
import { castOps } from "./casts.ts";
import { contribAttentionOps } from "./contrib_attention.ts";
import { contribMatmulOps } from "./contrib_matmul.ts";
import { contribNormOps } from "./contrib_norms.ts";
import { contribQLinearOps } from "./contrib_qlinear.ts";
import { contribQuantizedOps } from "./contrib_quantized.ts";
import { controlFlowOps } from "./control_flow.ts";
import { convolutionOps } from "./convolution.ts";
import { detectionOps } from "./detection.ts";
import { einsumOps } from "./einsum.ts";
import { flexAttentionOps } from "./flex_attention.ts";
import { gatheringOps } from "./gathering.ts";
import { generatorOps } from "./generators.ts";
import { layoutOps } from "./layout.ts";
import { lossOps } from "./losses.ts";
import { matmulOps } from "./matmul.ts";
import { normalizationOps } from "./normalization.ts";
import { optionalOps } from "./optional.ts";
import { poolingOps } from "./pooling.ts";
import { quantizationOps } from "./quantization.ts";
import { randomOps } from "./random.ts";
import { recurrentOps } from "./recurrent.ts";
import { reductionOps } from "./reductions.ts";
import { reshape } from "./reshape.ts";
import { resizingOps } from "./resizing.ts";
import { selectionOps } from "./selection.ts";
import { sequenceOps } from "./sequence.ts";
import { shapeOps } from "./shapes.ts";
import { signalOps } from "./signal.ts";
import { slicingOps } from "./slicing.ts";
import { softmaxOps } from "./softmax.ts";
import { tensorScatterOps } from "./tensor_scatter.ts";
import { unaryOps } from "./unary.ts";
import { uniqueOps } from "./unique.ts";

const all: readonly OnnxOp[] = [
  ...attentionOps,
  ...binaryOps,
  ...castOps,
  ...contribAttentionOps,
  ...contribMatmulOps,
  ...contribNormOps,
  ...contribQLinearOps,
  ...contribQuantizedOps,
  ...controlFlowOps,
  ...convolutionOps,
  ...detectionOps,
  ...einsumOps,
  ...flexAttentionOps,
  ...gatheringOps,
  ...generatorOps,
  ...layoutOps,
  ...lossOps,
  ...matmulOps,
  ...normalizationOps,
  ...optionalOps,
  ...poolingOps,
  ...quantizationOps,
  ...randomOps,
  ...recurrentOps,
  ...reductionOps,
  reshape,
  ...resizingOps,
  ...selectionOps,
  ...sequenceOps,
  ...shapeOps,
  ...signalOps,
  ...slicingOps,
  ...softmaxOps,
  ...tensorScatterOps,
  ...unaryOps,
  ...uniqueOps,
];

/** Every op by `domain::name`. */
export const onnxOps: ReadonlyMap<string, OnnxOp> = new Map(
  all.map((op) => [onnxOpKey(op.domain ?? "", op.name), op]),
);

/** Key of an op in the table. */
export function onnxOpKey(domain: string, name: string): string {
  return `${domain}::${name}`;
}
