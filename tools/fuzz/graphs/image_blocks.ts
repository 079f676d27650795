// What works on planes: convolutions with the sums, factors, norms and activations that stand around them,
// pools, resizing, padding.

import { activate } from "./elementwise_blocks.ts";
import { type Block, fits, like, some } from "./block.ts";
import { fixedShape, fixedSize, least, type Shape, type Size, withAxis } from "./sizes.ts";
import type { Value, Writer } from "./writer.ts";

/** A value of planes with known channels; a new input where there is none. */
function planes(g: Writer, ranks: readonly [number, number] = [3, 4]): Value {
  const found = g.pick(({ type, shape, scale }) =>
    type === g.float && shape.length >= ranks[0] && shape.length <= ranks[1] &&
    fixedSize(shape[1]!) !== undefined && fixedSize(shape[1]!)! > 0 && scale <= 64
  );
  if (found) return found;
  const sides = Array.from({ length: ranks[1] - 2 }, () => g.choose([3, 4, 5, 7, 8]));
  const shape = [g.size(), g.fixed(g.choose([1, 2, 3, 4, 8])), ...sides.map((n) => g.fixed(n))];
  const first = fits(shape) ? shape : shape.map((size, i) => i === 0 ? g.fixed(1) : size);
  return g.input({ type: g.float, shape: first, scale: 2, exact: g.chance(0.3) });
}

interface Window {
  readonly kernel: readonly number[];
  readonly strides: readonly number[];
  readonly pads: readonly number[];
  readonly dilations: readonly number[];
}

/** A window that fits on all sides of a value. */
function someWindow(g: Writer, x: Value, most = 3): Window | undefined {
  const sides = x.shape.length - 2;
  const list = (make: (i: number) => number) => Array.from({ length: sides }, (_, i) => make(i));
  const kernel = list(() => 1 + g.below(most));
  const dilations = list(() => g.chance(0.85) ? 1 : 2);
  const pads = [...list(() => g.below(2)), ...list(() => g.below(2))].map((pad, i) =>
    Math.min(pad, kernel[i % sides]! - 1)
  );
  const strides = list(() => g.chance(0.7) ? 1 : 2);
  const window = { kernel, strides, pads, dilations };
  return outputSides(x, window).every((size) => least(size) >= 1) ? window : undefined;
}

function outputSides({ shape }: Value, { kernel, strides, pads, dilations }: Window): Size[] {
  const sides = kernel.length;
  return kernel.map((size, i) =>
    shape[i + 2]!.map((side) => {
      const whole = side + pads[i]! + pads[i + sides]! - (size - 1) * dilations[i]! - 1;
      return side === 0 ? 0 : Math.floor(whole / strides[i]!) + 1;
    })
  );
}

function attributesOf({ kernel, strides, pads, dilations }: Window) {
  return {
    kernel_shape: { ints: kernel },
    strides: { ints: strides },
    pads: { ints: pads },
    dilations: { ints: dilations },
  };
}

function convolve(g: Writer, x: Value): Value | undefined {
  const window = someWindow(g, x);
  if (!window) return undefined;
  const channels = fixedSize(x.shape[1]!)!;
  const groups = g.choose([1, 1, channels, channels % 2 === 0 ? 2 : 1]);
  const filters = groups * g.choose([1, 2, 3, 4].filter((n) => n * groups <= 16).concat(1));
  const inner = channels / groups;
  const size = 1 / Math.sqrt(inner * window.kernel.reduce((a, b) => a * b, 1));
  const weight = g.random(g.float, [filters, inner, ...window.kernel], -size, size);
  const bias = g.chance(0.6) ? g.random(g.float, [filters], -1, 1) : undefined;
  const shape = [x.shape[0]!, g.fixed(filters), ...outputSides(x, window)];
  if (!fits(shape)) return undefined;
  const attributes = { ...attributesOf(window), group: { i: groups } };
  return g.one("Conv", [x, weight, bias], { ...like(x, x.scale + 1), shape }, { attributes });
}

