// random: numbers from a seed. Element `i` depends on the seed and `i` alone, so any number of threads
// gives the same tensor, and so does any device.

import { choice, dims, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";

/** () → dtype[shape]: uniform in offset..offset + scale, or normal of that mean and deviation. */
export const random: OpRecord = defineOp({
  name: "random",
  summary: "uniform or normal numbers from a seed",
  attributes: {
    kind: choice(["uniform", "normal"]),
    shape: dims(),
    dtype: choice(["f32", "f16", "bf16", "f64"], "f32"),
    offset: number(0),
    scale: number(1),
    seed: number(0),
  },
  infer(inputs, { dtype, shape }) {
    checkInputCount(inputs, 0);
    return [{ dtype, shape: [...shape] }];
  },
  reference({ outputs: [out], attributes: { kind, offset, scale, seed } }) {
    const draw = kind === "uniform" ? uniformAt : normalAt;
    const key = seedKey(seed);
    for (let i = 0; i < out!.data.length; i++) setElement(out!, i, offset + scale * draw(key, i));
  },
  cases: () =>
    (["uniform", "normal"] as const).map((kind) => ({
      name: kind,
      inputs: [],
      attributes: { kind, shape: [5, 7], offset: 1, scale: 2, seed: 7 },
    })),
  kernels: { wasm: [], gpu: [] },
});

// Seeds are float32 in ONNX: all bits count, 0.1 and 0.2 are two seeds.
function seedKey(seed: number): number {
  const [bits] = new Uint32Array(Float32Array.of(seed).buffer);
  return mixed(bits!);
}

/** In 0..1, the 1 left out. */
function uniformAt(key: number, index: number): number {
  return mixed(key ^ mixed(index)) / 2 ** 32;
}

function normalAt(key: number, index: number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - uniformAt(key, 2 * index)));
  return radius * Math.cos(2 * Math.PI * uniformAt(key, 2 * index + 1));
}

// A bijection of 32 bits that spreads every input bit (the "lowbias32" constants).
function mixed(bits: number): number {
  let x = (bits + 0x9e3779b9) | 0;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}
