// Networks of the bench in their published shapes with random weights: ResNet-50 (He et al., 2016; norms folded into the
// convolutions, as exporters do), the tower of CLIP ViT-B/32 for pictures (Radford et al., 2021), and both halves of
// whisper-tiny (Radford et al., 2022): the encoder over 30 s of sound, and the decoder for one token behind others.

import { type RandomGraph, randomGraph } from "./random_graph.ts";

const FLOAT = 1, LONG = 7;

interface Convolution {
  readonly from: number;
  readonly to: number;
  readonly size: number;
  readonly stride?: number;
  readonly pad?: number;
  /** Of weights, beside what keeps the variance. */
  readonly gain?: number;
}

function convolution(
  graph: RandomGraph,
  x: string,
  { from, to, size, stride = 1, pad = (size - 1) / 2, gain = 1 }: Convolution,
): string {
  const weights = graph.random([to, from, size, size], gain * Math.sqrt(2 / (from * size * size)));
  return graph.op("Conv", [x, weights, graph.random([to], 0.1)], {
    kernel_shape: { ints: [size, size] },
    strides: { ints: [stride, stride] },
    pads: { ints: [pad, pad, pad, pad] },
  });
}

/** ResNet-50: f32[1, 3, 224, 224] → f32[1, 1000]. */
export function resNet50(): Uint8Array<ArrayBuffer> {
  const graph = randomGraph();
  const relu = (x: string) => graph.op("Relu", [x]);
  let x = relu(convolution(graph, "x", { from: 3, to: 64, size: 7, stride: 2 }));
  x = graph.op("MaxPool", [x], {
    kernel_shape: { ints: [3, 3] },
    strides: { ints: [2, 2] },
    pads: { ints: [1, 1, 1, 1] },
  });
  let from = 64;
  for (const [stage, blocks] of [3, 4, 6, 3].entries()) {
    const inner = 64 << stage, to = 4 * inner;
    for (let block = 0; block < blocks; block++) {
      const stride = stage > 0 && block === 0 ? 2 : 1;
      const skip = block === 0 ? convolution(graph, x, { from, to, size: 1, stride }) : x;
      let y = relu(convolution(graph, x, { from, to: inner, size: 1 }));
      y = relu(convolution(graph, y, { from: inner, to: inner, size: 3, stride }));
      y = convolution(graph, y, { from: inner, to, size: 1, gain: 0.3 });
      x = relu(graph.op("Add", [skip, y]));
      from = to;
    }
  }
  const pooled = graph.op("Flatten", [graph.op("GlobalAveragePool", [x])]);
  return graph.write(
    [["x", FLOAT, [1, 3, 224, 224]]],
    graph.linear(pooled, from, 1000),
    [1, 1000],
  );
}

/** A row of an encoder's stack: attention over all rows, and a feed-forward block. */
function encoderLayer(
  graph: RandomGraph,
  x: string,
  { activation, ...sizes }: {
    readonly rows: number;
    readonly hidden: number;
    readonly heads: number;
    readonly activation: (x: string) => string;
  },
): string {
  const { hidden } = sizes;
  const n = graph.norm(x, hidden);
  const head = () => graph.split(graph.linear(n, hidden, hidden), sizes);
  const y = graph.op("Add", [x, graph.attend({ q: head(), k: head(), v: head() }, sizes)]);
  const inner = activation(graph.linear(graph.norm(y, hidden), hidden, 4 * hidden));
  return graph.op("Add", [y, graph.linear(inner, 4 * hidden, hidden)]);
}

