// One activation row times one tile of eight weight rows, for every format and way to multiply.
//   for each cell of 32 columns, for each group g with its own scale:
//     y += d_g · (s · Σ code · q) + m_g · (s · Σ q)
// where s, q are the activations' scale and codes; s · Σ q stands ready in the q8 row
// (quant/q8_activation.ts). The order of float operations is that of the register tiles (tiles.ts), so a
// row gives the same bits alone and in a batch.
//
// Measured on one core of a Zen 3 (reading alone 18.7 GB/s; weights out of memory, in cache in brackets):
// Q4_1 13.3 (17.4), Q8_0 14.5 (22.3), Q5_0 11.0 (12.2), Q6_K 10.7 (11.5) GB/s. Tried and not kept: two tiles
// at once (two streams halve what the prefetcher brings: 8.4), touching memory 256 to 4,096 bytes ahead
// (a plain load holds up the reorder buffer like the one it runs ahead of: 8 to 13), a burst of touches
// for the next tile (6), sixteen rows in one stream (one reading of x for twice the weights: no change), a row's
// positive and negative parts made once for all tiles (8-bit codes 2 % faster in cache, IQ4 8 %, no change out of
// memory). Activations splatted as they are loaded, instead of shuffled: 0 to 9 %, most where codes take most work.
//
// On a Xeon with VNNI (style dot, a Sapphire Rapids whose cores read 12 GB/s out of memory by one load a line) the
// scheduler is what is full: 40 operations a line wait for it, so 6 to 10 lines are under way where the processor
// could have 16 and more. Loads ahead do not help, because they hold up the reorder buffer. A store does not: it is
// retired before its line comes, and fetches it. So a cell has bytes that mean nothing (`spareBytes`), and
// while a cell is read one of them is written in the cell 4 to 8 KiB ahead, in tiles that this thread will read.
// Time of a GEMV out of memory without ÷ with, the longer cells counted in, in turns: Q4_1 1.20 to 1.34 with one and
// two threads, Q8_0 1.14 to 1.17; with 8 bytes a cell, and 8, 12 and 16 threads of a larger Xeon, Q4_1 1.16, 1.14, 1.03
// to 1.05, Q8_0 with 16 1.06 to 1.10; weights in a cache 0.96 to 1.01. Written once in 512 bytes 1.07 to 1.11, once a page 1.08 to 1.13
// (that is the page's address alone), in every line as much as in every cell; 2 KiB ahead 1.14 where 4, 8 and 16 KiB
// give 1.36. One spare byte makes codes cross lines: 0.6; 8 bytes instead of 4: up to 1.05 more for Q4_1, less for
// Q8_0. Decoding in turns, two threads, with ÷ without: SmolLM2 Q4_1 1.30 and 1.37 (0.76 and 0.85 of llama.cpp), Gemma 3
// 270M Q4_K_M 1.16 and 1.23 (0.98 and 1.00). Style pair, forced on a
// Xeon of that kind, whole decoding of SmolLM2's shape in Q4_0, with ÷ without: two threads 1.28, 1.30, 1.30, one thread 1.85;
// forced on the Zen 5 below, where trials say no, 0.98 to 0.99: the store that goes nowhere.
//
// The same for formats that fewer weights have, share of a plain read without → with, 4096 × 4096, two threads: Q8_B32T1
// 0.80 → 0.91, LF8 0.77 → 0.90, Q8_GL 0.76 → 0.83, NB4 0.76 → 0.90, IQ4_NL 0.65 → 0.76, IQ4_XS 0.61 → 0.71, MXFP4 0.66 →
// 0.72, NVFP4 0.57 → 0.62, Q4_B16 0.59 → 0.64; Q6_B64, Q5_B64 and Q3_K gained nothing.
//
// On a Zen 5 with VNNI (cores that read 36 GB/s alone, 48 together) the same stores cost: out of memory, two threads, with
// ÷ without: Q4_1 0.90 to 0.92, Q4_0 0.94, Q8_0 and Q4_K 0.98 to 0.99, one thread Q4_1 0.92 to 0.95, wherever between 1 and
// 16 KiB ahead they go; whole decoding, SmolLM2 0.845, Gemma 0.917. So threads try (fetch_trial.ts): there SmolLM2 1.17 and
// Gemma 1.07 times as fast as with stores always, 1.18 and 1.09 without any.
//
// What limits this kernel on that Xeon when its line has come: ports. A cell of Q4_1 is 141 operations, 70 of them
// of vectors: 25 cycles. The checks of bounds that V8 makes of 24 loads are 43 operations, and cost nothing
// (`deno run --v8-flags=--no-wasm-bounds-checks`, no difference). With `--experimental-wasm-revectorize` beside that
// flag V8 joins the two halves of a tile to 256 bits: 32 GB/s in a cache instead of 19, 7.7 out of memory instead of
// 6.3. Both are flags of the process, the first is unsafe, and checks between two loads keep V8 from joining them.
// Not kept there: touches by loads 0.5 to 8 KiB ahead (0.78 to 0.97), a burst of touches for this tile or the next
// (0.76 to 1.07), activations loaded as vectors and shuffled (0.93 in a cache, 1.0 out of memory), two tiles in one
// stream (1.07 in a cache, 1.04 to 1.1 out of memory, nothing beside stores), high nibbles unshifted (1.01 to 1.03,
// right only where the dot takes bytes as unsigned).

