// One activation row times one tile of eight weight rows or two in turns (turns.ts), for every format and way to multiply; of
// some formats a few rows at once, which share what it takes to make numbers of codes.
//   for each cell of 32 columns, for each group g with its own scale:
//     y += d_g · (s · Σ code · q) + m_g · (s · Σ q), or, of codes with a whole offset (cells.ts), d · (s · Σ (code - offset) · q)
// where s, q are the activations' scale and codes; s · Σ q stands ready in the q8 row
// (quant/q8_activation.ts). The order of float operations is that of the register tiles (tiles.ts), so a
// row gives the same bits alone and in a batch.
//
// A cell has bytes that mean nothing (`spareBytes`), and while a cell is read one of them is written in the cell
// 4 to 8 KiB ahead, in tiles that this thread will read: on some processors the scheduler is full before as many
// lines are under way as could be. Loads ahead do not help, because they hold up the reorder buffer like the load they
// run ahead of; a store is retired before its line comes, and fetches it. On processors whose own prefetching keeps up
// the stores cost, so threads try (assembly/machine/read_trial.ts). Not kept: two tiles at every cell, touches by loads, bursts
// of touches, sixteen rows in one stream, activations splatted as they are loaded (bench/results/kernels.md).

import { factorBits, LAYOUTS_BY_FORMAT, type WeightLayout } from "../weight_layout.ts";
import {
  addsMinima,
  cellConstants,
  cellEpilogue,
  cellHighBits,
  codeVector,
  isCentered,
  offsetConstant,
  ofRow,
  ofRows,
  quadOrder,
  rowName,
  startOf,
} from "./cells.ts";
import {
  type Dots,
  dotsOf,
  type DotStyle,
  floatSumsOf,
  NOTHING,
  rowsDotsOf,
  runOf,
  signParts,
} from "./dots.ts";
import { turned, TURNS, untwisted } from "./fours.ts";
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
import {
  hasOffsets,
  hasStepMinima,
  hasSteps,
  stepConstants,
  stepScales,
  stepStarts,
  stepSum,
} from "./steps.ts";
import { TURN_SCALES, turnEnd, turnsStart, turnsStores } from "./turns.ts";

/** Whether a kernel of so many rows takes them interleaved (fours.ts). */
function isFours(rows: number): boolean {
  return rows === 4;
}

/** Bytes of what rows have for a cell: scales, sums and half sums. */
function cellStep(rows: number): number {
  return isFours(rows) ? 16 : 4;
}

/** Whether a kernel fetches cells ahead of time. */
function fetches({ spareBytes }: WeightLayout, style: DotStyle): boolean {
  return style !== "plain" && spareBytes > 0;
}

/** At the start of a cell: fetches one that is far ahead. A store for nobody in its place costs a tenth (bench/results/kernels.md). */
export const FETCH = "if (spare) store<u8>(w + spare, 0);";

/** Whether four rows lie as 16 bits. */
function isWide(layout: WeightLayout, style: DotStyle): boolean {
  return style === "pair" && factorBits(layout) === 8;
}

/** Whether a kernel reads codes of 8 bit as signed. */
function isRaw(layout: WeightLayout, style: DotStyle): boolean {
  return style === "pair" && factorBits(layout) === 8;
}

/** A cell whose codes have one scale above zero and one below. */
function signedCell(layout: WeightLayout, style: DotStyle): string[] {
  const dots = dotsOf(style, factorBits(layout));
  const lines: string[] = [];
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
  return lines;
}

/** Statements that name what row `r` multiplies a quad by, x{q}{row}; of four rows the turns of one vector, one at a time. */
function operand(dots: Dots, q: number, r: number, isFour: boolean): string[] {
  const name = `x${q}${rowName(r)}`;
  if (!isFour) {
    return [
      `const ${name} = v128.load32_splat(${ofRow("x", r)}, ${4 * q});`,
      ...dots.operand(name),
    ];
  }
  return (dots.wide ?? [""]).map((part, i, { length }) =>
    `const ${name}${part} = ${
      r ? turned(`x${q}${rowName(r - 1)}${part}`, 1) : `v128.load(x, ${16 * (length * q + i)})`
    };`
  );
}