/** CLIP's tower: f32[1, 3, 224, 224] → f32[1, 512]. */
export function clipPicture(): Uint8Array<ArrayBuffer> {
  const graph = randomGraph(), hidden = 768, rows = 50;
  const patches = convolution(graph, "x", { from: 3, to: hidden, size: 32, stride: 32, pad: 0 });
  const flat = graph.op("Reshape", [patches, graph.integers(1, hidden, rows - 1)]);
  const turned = graph.op("Transpose", [flat], { perm: { ints: [0, 2, 1] } });
  const all = graph.op("Concat", [graph.random([1, 1, hidden], 1), turned], { axis: { i: 1 } });
  let x = graph.norm(graph.op("Add", [all, graph.random([1, rows, hidden], 0.1)]), hidden);
  const activation = (y: string) =>
    graph.op("Mul", [y, graph.op("Sigmoid", [graph.op("Mul", [y, graph.number(1.702)])])]);
  for (let layer = 0; layer < 12; layer++) {
    x = encoderLayer(graph, x, { rows, hidden, heads: 12, activation });
  }
  const first = graph.op("Gather", [x, graph.integers(0)], { axis: { i: 1 } });
  const row = graph.op("Reshape", [first, graph.integers(1, hidden)]);
  const vector = graph.linear(graph.norm(row, hidden), hidden, 512);
  return graph.write([["x", FLOAT, [1, 3, 224, 224]]], vector, [1, 512]);
}

const WHISPER = { hidden: 384, heads: 6, layers: 4, rows: 1500, words: 51865, mels: 80 } as const;

/** Whisper's encoder: f32[1, 80, 3000] → f32[1, 1500, 384]. */
export function whisperEncoder(): Uint8Array<ArrayBuffer> {
  const graph = randomGraph(), { hidden, heads, layers, rows, mels } = WHISPER;
  const along = (x: string, from: number, stride: number) => {
    const weights = graph.random([hidden, from, 3], Math.sqrt(2 / (3 * from)));
    const y = graph.op("Conv", [x, weights, graph.random([hidden], 0.1)], {
      kernel_shape: { ints: [3] },
      strides: { ints: [stride] },
      pads: { ints: [1, 1] },
    });
    return graph.gelu(y);
  };
  const features = along(along("features", mels, 1), hidden, 2);
  const turned = graph.op("Transpose", [features], { perm: { ints: [0, 2, 1] } });
  let x = graph.op("Add", [turned, graph.random([rows, hidden], 0.1)]);
  for (let layer = 0; layer < layers; layer++) {
    x = encoderLayer(graph, x, { rows, hidden, heads, activation: graph.gelu });
  }
  return graph.write([["features", FLOAT, [1, mels, 2 * rows]]], graph.norm(x, hidden), [
    1,
    rows,
    hidden,
  ]);
}

/**
 * Whisper's decoder for one token behind `past` others: i64[1, 1] → f32[1, 1, 51865]. Keys and values of the source are
 * constants, so that no engine has to take 18 MB of them as inputs of every step; those of the past tokens are, too.
 */
export function whisperStep(past: number): Uint8Array<ArrayBuffer> {
  const graph = randomGraph(), { hidden, heads, layers, rows, words } = WHISPER;
  const one = { rows: 1, hidden, heads }, width = hidden / heads;
  const table = graph.random([words, hidden], hidden ** -0.5);
  let x = graph.op("Add", [graph.op("Gather", [table, "token"]), graph.random([hidden], 0.1)]);
  const stored = (count: number) => graph.random([1, heads, count, width], 1);
  for (let layer = 0; layer < layers; layer++) {
    const n = graph.norm(x, hidden);
    const own = () => graph.split(graph.linear(n, hidden, hidden), one);
    const [q, k, v] = [own(), own(), own()];
    const joined = (now: string) => graph.op("Concat", [stored(past), now], { axis: { i: 2 } });
    x = graph.op("Add", [x, graph.attend({ q, k: joined(k), v: joined(v) }, one)]);
    const asked = graph.split(graph.linear(graph.norm(x, hidden), hidden, hidden), one);
    const heard = { q: asked, k: stored(rows), v: stored(rows) };
    x = graph.op("Add", [x, graph.attend(heard, one)]);
    const inner = graph.gelu(graph.linear(graph.norm(x, hidden), hidden, 4 * hidden));
    x = graph.op("Add", [x, graph.linear(inner, 4 * hidden, hidden)]);
  }
  const head = graph.op("Transpose", [table], { perm: { ints: [1, 0] } });
  const logits = graph.op("MatMul", [graph.norm(x, hidden), head]);
  return graph.write([["token", LONG, [1, 1]]], logits, [1, 1, words]);
}
