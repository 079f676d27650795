// Loops over runs of float32, one for each function of one and of two values, from the tables in functions/: `mapRun`,
// `combineRun` and `gluRun`, and `activated` for what is in registers. A loop of its own for each function keeps the
// choice out of it, and constants in registers where they fit. Lanes that a tail lacks are read as 0 and not stored.

import { BINARY, BINARY_NAMES, BINARY_NUMBERS } from "../../functions/binary.ts";
import { FIRST_TEST } from "../../functions/record.ts";
import {
  ACTIVATION_NAMES,
  EPILOGUE_NAMES,
  UNARY,
  UNARY_NAMES,
  UNARY_NUMBERS,
} from "../../functions/unary.ts";

const NUMBERS = "const one = f32x4.splat(1), zero = f32x4.splat(0);";
/** Parameters of functions that are given none. */
const DEFAULTS = "const alpha = one, beta = zero;";

/** A function of a vector `v`, if there is one. */
interface Vectors {
  readonly test?: boolean;
  readonly simd?: string;
}

function mapFunction(name: string, { test, simd: expression }: Vectors): string {
  return [
    `function map_${name}(x: usize, y: usize, count: u32, alpha: v128, beta: v128): void {`,
    `${NUMBERS} let i: u32 = 0;`,
    ...test ? [] : [
      "for (; i + 4 <= count; i += 4, x += 16, y += 16) {",
      "const v = v128.load(x);",
      `v128.store(y, ${expression});`,
      "}",
    ],
    `for (; i < count; i += 4, x += 16, y += ${test ? 4 : 16}) {`,
    "const v = loadPart(x, count - i);",
    `${test ? "storeAnswers" : "storePart"}(y, ${expression}, count - i);`,
    "}",
    "}",
  ].join("\n");
}

/** Byte strides are 4, or 0 for a value that stays; other strides go lane by lane. */
function combineFunction(name: string, { test, simd: expression }: Vectors): string {
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
    ...test ? [] : [
      "if (sa == 4 && sb == 4) {",
      ...loop(["a", "b"]),
      "} else if (sa == 4 && sb == 0) {",
      "const still = v128.load32_splat(b);",
      ...loop(["a"]),
      "} else if (sa == 0 && sb == 4) {",
      "const still = v128.load32_splat(a);",
      ...loop(["b"]),
      "}",
    ],
    `for (; i < count; i += 4, a += sa << 2, b += sb << 2, y += ${test ? 4 : 16}) {`,
    "const v = loadStrided(a, sa, count - i), w = loadStrided(b, sb, count - i);",
    `${test ? "storeAnswers" : "storePart"}(y, ${expression}, count - i);`,
    "}",
    "}",
  ].join("\n");
}

/** Two vectors at a time, so that neither waits for its own exponential. */
function gluFunction(name: string, { simd: expression }: Vectors): string {
  return [
    `function glu_${name}(gate: usize, up: usize, y: usize, count: u32): void {`,
    NUMBERS + DEFAULTS,
    "const end = gate + 4 * (count & ~3), even = gate + 4 * (count & ~7), n = count & 3;",
    "let v: v128;",
    "for (; gate < even; gate += 32, up += 32, y += 32) {",
    `v = v128.load(gate); const a = ${expression};`,
    `v = v128.load(gate, 16); const b = ${expression};`,
    "v128.store(y, f32x4.mul(a, v128.load(up)));",
    "v128.store(y, f32x4.mul(b, v128.load(up, 16)), 16);",
    "}",
    "if (gate < end) {",
    "v = v128.load(gate);",
    `v128.store(y, f32x4.mul(${expression}, v128.load(up)));`,
    "gate += 16; up += 16; y += 16;",
    "}",
    "if (!n) return;",
    "v = loadPart(gate, n);",
    `storePart(y, f32x4.mul(${expression}, loadPart(up, n)), n);`,
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
  const maps = UNARY_NAMES.filter((name) => UNARY[name].simd);
  const combines = BINARY_NAMES.filter((name) => BINARY[name].simd);
  const numberOf = (name: typeof maps[number]) => [name, UNARY_NUMBERS[name]] as const;
  return [
    'import { erf4, gelu4, sigmoid4, tanh4, wideExp4 } from "../exp";',
    'import { log4 } from "../tensor/log";',
    'import { madd } from "../simd";',
    "import {",
    "clamp01, cos4, expm1_4, four, geluTanh4, infinite4, lane, loadPart, loadStrided, negative, power4, root4, sign4,",
    "sin4, softplus4, storeAnswers, storePart,",
    '} from "../tensor/functions";',
    `export const FIRST_TEST: u32 = ${FIRST_TEST}, GELU: u32 = ${UNARY_NUMBERS.gelu};`,
    ...maps.map((name) => mapFunction(name, UNARY[name])),
    ...combines.map((name) => combineFunction(name, BINARY[name])),
    ...ACTIVATION_NAMES.map((name) => gluFunction(name, UNARY[name])),
    dispatch(
      "mapRun(kind: u32, x: usize, y: usize, count: u32, alpha: v128, beta: v128): void",
      "map",
      maps.map(numberOf),
      "x, y, count, alpha, beta",
    ),
    dispatch(
      "combineRun(kind: u32, a: usize, b: usize, y: usize, count: u32, sa: usize, sb: usize): void",
      "combine",
      combines.map((name) => [name, BINARY_NUMBERS[name]]),
      "a, b, y, count, sa, sb",
    ),
    dispatch(
      "gluRun(kind: u32, gate: usize, up: usize, y: usize, count: u32): void",
      "glu",
      ACTIVATION_NAMES.map(numberOf),
      "gate, up, y, count",
    ),
    "/** By the number of an epilogue that is not 0; in place too. */",
    dispatch(
      "epilogueRun(kind: u32, x: usize, y: usize, count: u32): void",
      "map",
      EPILOGUE_NAMES.flatMap((name, kind) => name === "none" ? [] : [[name, kind] as const]),
      "x, y, count, f32x4.splat(1), f32x4.splat(0)",
    ),
    "/** One vector, by the number of an epilogue that is not 0. */",
    "@inline export function activated(kind: u32, v: v128): v128 {",
    NUMBERS + DEFAULTS,
    ...EPILOGUE_NAMES.map((name, kind) =>
      name === "none" ? "" : `if (kind == ${kind}) return ${UNARY[name].simd!};`
    ),
    "return v;",
    "}",
    "",
  ].join("\n");
}