/** Whether sums of two of a kernel start where an offset takes them (assembly/matmul/fours.ts). */
function hasStarts(layout: WeightLayout, style: DotStyle, rows: number): boolean {
  return isFours(rows) && style === "pair" && (hasOffsets(layout) || hasStart(layout, style));
}

/** Whether sums of a kernel start at what a whole offset makes of the activations. */
function hasStart(layout: WeightLayout, style: DotStyle): boolean {
  return isCentered(layout) && !isRaw(layout, style);
}

/** Statements that define z0{row}, where sums of a cell start. */
function startsOfRows(rows: readonly number[]): string[] {
  if (!isFours(rows.length)) {
    return rows.map((r) =>
      `const z0${rowName(r)} = ${startOf(`v128.load32_splat(${ofRow("halfSum", r)})`)};`
    );
  }
  return rows.map((r) =>
    `const z0${rowName(r)} = ${r ? turned("z0", r) : startOf("v128.load(halfSum)")};`
  );
}

/** Sums of products of a cell, c{g}_{h}{row}; of steps with `pair` those of both groups are c0_{h}{row}. */
function products(layout: WeightLayout, style: DotStyle, rows: readonly number[]): string[] {
  const raw = isRaw(layout, style);
  const dots = gemvDots(layout, style, rows.length), isStepped = hasSteps(layout);
  const groups = groupsOf(layout), areOne = style === "pair" && isStepped;
  const order = quadOrder(layout),
    starts = hasStarts(layout, style, rows.length),
    count = isFours(rows.length) && !starts && runOf(factorBits(layout)) === 2 ? 2 : 1;
  const step = (q: number) =>
    order.filter((other) => groups === 1 || other >> 2 === q >> 2).indexOf(q);
  const codes = (q: number, h: number) => [
    ...codeVector(layout, q, h, raw),
    ...dots.weight?.(`w${q}_${h}`) ?? [],
  ];
  const product = (q: number, r: number, h: number) => {
    const g = groups === 2 ? q >> 2 : 0, sums = `c${areOne ? 0 : g}_${h}${rowName(r)}`;
    const z = `z${g}${rowName(r)}`, isMoved = hasOffsets(layout) && style !== "pair";
    const from = isMoved || (hasStart(layout, style) && !starts) ? z : "ZERO";
    const by = isStepped ? `S${g}_${h}` : "ONES", start = starts ? z : undefined;
    const more = { by, goesOn: isStepped && g > 0, from, start };
    return dots.add(sums, `x${q}${rowName(r)}`, `w${q}_${h}`, step(q), 8 / groups, more);
  };
  const row = (q: number, r: number) => operand(dots, q, r, isFours(rows.length));
  if (rows.length === 1) {
    return order.flatMap((q) => [
      ...row(q, 0),
      ...HALVES.flatMap((h) => [...codes(q, h), ...product(q, 0, h)]),
    ]);
  }
  const lines: string[] = [];
  // Quads whose sums of two go together, row after row.
  for (let first = 0; first < order.length; first += count) {
    const quads = order.slice(first, first + count);
    lines.push(...quads.flatMap((q) => HALVES.flatMap((h) => codes(q, h))));
    for (const r of rows) {
      lines.push(...quads.flatMap((q) => row(q, r)));
      if (starts && step(first) === 0) {
        lines.push(ofRows(`z${first >> 2}`, first ? "halfSum" : "sum", r, true));
      }
      for (const h of HALVES) lines.push(...quads.flatMap((q) => product(q, r, h)));
    }
  }
  return lines;
}

/** How a kernel of so many rows multiplies. */
function gemvDots(layout: WeightLayout, style: DotStyle, rows: number): Dots {
  const bits = factorBits(layout);
  if (hasSteps(layout)) return floatSumsOf(style, bits);
  return rows > 1 ? rowsDotsOf(style, bits) : dotsOf(style, bits);
}

