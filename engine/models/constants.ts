// Small tensors whose values are needed while the graph is built (rotary factors). Everything else stays
// in the file until a backend has a place for it.

import type { TensorInfo } from "../formats/source.ts";
import { getFormat } from "../../quant/mod.ts";

/** The values of a tensor as float32. */
export async function readConstant(tensor: TensorInfo): Promise<Float32Array> {
  const bytes = new Uint8Array(tensor.byteLength);
  await tensor.source.readInto(tensor.offset, bytes);
  const out = new Float32Array(tensor.shape.reduce((a, b) => a * b, 1));
  getFormat(tensor.format).decode(bytes, out);
  return out;
}
