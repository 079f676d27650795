// One activation row times one tile of eight weight rows, for every format and way to multiply.
//   for each cell of 32 columns, for each group g with its own scale:
//     y += d_g · (s · Σ code · q) + m_g · (s · Σ q)
// where s, q are the activations' scale and codes; s · Σ q stands ready in the q8 row
// (quant/q8_activation.ts). The order of float operations is that of the register tiles (tiles.ts), so a
// row gives the same bits alone and in a batch.
//
// A cell has bytes that mean nothing (`spareBytes`), and while a cell is read one of them is written in the cell
// 4 to 8 KiB ahead, in tiles that this thread will read: on some processors the scheduler is full before as many
// lines are under way as could be. Loads ahead do not help, because they hold up the reorder buffer like the load they
// run ahead of; a store is retired before its line comes, and fetches it. On processors whose own prefetching keeps up
// the stores cost, so threads try (assembly/machine/fetch_trial.ts). Not kept: two tiles at once, touches by loads, bursts
// of touches, sixteen rows in one stream, activations splatted as they are loaded (bench/results/kernels.md).

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
import { hasStepMinima, hasSteps, stepConstants, stepScales, stepSum } from "./steps.ts";

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

/** A cell whose scales are steps (steps.ts). */
function steppedCell(layout: WeightLayout, style: DotStyle): string[] {
  const dots = dotsOf(style, factorBits(layout)),
    groups = groupsOf(layout),
    isPair = style === "pair";
  const lines = [
    ...fetches(layout, style) ? [FETCH] : [],
    ...stepScales(layout, style),
    ...cellHighBits(layout),
  ];
  const done = new Array<number>(groups).fill(0);
  for (const q of quadOrder(layout)) {
    const g = groups === 2 ? q >> 2 : 0, step = done[g]!++;
    lines.push(`const x${q} = v128.load32_splat(x, ${4 * q});`, ...dots.operand(`x${q}`));
    for (const h of HALVES) {
      const c = isPair ? `c${h}` : `c${g}_${h}`, more = { by: `S${g}_${h}`, goesOn: g > 0 };
      lines.push(...codeVector(layout, q, h));
      lines.push(...dots.add(c, `x${q}`, `w${q}_${h}`, step, 8 / groups, more));
    }
  }
  lines.push("const s = v128.load32_splat(scale);");
  lines.push(
    hasStepMinima(layout)
      ? "const t = v128.load32_splat(sum);"
      : "const halves = v128.load32_splat(halfSum);",
  );
  for (const h of HALVES) {
    const all = [...Array(groups).keys()];
    const sum = stepSum(isPair ? [`c${h}`] : all.map((g) => `c${g}_${h}`), {
      ...{ style, offset: layout.offset, steps: all.map((g) => `S${g}_${h}`) },
      ...{ pairs: `P${h}`, halves: "halves" },
    });
    lines.push(`p${h} = madd(f32x4.convert_i32x4_s(${sum}), s, p${h});`);
    if (hasStepMinima(layout)) lines.push(`o${h} = madd(M${h}, t, o${h});`);
  }
  return [...lines, `w += ${layout.cellBytes}; x += 32; scale += 4; sum += 4; halfSum += 4;`];
}

function cell(layout: WeightLayout, style: DotStyle): string[] {
  if (hasSigns(layout)) return signedCell(layout, style);
  if (hasSteps(layout)) return steppedCell(layout, style);
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
  const hasMinima = hasStepMinima(layout);
  return [
    ...blockHeader(layout, "minimum"),
    ...hasSteps(layout)
      ? HALVES.map((h) =>
        `let p${h} = f32x4.splat(0)${hasMinima ? `, o${h} = f32x4.splat(0)` : ""};`
      )
      : [],
    `w += ${layout.headerBytes};`,
    takesBlock(layout)
      ? "const blockEnd = min(scale + (block >> 3), end);"
      : `const blockEnd = scale + ${4 * cells};`,
    "do {",
    ...cell(layout, style),
    "} while (scale < blockEnd);",
    ...hasSteps(layout) ? HALVES.map((h) => `f${h} = madd(p${h}, D${h}, f${h});`) : [],
    ...hasMinima ? HALVES.map((h) => `f${h} = madd(o${h}, E${h}, f${h});`) : [],
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
    ...hasSteps(layout) ? stepConstants(layout, style) : [],
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