import { factorBits, type WeightLayout } from "../weight_layout.ts";
import {
  addsMinima,
  cellConstants,
  cellEpilogue,
  cellHighBits,
  codeVector,
  quadOrder,
} from "./cells.ts";
import { dotsOf, type DotStyle, NOTHING, signParts } from "./dots.ts";
import { gemvTernary } from "./gemv_ternary.ts";
import { simdImports } from "./imports.ts";
import {
  CODE_LAYOUTS,
  KERNEL_LAYOUTS,
  moreArguments,
  moreParameters,
  takesBlock,
  TERNARY,
} from "./kernel_layouts.ts";
import { blockHeader, cellScales, groupsOf, HALVES, hasSigns } from "./scales.ts";

/** Whether a kernel fetches cells ahead of time. */
function fetches({ spareBytes }: WeightLayout, style: DotStyle): boolean {
  return style !== "plain" && spareBytes > 0;
}

/** At the start of a cell: fetches one that is far ahead, or, `mask` 0, touches a byte of this thread. */
const FETCH = "store<u8>((w & mask) + spare, 0);";

/** Whether a kernel reads codes of 8 bit as signed. */
function isRaw(layout: WeightLayout, style: DotStyle): boolean {
  return style === "pair" && factorBits(layout) === 8;
}

/** A cell whose codes have one scale above zero and one below. */
function signedCell(layout: WeightLayout, style: DotStyle): string[] {
  const dots = dotsOf(style, factorBits(layout));
  const lines: string[] = fetches(layout, style) ? [FETCH] : [];
  for (const q of quadOrder(layout)) {
    lines.push(`const x${q} = v128.load32_splat(x, ${4 * q});`, ...dots.operand(`x${q}`));
    for (const h of HALVES) {
      lines.push(...codeVector(layout, q, h), ...signParts(`${q}_${h}`));
      lines.push(...dots.add(`c${h}`, `x${q}`, `p${q}_${h}`, q, 8));
      lines.push(...dots.add(`b${h}`, `x${q}`, `n${q}_${h}`, q, 8));
    }
  }
  lines.push("const s = v128.load32_splat(scale);");
  for (const h of HALVES) {
    lines.push(`f${h} = madd(f32x4.mul(f32x4.convert_i32x4_s(c${h}), s), d0_${h}, f${h});`);
    lines.push(`f${h} = madd(f32x4.mul(f32x4.convert_i32x4_s(b${h}), s), m0_${h}, f${h});`);
  }
  return [...lines, `w += ${layout.cellBytes}; x += 32; scale += 4;`];
}

