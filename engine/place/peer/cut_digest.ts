// Whether two processes mean the same when they speak of part 3 of a model: a digest of all parts, with the names, formats
// and shapes of their weights and samples of their bytes. A peer with another model, or one that cuts otherwise, is
// told apart before any weight is loaded.

import { formatDim } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { weightsOf } from "../../run/plan_weights.ts";
import type { CutModel } from "../placed_device.ts";

const SAMPLES = 16;
const SAMPLE_BYTES = 256;

/** SHA-256 in hexadecimal. */
export async function cutDigest({ parts }: CutModel): Promise<string> {
  const shape = ({ name, dtype, shape }: Value) => [name, dtype, shape.map(formatDim)];
  const facts = parts.map(({ place, plan: { graph, limits } }) => [
    ...[place, limits],
    graph.nodes.map((
      { op, name, attributes, outputs },
    ) => [op, name, attributes, outputs.map(shape)]),
  ]);
  const tensors = parts.flatMap(({ plan }) => weightsOf(plan)).map(({ tensor }) => tensor!);
  const names = tensors.map((
    { name, format, shape, byteLength },
  ) => [name, format, shape, byteLength]);
  const text = new TextEncoder().encode(JSON.stringify([facts, names]));
  const bytes = new Uint8Array(text.length + SAMPLES * SAMPLE_BYTES);
  bytes.set(text);
  for (let sample = 0; sample < SAMPLES && tensors.length > 0; sample++) {
    const { source, offset, byteLength } = tensors[Math.floor(sample * tensors.length / SAMPLES)]!;
    const length = Math.min(SAMPLE_BYTES, byteLength), start = text.length + sample * SAMPLE_BYTES;
    const middle = offset + Math.floor((byteLength - length) / 2);
    await source.readInto(middle, bytes.subarray(start, start + length));
  }
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
}