/** Statements before the products of a cell whose scales are steps: those, and what belongs to rows. */
function steppedPrologue(layout: WeightLayout, style: DotStyle, rows: readonly number[]): string[] {
  const lines = stepScales(layout, style);
  if (!hasOffsets(layout) || hasStarts(layout, style, rows.length)) return lines;
  for (const r of rows) {
    const halves = `halves${rowName(r)}`;
    lines.push(ofRows("halves", "halfSum", r, isFours(rows.length)));
    if (style !== "pair") lines.push(...stepStarts(layout.offset, halves, rowName(r)));
  }
  return lines;
}

/** What a row adds to its sums in a cell whose scales are steps (steps.ts). */
function steppedEpilogue(
  layout: WeightLayout,
  style: DotStyle,
  { r, isFour }: { readonly r: number; readonly isFour: boolean },
): string[] {
  const groups = [...Array(groupsOf(layout)).keys()], row = rowName(r);
  const lines = [ofRows("s", "scale", r, isFour)];
  if (hasStepMinima(layout)) lines.push(ofRows("t", "sum", r, isFour));
  const isLeft = hasOffsets(layout) && style === "pair" && !isFour;
  for (const h of HALVES) {
    const sum = stepSum((style === "pair" ? [0] : groups).map((g) => `c${g}_${h}${row}`), {
      ...{ style, bits: factorBits(layout), steps: groups.map((g) => `S${g}_${h}`) },
      offsets: isLeft
        ? { offset: layout.offset, pairs: `P${h}`, halves: `halves${row}` }
        : undefined,
    });
    lines.push(`p${h}${row} = madd(${sum}, s${row}, p${h}${row});`);
    if (hasStepMinima(layout)) lines.push(`o${h}${row} = madd(M${h}, t${row}, o${h}${row});`);
  }
  return lines;
}

function cell(layout: WeightLayout, style: DotStyle, rows: readonly number[]): string[] {
  const lines = fetches(layout, style) ? [FETCH] : [], isFour = isFours(rows.length);
  if (hasSigns(layout)) lines.push(...signedCell(layout, style));
  else if (hasSteps(layout)) {
    lines.push(...steppedPrologue(layout, style, rows), ...cellHighBits(layout));
    lines.push(...products(layout, style, rows));
    lines.push(...rows.flatMap((r) => steppedEpilogue(layout, style, { r, isFour })));
  } else {
    const minima = addsMinima(layout, isRaw(layout, style)) && !isCentered(layout);
    if (hasStart(layout, style) && !hasStarts(layout, style, rows.length)) {
      lines.push(...startsOfRows(rows));
    }
    lines.push(...cellHighBits(layout), ...products(layout, style, rows));
    lines.push(...cellScales(layout, "minimum"));
    lines.push(...rows.flatMap((r) => cellEpilogue(layout, minima, { r, isFour })));
  }
  const bytes = cellStep(rows.length);
  lines.push(
    `w += ${layout.cellBytes}; x += ${isFour && isWide(layout, style) ? 256 : 8 * bytes};`,
  );
  return [...lines, `scale += ${bytes}; sum += ${bytes}; halfSum += ${bytes};`];
}