function transposed(g: Writer, x: Value): Value | undefined {
  const window = someWindow(g, x);
  if (!window) return undefined;
  const { kernel, strides, pads, dilations } = window;
  const channels = fixedSize(x.shape[1]!)!, filters = 1 + g.below(4), sides = kernel.length;
  const weight = g.random(g.float, [channels, filters, ...kernel], -0.5, 0.5);
  const out = kernel.map((size, i) =>
    x.shape[i + 2]!.map((side) =>
      side === 0
        ? 0
        : (side - 1) * strides[i]! + (size - 1) * dilations[i]! + 1 - pads[i]! - pads[i + sides]!
    )
  );
  const shape = [x.shape[0]!, g.fixed(filters), ...out];
  if (!fits(shape) || out.some((size) => least(size) < 1)) return undefined;
  const bias = g.chance(0.5) ? g.random(g.float, [filters], -1, 1) : undefined;
  return g.one("ConvTranspose", [x, weight, bias], { ...like(x, x.scale * 2), shape }, {
    attributes: attributesOf(window),
  });
}

/** A number for each channel, or one for all, or one for each place, which no convolution can take. */
function perChannel(g: Writer, x: Value, low: number, high: number): Value {
  const channels = fixedSize(x.shape[1]!)!, ones = Array<number>(x.shape.length - 2).fill(1);
  const last = fixedSize(x.shape.at(-1)!);
  const shapes = [[channels, ...ones], [1, channels, ...ones], [], [1, 1, ...ones]];
  if (last !== undefined && g.chance(0.15)) shapes.push([last]);
  return g.random(g.float, g.choose(shapes), low, high);
}

function batchNorm(g: Writer, x: Value): Value {
  const channels = fixedSize(x.shape[1]!)!;
  const vector = (low: number, high: number) => g.random(g.float, [channels], low, high);
  const inputs = [x, vector(0.5, 1.5), vector(-1, 1), vector(-1, 1), vector(0.25, 2)];
  const attributes = some(g, { epsilon: { f: g.choose([1e-5, 1e-3, 0.1]) } });
  return g.one("BatchNormalization", inputs, like(x, x.scale * 2 + 1), { attributes });
}

/** A convolution and what stands before and behind it. */
const convolution: Block = (g) => {
  let x = planes(g);
  if (g.chance(0.2)) x = affine(g, x);
  const made = g.chance(0.8) ? convolve(g, x) : transposed(g, x);
  if (!made) return undefined;
  let y = made;
  for (let steps = g.below(4); steps > 0; steps--) {
    y = g.choose([affine, affine, batchNorm, activate])(g, y);
  }
  return y;
};

function affine(g: Writer, x: Value): Value {
  const op = g.choose(["Add", "Sub", "Mul", "Div"]);
  const constant = perChannel(g, x, op === "Div" ? 0.5 : -1, 2);
  const isTurned = g.chance(0.3) && op !== "Div";
  return g.one(op, isTurned ? [constant, x] : [x, constant], like(x, x.scale * 2 + 2));
}

const planeNorm: Block = (g) => {
  const x = planes(g);
  if (g.chance(0.4)) return batchNorm(g, x);
  if (x.shape.slice(2).some((size) => least(size) === 0)) return undefined;
  const channels = fixedSize(x.shape[1]!)!;
  const vectors = [g.random(g.float, [channels], 0.5, 1.5), g.random(g.float, [channels], -1, 1)];
  // onnxruntime computes x · scale + (bias - mean · scale), which drowns planes that are nearly even.
  const attributes = { epsilon: { f: g.choose([0.01, 0.1, 1]) } };
  if (g.opset >= 21 && g.chance(0.5)) {
    const groups = channels % 2 === 0 ? 2 : 1;
    return g.one("GroupNormalization", [x, ...vectors], like(x, 4), {
      attributes: { ...attributes, num_groups: { i: groups } },
    });
  }
  return g.one("InstanceNormalization", [x, ...vectors], like(x, 4), { attributes });
};