function cell(layout: WeightLayout, style: DotStyle): string[] {
  if (hasSigns(layout)) return signedCell(layout, style);
  const raw = isRaw(layout, style);
  const dots = dotsOf(style, factorBits(layout));
  const groups = groupsOf(layout);
  const steps = 8 / groups;
  const done = new Array<number>(groups).fill(0);
  const lines = [...fetches(layout, style) ? [FETCH] : [], ...cellHighBits(layout)];
  for (const q of quadOrder(layout)) {
    lines.push(`const x${q} = v128.load32_splat(x, ${4 * q});`, ...dots.operand(`x${q}`));
    const g = groups === 2 ? q >> 2 : 0;
    for (const h of HALVES) {
      lines.push(...codeVector(layout, q, h, raw));
      lines.push(...dots.add(`c${g}_${h}`, `x${q}`, `w${q}_${h}`, done[g]!, steps));
    }
    done[g]!++;
  }
  lines.push(...cellScales(layout, "minimum"), ...cellEpilogue(layout, addsMinima(layout, raw)));
  lines.push(`w += ${layout.cellBytes}; x += 32; scale += 4; sum += 4; halfSum += 4;`);
  return lines;
}

/** A whole row: cells, or blocks of cells under a header. */
function row(layout: WeightLayout, style: DotStyle): string[] {
  const cells = layout.blockColumns / layout.cellColumns;
  if (cells === 1) return cell(layout, style);
  return [
    ...blockHeader(layout, "minimum"),
    `w += ${layout.headerBytes};`,
    takesBlock(layout)
      ? "const blockEnd = min(scale + (block >> 3), end);"
      : `const blockEnd = scale + ${4 * cells};`,
    "do {",
    ...cell(layout, style),
    "} while (scale < blockEnd);",
  ];
}

function gemv(layout: WeightLayout, style: DotStyle): string {
  return [
    `/** Eight outputs of ${layout.kernel} weights; \`flip\` is for 8-bit codes, see matmul/q8.ts. */`,
    `export function gemv_${style}_${layout.kernel}` +
    `(w: usize, x: usize, columns: usize, out: usize, flip: i32${moreParameters(layout)}` +
    `${fetches(layout, style) ? ", mask: usize, ahead: usize" : ""}): void {`,
    ...fetches(layout, style)
      ? [`const spare = mask ? ahead + ${layout.cellBytes - 1} : ahead;`]
      : [],
    ...cellConstants(layout, isRaw(layout, style)),
    ...dotsOf(style, factorBits(layout)).constants,
    ...hasSigns(layout) ? [NOTHING] : [],
    "let scale = x + columns, sum = scale + (columns >> 3), halfSum = sum + (columns >> 3);",
    "const end = sum;",
    "let f0 = f32x4.splat(0), f1 = f32x4.splat(0);",
    "do {",
    ...row(layout, style),
    "} while (scale < end);",
    "v128.store(out, f0);",
    "v128.store(out, f1, 16);",
    "}",
  ].join("\n");
}

function dispatch(style: DotStyle): string {
  return [
    `/** Calls the kernel of a layout. */`,
    `export function gemv_${style}` +
    "(layout: u32, w: usize, x: usize, columns: usize, out: usize, flip: i32" +
    `${style === "plain" ? "" : ", mask: usize, ahead: usize"}): void {`,
    "  switch (layout) {",
    ...CODE_LAYOUTS.filter(({ points }) => !points).map((layout) =>
      `    case ${layout.id}: gemv_${style}_${layout.kernel}` +
      `(w, x, columns, out, flip${moreArguments(layout)}` +
      `${fetches(layout, style) ? ", mask, ahead" : ""}); return;`
    ),
    "  }",
    "  unreachable();",
    "}",
  ].join("\n");
}

/** Module `generated/gemv_{style}`. */
export function gemvModule(style: DotStyle): string {
  return [
    simdImports(),
    'import { THIRD_AT, THIRDS_AT } from "../matmul/ternary";',
    ...KERNEL_LAYOUTS.filter(({ points }) => !points).map((layout) =>
      (layout.kernel === TERNARY ? gemvTernary : gemv)(layout, style)
    ),
    dispatch(style),
    "",
  ].join("\n");
}
