// Convolution weights, O × H × W × I, as four textures or four buffers (spec MD-5): one virtual tensor, several GPU objects.
// Texel (x, y) of texture t holds the vec4 of four outputs of one tap and of input t of a slice, x being the slice of outputs and y the tap with
// the slice of inputs. A kernel that multiplies a vec4 of inputs by a 4 × 4 block reads the same place of all four.

import { read, type VirtualTensor, virtualTensor } from "./virtual_tensor.ts";

/** Sizes of weights. */
export interface WeightShape {
  readonly o: number;
  readonly h: number;
  readonly w: number;
  readonly i: number;
}

/** Weights in four objects. */
export interface VirtualWeights {
  readonly shape: WeightShape;
  readonly outputSlices: number;
  readonly inputSlices: number;
  readonly objects: readonly VirtualTensor[];
}

/** Chooses the objects `name0` to `name3`. */
export function virtualWeights(
  name: string,
  { shape, storage = "texture_2d" }: {
    readonly shape: WeightShape;
    readonly storage?: "texture_2d" | "buffer" | undefined;
  },
): VirtualWeights {
  const outputSlices = Math.ceil(shape.o / 4), inputSlices = Math.ceil(shape.i / 4);
  const objects = Array.from(
    { length: 4 },
    (_, t) =>
      virtualTensor(
        `${name}${t}`,
        { shape: { w: outputSlices, h: shape.h * shape.w * inputSlices, c: 4 }, storage },
      ),
  );
  return { shape, outputSlices, inputSlices, objects };
}

/** The vec4 of texture `t` at a slice of outputs, a tap (y · W + x) and a slice of inputs, all u32 expressions. */
export function readWeights(
  { objects, inputSlices }: VirtualWeights,
  t: number,
  at: { readonly outputs: string; readonly tap: string; readonly inputs: string },
): string {
  const y = inputSlices === 1 ? at.tap : `(${at.tap}) * ${inputSlices}u + ${at.inputs}`;
  return read(objects[t]!, { x: at.outputs, y });
}

/** Weights in the order O, H, W, I to the texels of the four textures, x fastest. */
export function packWeights(
  { shape: { o, h, w, i }, outputSlices, inputSlices }: VirtualWeights,
  values: Float32Array,
): Float32Array<ArrayBuffer>[] {
  const texels = outputSlices * h * w * inputSlices;
  const packed = Array.from({ length: 4 }, () => new Float32Array(4 * texels));
  for (let at = 0; at < values.length; at++) {
    const input = at % i;
    const tap = Math.floor(at / i) % (h * w);
    const output = Math.floor(at / (i * h * w));
    const texel = (tap * inputSlices + (input >> 2)) * outputSlices + (output >> 2);
    packed[input & 3]![4 * texel + (output & 3)] = values[at]!;
  }
  if (values.length !== o * h * w * i) throw new RangeError(`Cannot pack ${values.length} weights`);
  return packed;
}