const pool: Block = (g) => {
  const x = planes(g);
  if (g.chance(0.25)) {
    if (x.shape.slice(2).some((size) => least(size) === 0)) return undefined;
    const shape = x.shape.map((size, i) => i < 2 ? size : g.fixed(1));
    return g.one(g.choose(["GlobalAveragePool", "GlobalMaxPool"]), [x], {
      ...like(x, x.scale),
      shape,
    });
  }
  const window = someWindow(g, x);
  if (!window) return undefined;
  const shape = [...x.shape.slice(0, 2), ...outputSides(x, window)];
  const { dilations, ...attributes } = attributesOf(window);
  // A window that sees pads alone has no maximum: -∞ here, the lowest float in onnxruntime.
  const seesPads = window.pads.some((pad, i) =>
    pad > 0 && window.dilations[i % dilations.ints.length]! > 1
  );
  const made = { ...like(x, x.scale), shape };
  if (g.chance(0.5)) {
    if (seesPads) return undefined;
    return g.one("MaxPool", [x], made, { attributes: { ...attributes, dilations } });
  }
  if (window.dilations.some((one) => one > 1)) return undefined;
  return g.one("AveragePool", [x], made, {
    attributes: { ...attributes, count_include_pad: { i: g.below(2) } },
  });
};

const MODES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"];

const resize: Block = (g) => {
  const x = planes(g, [4, 4]);
  const sides = fixedShape(x.shape.slice(2));
  if (!sides || sides.includes(0)) return undefined;
  const wanted = sides.map((side) => g.choose([side, side * 2, side * 2, side + 1, 1 + side % 3]));
  const channels = fixedSize(x.shape[1]!)!, batch = fixedSize(x.shape[0]!);
  const shape: Shape = [x.shape[0]!, x.shape[1]!, ...wanted.map((side) => g.fixed(side))];
  if (!fits(shape)) return undefined;
  const mode = g.choose(["nearest", "linear", "cubic"]);
  const attributes = {
    mode: { s: mode },
    coordinate_transformation_mode: { s: g.choose(MODES) },
    // Only these two agree wherever a coordinate lies between two elements by the last bit.
    ...mode === "nearest" && { nearest_mode: { s: g.choose(["floor", "round_prefer_floor"]) } },
  };
  const isDoubled = wanted.every((side, i) => side === 2 * sides[i]!);
  const inputs = batch !== undefined && batch > 0 && !isDoubled
    ? [x, undefined, undefined, g.longs(batch, channels, ...wanted)]
    : [x, undefined, g.constant("f32", [4], [1, 1, 2, 2])];
  if (inputs.length === 3 && !isDoubled) return undefined;
  return g.one("Resize", inputs, { ...like(x, x.scale), shape }, { attributes });
};

const blocksOfSpace: Block = (g) => {
  const x = planes(g, [4, 4]);
  const [b, , h, w] = x.shape as [Size, Size, Size, Size];
  const channels = fixedSize(x.shape[1]!)!;
  const attributes = { blocksize: { i: 2 } };
  if (channels % 4 === 0) {
    const shape = [b, g.fixed(channels / 4), h.map((n) => n * 2), w.map((n) => n * 2)];
    const mode = some(g, { mode: { s: g.choose(["DCR", "CRD"]) } });
    return g.one("DepthToSpace", [x], { ...x, shape }, { attributes: { ...attributes, ...mode } });
  }
  if ([...h, ...w].some((n) => n % 2 !== 0)) return undefined;
  const shape = [b, g.fixed(channels * 4), h.map((n) => n / 2), w.map((n) => n / 2)];
  return g.one("SpaceToDepth", [x], { ...x, shape }, { attributes });
};

const flattened: Block = (g) => {
  const x = planes(g);
  const sides = fixedShape(x.shape.slice(1));
  if (!sides) return undefined;
  const columns = sides.reduce((product, side) => product * side, 1);
  const shape = withAxis(x.shape.slice(0, 2), 1, g.fixed(columns));
  return g.one("Flatten", [x], { ...x, shape }, { attributes: some(g, { axis: { i: 1 } }) });
};

/** Blocks on planes, with how often they are wanted. */
export const imageBlocks: readonly (readonly [number, Block])[] = [
  [9, convolution],
  [2, planeNorm],
  [2, pool],
  [2, resize],
  [1, blocksOfSpace],
  [1, flattened],
];
