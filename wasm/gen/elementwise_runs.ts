// Loops over runs of float32, one for each function of one and of two values: `mapRun` and `combineRun`. A
// loop of its own for each function keeps the choice out of it, and constants in registers where they fit.
// Lanes that a tail lacks are read as 0 and not stored.

import { COMBINE_KINDS, MAP_KINDS } from "../opcodes_onnx.ts";

/** Function of a vector `v`; parameters are in `alpha` and `beta`. */
const MAPS: Readonly<Record<keyof typeof MAP_KINDS, string>> = {
  abs: "f32x4.abs(v)",
  neg: "f32x4.neg(v)",
  sign: "sign4(v)",
  relu: "negative(zero, v)",
  ceil: "f32x4.ceil(v)",
  floor: "f32x4.floor(v)",
  round: "f32x4.nearest(v)",
  exp: "wideExp4(v)",
  log: "log4(v)",
  sqrt: "f32x4.sqrt(v)",
  root: "root4(v)",
  reciprocal: "f32x4.div(one, v)",
  sin: "sin4(v)",
  cos: "cos4(v)",
  tanh: "tanh4(v)",
  erf: "erf4(v)",
  sigmoid: "sigmoid4(v)",
  silu: "f32x4.mul(v, sigmoid4(f32x4.mul(alpha, v)))",
  softplus: "softplus4(v)",
  hard_sigmoid: "clamp01(madd(alpha, v, beta))",
  hard_swish: "f32x4.mul(v, clamp01(madd(v, f32x4.splat(0.16666667), f32x4.splat(0.5))))",
  elu: "negative(f32x4.mul(alpha, expm1_4(v)), v)",
  leaky_relu: "negative(f32x4.mul(alpha, v), v)",
  mish: "f32x4.mul(v, tanh4(softplus4(v)))",
  gelu: "gelu4(v)",
  gelu_tanh: "geluTanh4(v)",
  softsign: "f32x4.div(v, f32x4.add(one, f32x4.abs(v)))",
  selu: "f32x4.mul(beta, negative(f32x4.mul(alpha, expm1_4(v)), v))",
  celu: "negative(f32x4.mul(alpha, expm1_4(f32x4.div(v, alpha))), v)",
  thresholded_relu: "v128.and(v, f32x4.gt(v, alpha))",
  shrink: "v128.bitselect(f32x4.add(v, beta), v128.and(f32x4.sub(v, beta), f32x4.gt(v, alpha)), " +
    "f32x4.lt(v, f32x4.neg(alpha)))",
  ...{ tan: inFloat64("tan"), asin: inFloat64("asin"), acos: inFloat64("acos") },
  ...{ atan: inFloat64("atan"), sinh: inFloat64("sinh"), cosh: inFloat64("cosh") },
  ...{ asinh: inFloat64("asinh"), acosh: inFloat64("acosh"), atanh: inFloat64("atanh") },
};

/** Lane by lane: for functions that models hardly have. */
function inFloat64(name: string): string {
  return `four(${[0, 1, 2, 3].map((i) => `NativeMath.${name}(lane(v, ${i}))`).join(", ")})`;
}

/** Function of vectors `v` and `w`. Tests are not here: their results are bytes. */
const COMBINES: Readonly<Partial<Record<keyof typeof COMBINE_KINDS, string>>> = {
  add: "f32x4.add(v, w)",
  sub: "f32x4.sub(v, w)",
  mul: "f32x4.mul(v, w)",
  div: "f32x4.div(v, w)",
  min: "f32x4.min(v, w)",
  max: "f32x4.max(v, w)",
  prelu: "negative(f32x4.mul(v, w), v)",
  pow: "power4(v, w)",
};

function mapFunction(name: string, expression: string): string {
  return [
    `function map_${name}(x: usize, y: usize, count: u32, alpha: v128, beta: v128): void {`,
    "const one = f32x4.splat(1), zero = f32x4.splat(0);",
    "let i: u32 = 0;",
    "for (; i + 4 <= count; i += 4, x += 16, y += 16) {",
    "const v = v128.load(x);",
    `v128.store(y, ${expression});`,
    "}",
    "if (i < count) {",
    "const v = loadPart(x, count - i);",
    `storePart(y, ${expression}, count - i);`,
    "}",
    "}",
  ].join("\n");
}

/** Byte strides are 4, or 0 for a value that stays; other strides go lane by lane. */
function combineFunction(name: string, expression: string): string {
  const loop = (moving: readonly string[]) => [
    "for (; i + 4 <= count; i += 4) {",
    moving.includes("a") ? "const v = v128.load(a);" : "const v = still;",
    moving.includes("b") ? "const w = v128.load(b);" : "const w = still;",
    `v128.store(y, ${expression});`,
    `y += 16; ${moving.map((side) => `${side} += 16;`).join(" ")}`,
    "}",
  ];
  return [
    `function combine_${name}(a: usize, b: usize, y: usize, count: u32, sa: usize, sb: usize): void {`,
    "let i: u32 = 0;",
    "if (sa == 4 && sb == 4) {",
    ...loop(["a", "b"]),
    "} else if (sa == 4 && sb == 0) {",
    "const still = v128.load32_splat(b);",
    ...loop(["a"]),
    "} else if (sa == 0 && sb == 4) {",
    "const still = v128.load32_splat(a);",
    ...loop(["b"]),
    "}",
    "for (; i < count; i += 4, a += sa << 2, b += sb << 2, y += 16) {",
    "const v = loadStrided(a, sa, count - i), w = loadStrided(b, sb, count - i);",
    `storePart(y, ${expression}, count - i);`,
    "}",
    "}",
  ].join("\n");
}

function dispatch(
  signature: string,
  prefix: string,
  names: readonly (readonly [name: string, kind: number])[],
  given: string,
): string {
  return [
    `export function ${signature} {`,
    "switch (kind) {",
    ...names.map(([name, kind]) => `case ${kind}: ${prefix}_${name}(${given}); return;`),
    "}",
    "unreachable();",
    "}",
  ].join("\n");
}

/** Module `generated/elementwise_runs`. */
export function elementwiseRuns(): string {
  const maps = Object.entries(MAPS), combines = Object.entries(COMBINES);
  const numbered = (entries: readonly (readonly [string, string])[], kinds: object) =>
    entries.map(([name]) => [name, (kinds as Record<string, number>)[name]!] as const);
  return [
    'import { erf4, gelu4, sigmoid4, tanh4, wideExp4 } from "../exp";',
    'import { log4 } from "../tensor/log";',
    'import { madd } from "../simd";',
    "import {",
    "clamp01, cos4, expm1_4, four, geluTanh4, lane, loadPart, loadStrided, negative, power4, root4, sign4, sin4,",
    "softplus4, storePart,",
    '} from "../tensor/functions";',
    ...maps.map(([name, expression]) => mapFunction(name, expression)),
    ...combines.map(([name, expression]) => combineFunction(name, expression)),
    dispatch(
      "mapRun(kind: u32, x: usize, y: usize, count: u32, alpha: v128, beta: v128): void",
      "map",
      numbered(maps, MAP_KINDS),
      "x, y, count, alpha, beta",
    ),
    dispatch(
      "combineRun(kind: u32, a: usize, b: usize, y: usize, count: u32, sa: usize, sb: usize): void",
      "combine",
      numbered(combines, COMBINE_KINDS),
      "a, b, y, count, sa, sb",
    ),
    "",
  ].join("\n");
}
