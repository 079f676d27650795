// Two tiles of eight weight rows times one float activation row, in the form that V8 joins to 256 bits (gen/planes.ts);
// operation for operation what gen/gemv_float.ts does. Two tiles, because each sum waits for itself: of one tile V8 would
// have two sums of 128 bits or one of 256, and the wait would be as long.
//
// What halves of a tile load one by one becomes a pair by swapping their first two rows: the words that codes are taken
// out of, and scales. Sums have them swapped, too.

import type { WeightLayout } from "../weight_layout.ts";
import { cellConstants, cellHighBits, codeVector } from "./cells.ts";
import { moreParameters, takesBlock } from "./kernel_layouts.ts";
import { behindLoop, everyOther, laneSplat, mixed, seed, spread, swappedLanes } from "./planes.ts";
import { blockHeader, cellScales, groupsOf, HALVES, hasZeros } from "./scales.ts";

/** The two tiles' own names of what is made alike of both. */
const TILES: readonly string[] = ["", "b"];

/** Statements that make a pair of vectors of rows 0..3 and 4..7, of which the first two rows change places. */
function pair(from: (h: number) => string, name: (h: number) => string): string[] {
  return HALVES.map((h) => `const ${name(h)} = ${swappedLanes(from(h), from(1 - h))};`);
}

/** Makes pairs of what is loaded for the halves of a tile. */
function pairLoads(lines: readonly string[]): string[] {
  const LOAD = /^const (\w*)([01]) = (v128\.load\(w, \d+\));$/;
  const bases = new Set(lines.flatMap((line) => LOAD.exec(line)?.[1] ?? []));
  const loads = lines.filter((line) => LOAD.test(line));
  return [
    ...loads.map((line) => line.replace(LOAD, "const $1$2of = $3;")),
    ...[...bases].flatMap((base) => pair((h) => `${base}${h}of`, (h) => `${base}${h}`)),
    ...lines.filter((line) => !LOAD.test(line)),
  ];
}

/** The scales that a column is multiplied by, as pairs whatever they were made of. */
function pairScales(layout: WeightLayout): string[] {
  const beside = hasZeros(layout) ? "z" : "m";
  return [...Array(groupsOf(layout)).keys()].flatMap((g) =>
    ["d", beside].flatMap((name) => pair((h) => `${name}${g}_${h}`, (h) => `${name}${g}pair${h}`))
  );
}

/** Whether codes are made by what V8 does not join, or of loads within other operations. */
function isMade({ bits, table }: WeightLayout): boolean {
  return table !== undefined || bits === 8;
}

function quad(layout: WeightLayout, q: number): { codes: string[]; columns: string[][] } {
  const zeros = hasZeros(layout), g = groupsOf(layout) === 2 ? q >> 2 : 0;
  const loaded = HALVES.flatMap((h) => codeVector(layout, q, h));
  const codes = isMade(layout)
    ? [...loaded, ...pair((h) => `w${q}_${h}`, (h) => `w${q}pair${h}`)]
    : pairLoads(loaded);
  const columns = [0, 1, 2, 3].map((i) =>
    HALVES.map((h) => {
      const word = isMade(layout) ? `w${q}pair${h}` : `w${q}_${h}`;
      const shifted = i ? `i32x4.shr_u(${word}, ${8 * i})` : word;
      const byte = i === 3 ? shifted : `v128.and(${shifted}, LOW_BYTE)`;
      const code = `f32x4.convert_i32x4_s(${byte})`, d = `d${g}pair${h}`;
      const value = zeros
        ? `f32x4.mul(f32x4.add(${code}, z${g}pair${h}), ${d})`
        : `madd(${code}, ${d}, m${g}pair${h})`;
      return `f${h} = madd(x${q}_${i}, ${value}, f${h});`;
    })
  );
  return { codes, columns };
}

function cell(layout: WeightLayout, header: readonly string[]): string[] {
  const scales = [
    ...header,
    ...cellScales(layout, "zero"),
    ...pairScales(layout),
    ...pairLoads(cellHighBits(layout)),
  ];
  const quads = [...Array(8).keys()].map((q) => quad(layout, q));
  const all = [...scales, ...quads.flatMap(({ codes }) => codes)];
  const names = definedIn(all);
  return [
    ...TILES.flatMap((tile) => renamed(scales.slice(header.length), names, tile)),
    ...quads.flatMap(({ codes, columns }, q) => [
      `const X${q} = v128.load(x, ${16 * q});`,
      ...TILES.flatMap((tile) => renamed(codes, names, tile)),
      // A column of both tiles before the next: each sum waits for itself.
      ...columns.flatMap((lines, i) => [
        `const x${q}_${i} = ${laneSplat(`X${q}`, i)};`,
        ...TILES.flatMap((tile) => renamed(lines, names, tile)),
      ]),
    ]),
    ...TILES.map((tile) => `w${tile} += ${layout.cellBytes};`),
    "x += 128;",
  ];
}

