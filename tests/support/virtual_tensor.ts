// What lies where in a virtual tensor, written out: what its kernels read and write is judged by it.

import type { VirtualTensor } from "../../gpu/virtual_tensor.ts";

/** Values in the order B, H, W, D, C to the order of the object, x fastest; padded channels are 0. */
export function packTensor(tensor: VirtualTensor, values: Float32Array): Float32Array<ArrayBuffer> {
  const [width, height, depth] = tensor.extent;
  const packed = new Float32Array(4 * width * height * depth);
  forEachElement(tensor, (logical, physical) => packed[physical] = values[logical]!);
  return packed;
}

/** The way back. */
export function unpackTensor(tensor: VirtualTensor, packed: Float32Array): Float32Array {
  const { b, h, w, d, c } = tensor.shape;
  const values = new Float32Array(b * h * w * d * c);
  forEachElement(tensor, (logical, physical) => values[logical] = packed[physical]!);
  return values;
}

function forEachElement(
  { shape: { b, h, w, d, c }, slices, storage, extent: [width, height] }: VirtualTensor,
  visit: (logical: number, physical: number) => void,
): void {
  let logical = 0;
  for (let ib = 0; ib < b; ib++) {
    for (let y = 0; y < h; y++) {
      for (let x = 0; x < w; x++) {
        for (let id = 0; id < d; id++) {
          for (let channel = 0; channel < c; channel++) {
            const s = channel >> 2;
            if (storage === "planes") {
              visit(logical++, (((ib * c + channel) * d + id) * h + y) * w + x);
              continue;
            }
            const [px, py, pz] = storage === "buffer"
              ? [(((id * slices + s) * h + y) * w + x) * b + ib, 0, 0]
              : storage === "texture_2d"
              ? [(x * b + ib) * d + id, y * slices + s, 0]
              : [x * b + ib, y, id * slices + s];
            visit(logical++, 4 * ((pz * height + py) * width + px) + (channel & 3));
          }
        }
      }
    }
  }
}
