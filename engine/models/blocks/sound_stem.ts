// From features of sound to the stream of an encoder: convolutions over time, each with its activation, and a learnt
// row for each position. A window has always as many frames as the positions need. Convolutions are those of planes of
// one line: a filter of three dims would be taken for a stack of matrices.

import { type Dim, formatDim, mul } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { FormatError } from "../../errors.ts";
import { SOURCE_FEATURES } from "../../run/executable.ts";
import type { ModelSpec } from "../spec.ts";
import { type BlockContext, needed, weight } from "./context.ts";

type Sound = NonNullable<NonNullable<ModelSpec["encoder"]>["sound"]>;

/** Frames of features that a position of the encoder stands for. */
export function framesPerPosition({ convolutions }: Sound): number {
  return convolutions.reduce((product, { stride }) => product * stride, 1);
}

/** Features f32[W, bands, 1, frames], an input that is made here → f32[W · positions, hidden]. */
export function soundStem(
  context: BlockContext,
  { sound, windows }: { readonly sound: Sound; readonly windows: Dim },
): Value {
  const { builder, params: { hidden }, tensors, inputs, file } = context;
  const { melBands, sourceContext } = needed(context, ["melBands", "sourceContext"]);
  const frames = sourceContext * framesPerPosition(sound);
  let x = builder.input(SOURCE_FEATURES, [windows, melBands, 1, frames], "f32");
  let channels = melBands;
  for (const [i, { kernel, stride }] of sound.convolutions.entries()) {
    if (kernel % 2 !== 1 || stride < 1) {
      throw new FormatError(`has a kernel of ${kernel} and a stride of ${stride}`, {
        ...{ file, place: `encoder.sound.convolutions[${i}]` },
      });
    }
    const role = `convolution.${i}`, pad = (kernel - 1) / 2;
    const stored = tensors.get(role, [hidden, channels, kernel]);
    const filters = builder.weight(stored.name, {
      ...stored,
      shape: [hidden, channels, 1, kernel],
    });
    const bias = weight(context, { role: `${role}_bias`, shape: [hidden] });
    x = builder.op("conv", [x, filters, bias], {
      ...{ strides: [1, stride], pads: [0, pad, 0, pad] },
    }, `sound.${role}`)[0]!;
    x = builder.op("unary", [x], { kind: sound.activation }, `sound.activation.${i}`)[0]!;
    channels = hidden;
  }
  const planes = builder.op("reshape", [x], {
    shape: [formatDim(windows), `${hidden}`, `${sourceContext}`],
  }, "sound.planes")[0]!;
  const turned = builder.op("transpose", [planes], { perm: [0, 2, 1] }, "sound.turned")[0]!;
  const rows = builder.op("reshape", [turned], {
    shape: [formatDim(mul(windows, sourceContext)), `${hidden}`],
  }, "sound.rows")[0]!;
  const table = weight(context, { role: "positions", shape: [sourceContext, hidden] });
  const learnt = builder.op("embed", [inputs.positions, table], {}, "sound.positions")[0]!;
  return builder.op("binary", [rows, learnt], { kind: "add" }, "sound.sum")[0]!;
}