/** Cells in a row, or a block of cells under a header. */
function run(layout: WeightLayout, style: DotStyle, rows: readonly number[]): string[] {
  const cells = layout.blockColumns / layout.cellColumns;
  if (cells === 1) {
    if (rows.length > 1) return cell(layout, style, rows);
    return [
      `const runEnd = min(scale + ${TURN_SCALES}, end);`,
      "do {",
      ...cell(layout, style, rows),
      "} while (scale < runEnd);",
    ];
  }
  const sums = rows.flatMap((r) => HALVES.map((h) => `${h}${rowName(r)}`)),
    bytes = cellStep(rows.length);
  const names = hasStepMinima(layout) ? ["p", "o"] : hasSteps(layout) ? ["p"] : [];
  const factors: Readonly<Record<string, string>> = { p: "D", o: "E" };
  return [
    ...blockHeader(layout, "minimum"),
    ...names.flatMap((name) => sums.map((sum) => `let ${name}${sum} = f32x4.splat(0);`)),
    `w += ${layout.headerBytes};`,
    takesBlock(layout)
      ? `const blockEnd = min(scale + (block >> ${bytes === 4 ? 3 : 1}), end);`
      : `const blockEnd = scale + ${bytes * cells};`,
    "do {",
    ...cell(layout, style, rows),
    "} while (scale < blockEnd);",
    ...names.flatMap((name) =>
      sums.map((sum) => `f${sum} = madd(${name}${sum}, ${factors[name]}${sum[0]}, f${sum});`)
    ),
  ];
}

/** Parameters of a kernel that are there for some layouts only. */
function lastParameters(layout: WeightLayout, style: DotStyle): string {
  return moreParameters(layout) + (fetches(layout, style) ? ", ahead: usize" : "");
}

function lastArguments(layout: WeightLayout, style: DotStyle): string {
  return moreArguments(layout) + (fetches(layout, style) ? ", ahead" : "");
}

/** What a kernel of `count` rows has beside weights and a number of columns, and where it writes. */
function rowParameters(count: number): readonly [rows: string, out: string] {
  if (count === 1) return ["apart: usize, x: usize", "outApart: usize"];
  return isFours(count)
    ? ["x: usize, rows: u32", "outStride: usize"]
    : ["x: usize, stride: usize", "outStride: usize"];
}

/** Statements that store sums of `count` rows; of four interleaved ones the third and the fourth only where they are. */
function stores(sums: readonly string[], count: number): string[] {
  const row = (r: number, h: number, value: string) =>
    `v128.store(out${r ? ` + ${r} * outStride` : ""}, ${value}, ${16 * h});`;
  if (!isFours(count)) return sums.map((sum, i) => row(i >> 1, i & 1, sum));
  const halves = HALVES.map((h) => untwisted(sums.filter((_, i) => (i & 1) === h)));
  return TURNS.flatMap((r) => {
    const lines = HALVES.map((h) => row(r, h, halves[h]![r]!));
    return r === 3 ? ["if (rows > 3) {", ...lines, "}"] : lines;
  });
}

/** A kernel of one row, or of `count`, whose results lie `outStride` apart. */
function gemv(layout: WeightLayout, style: DotStyle, count = 1): string {
  const rows = [...Array(count).keys()], isOne = count === 1;
  const sums = rows.flatMap((r) => HALVES.map((h) => `f${h}${rowName(r)}`));
  const [from, to] = rowParameters(count), shift = isFours(count) ? 1 : 3;
  const codes = isFours(count) ? `${isWide(layout, style) ? 8 : 4} * columns` : "columns";
  return [
    `/** ${layout.kernel} weights; \`flip\` is for 8-bit codes, see matmul/q8.ts. */`,
    `export function gemv_${style}_${layout.kernel}${isOne ? "" : `_${count}`}` +
    `(w: usize, ${from}, columns: usize, out: usize, ${to}, flip: i32${
      lastParameters(layout, style)
    }): void {`,
    ...fetches(layout, style) ? [`const spare = ahead ? ahead + ${layout.cellBytes - 1} : 0;`] : [],
    ...cellConstants(layout, isRaw(layout, style)),
    ...gemvDots(layout, style, count).constants,
    ...hasSigns(layout) ? [NOTHING] : [],
    ...hasStart(layout, style)
      ? [offsetConstant(factorBits(layout) === 8 ? "-flip" : `${-layout.offset}`)]
      : [],
    ...hasSteps(layout) ? stepConstants(layout, style) : [],
    ...isFours(count) ? [] : rows.slice(1).map((r) => `const stride${r} = ${r} * stride;`),
    `let scale = x + ${codes}, sum = scale + (columns >> ${shift}), halfSum = sum + (columns >> ${shift});`,
    "const end = sum;",
    ...sums.map((sum) => `let ${sum} = f32x4.splat(0);`),
    ...isOne ? turnsStart(sums) : [],
    "do {",
    ...isOne ? ["const start = scale;"] : [],
    ...run(layout, style, rows),
    ...isOne ? turnEnd(sums, ["x -= 8 * done; sum -= done; halfSum -= done;"]) : [],
    "} while (scale < end);",
    ...isOne ? turnsStores(sums, (sum) => `out + ${16 * sums.indexOf(sum)}`) : stores(sums, count),
    "}",
  ].join("\n");
}