function definedIn(lines: readonly string[]): string[] {
  return lines.flatMap((line) =>
    line.startsWith("const")
      ? [...line.matchAll(/(?:^const|,) (\w+) = /g)].map(([, name]) => name!)
      : []
  );
}

/** The text of a tile: what it defines has names of its own. */
function renamed(lines: readonly string[], names: readonly string[], tile: string): string[] {
  if (!tile) return [...lines];
  const own = new RegExp(`\\b(w|f0|f1|${names.join("|")})\\b`, "g");
  return lines.map((line) => line.replace(own, `$1${tile}`));
}

const PARAMETERS = "w: usize, apart: usize, x: usize, columns: usize, out: usize, outApart: usize";

/** Sums as they lie, of the tiles that are taken. */
function begin(tiles: readonly string[]): string[] {
  return tiles.flatMap((tile) =>
    HALVES.map((h) => `const g${h}${tile} = v128.load(out${tile}, ${16 * h});`)
  );
}

/** Stores what `sum` says of a half of a tile. */
function end(tiles: readonly string[], sum: (h: number, tile: string) => string): string[] {
  return [
    ...tiles.flatMap((tile) => HALVES.map((h) => behindLoop(`f${h}${tile}`))),
    seed("out", tiles.map((tile) => [`f0${tile}`, `f1${tile}`] as const)),
    ...tiles.flatMap((tile) =>
      HALVES.map((h) => `v128.store(out${tile}, ${sum(h, tile)}, ${16 * h});`)
    ),
  ];
}

const ENDS = "const end = x + (columns << 2), outb = out + outApart; let wb = w + apart;";

/** The function gemv_float_joined_{kernel}, for a layout of codes. */
export function joinedGemv(layout: WeightLayout): string {
  const cells = layout.blockColumns / layout.cellColumns;
  const header = cells === 1 ? [] : blockHeader(layout, "zero");
  const names = definedIn(header);
  return [
    `function gemv_float_joined_${layout.kernel}(${PARAMETERS}${moreParameters(layout)}): void {`,
    "const flip = 0x80;",
    ...cellConstants(layout),
    "const LOW_BYTE = v128.load(LOW_BYTE_AT);",
    ENDS,
    ...begin(TILES),
    ...TILES.flatMap((tile) =>
      HALVES.map((h) => `let f${h}${tile} = ${swappedLanes(`g${h}${tile}`, `g${1 - h}${tile}`)};`)
    ),
    "while (x < end) {",
    ...(cells === 1 ? cell(layout, header) : [
      ...TILES.flatMap((tile) => renamed(header, names, tile)),
      ...TILES.map((tile) => `w${tile} += ${layout.headerBytes};`),
      takesBlock(layout)
        ? "for (const blockEnd = min(x + (block << 2), end); x < blockEnd;) {"
        : `for (const blockEnd = x + ${4 * layout.blockColumns}; x < blockEnd;) {`,
      ...cell(layout, header),
      "}",
    ]),
    "}",
    ...end(TILES, (h, tile) => swappedLanes(`f${h}${tile}`, `f${1 - h}${tile}`)),
    "}",
  ].join("\n");
}

/** The function gemv_float_{format} of one tile, or of two: as fast as any where nothing is joined. */
export function gemvHalves(format: "F16" | "BF16"): string {
  const value = (wide: string) =>
    format === "F16"
      ? `f32x4.mul(v128.and(i32x4.shl(${wide}, 13), HALF_BITS), HALF_SCALE)`
      : `i32x4.shl(${wide}, 16)`;
  const sums = (tile: string) => [
    `const h${tile} = v128.load(w${tile});`,
    ...HALVES.map((h) => {
      const wide = spread(`h${tile}`, h, "i32x4", format === "F16" ? "s" : "u");
      return `f${h}${tile} = madd(X, ${value(wide)}, f${h}${tile});`;
    }),
  ];
  const some = (tiles: readonly string[]) => [
    ...begin(tiles),
    ...tiles.flatMap((tile) => [
      `const even${tile} = ${everyOther(`g0${tile}`, `g1${tile}`, 0)};`,
      `const odd${tile} = ${everyOther(`g0${tile}`, `g1${tile}`, 1)};`,
      ...HALVES.map((h) => `let f${h}${tile} = ${mixed(`even${tile}`, `odd${tile}`, h)};`),
    ]),
    `for (; x < end; x += 4, ${tiles.map((tile) => `w${tile} += 16`).join(", ")}) {`,
    "const X = v128.load32_splat(x);",
    ...tiles.flatMap(sums),
    "}",
    ...end(tiles, (h, tile) => `f${h}${tile}`),
  ];
  return [
    `function gemv_float_${format.toLowerCase()}(${PARAMETERS}): void {`,
    "const HALF_BITS = v128.load(HALF_BITS_AT), HALF_SCALE = v128.load(HALF_SCALE_AT);",
    ENDS,
    "if (apart) {",
    ...some(TILES),
    "} else {",
    ...some([""]),
    "}",
    "}",
  ].join("\n");
}