/** Kernels that take a few rows at once, those of formats that models come in most often. */
const FEW: ReadonlySet<string> = new Set(
  ["Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "LF8", "IQ4_NL", "IQ4_XS"]
    .map((format) => LAYOUTS_BY_FORMAT.get(format)!.kernel),
);

/** Rows of a kernel, most first. */
const COUNTS: readonly number[] = [4, 2];

/** Calls kernels of a few rows until none is left; layouts that have none are asked about first. */
function fewDispatch(style: DotStyle): string {
  const few = style === "plain" ? [] : CODE_LAYOUTS.filter(({ kernel }) => FEW.has(kernel));
  return [
    "/**",
    " * Any number of rows times one tile; layouts for which `takesFew` says so. Three and four of them come from `fours`, where",
    " * they lie interleaved, `foursBytes` apart.",
    " */",
    `export function gemv_few_${style}(layout: u32, rows: u32, w: usize, x: usize, stride: usize, fours: usize, foursBytes: usize, ` +
    "columns: usize, out: usize, outStride: usize, flip: i32, ahead: usize): void {",
    "  switch (layout) {",
    ...few.flatMap((layout) => {
      const kernel = `gemv_${style}_${layout.kernel}`, more = `flip${lastArguments(layout, style)}`;
      return [
        `    case ${layout.id}:`,
        "      for (; rows > 2; rows -= min(rows, 4), fours += foursBytes, x += 4 * stride, out += 4 * outStride) " +
        `${kernel}_4(w, fours, rows, columns, out, outStride, ${more});`,
        `      if (rows == 2) ${kernel}_2(w, x, stride, columns, out, outStride, ${more});`,
        `      else if (rows) ${kernel}(w, 0, x, columns, out, 0, ${more});`,
        "      return;",
      ];
    }),
    "  }",
    "  unreachable();",
    "}",
    "/** Whether a layout has kernels of a few rows. */",
    `export function takesFew_${style}(layout: u32): bool {`,
    `  return ${few.map(({ id }) => `layout == ${id}`).join(" || ") || "false"};`,
    "}",
  ].join("\n");
}

function dispatch(style: DotStyle): string {
  return [
    "/** Calls the kernel of a layout. */",
    `export function gemv_${style}` +
    "(layout: u32, w: usize, apart: usize, x: usize, columns: usize, out: usize, outApart: usize, flip: i32" +
    `${style === "plain" ? "" : ", ahead: usize"}): void {`,
    "  switch (layout) {",
    ...CODE_LAYOUTS.filter(({ points }) => !points).map((layout) =>
      `    case ${layout.id}: gemv_${style}_${layout.kernel}` +
      `(w, apart, x, columns, out, outApart, flip${lastArguments(layout, style)}); return;`
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
      layout.kernel === TERNARY ? gemvTernary(layout, style) : gemv(layout, style)
    ),
    ...style === "plain" ? [] : KERNEL_LAYOUTS.filter(({ kernel }) => FEW.has(kernel))
      .flatMap((layout) => COUNTS.map((count) => gemv(layout, style, count))),
    dispatch(style),
    ...style === "plain" ? [] : [fewDispatch(style)],
    "",
  ].join("\n");
}
