// Register tiles: four interleaved activation rows (fours.ts) times eight weight rows, half of an unpacked panel (unpack.ts),
// whose eight sums stay in registers.
//   scales of cells:  for each group: c = Σ code · q as integers; f += d · (s · c) + m · (s · Σ q)
//     of codes with a whole offset (cells.ts) c starts at -offset · Σ q, and there is no m
//   scales of steps (steps.ts), a block of 256 columns after the other:
//     for each cell: i = Σ steps · Σ code · q as integers; p += i · s
//     for each cell: o += minimum · (s · Σ q)     in a loop of its own, whose sums stay in registers
//     f += p · D; f += o · E
// Codes and activations that are multiplied as pairs of 16 bits lie widened, even columns of a quad before odd ones: both
// are used many times. Two rows that are left take two turns. What else was tried: bench/results/kernels.md.
// The text must reach V8 in this order: an optimiser that sinks each sum into one long expression loads every vector early
// and spills, which is why the build uses asc at -O1.

import { groupSum, offsetConstant, startOf } from "./cells.ts";
import {
  type DotStyle,
  type FloatSums,
  floatSumsOf,
  NOTHING,
  runOf,
  signParts,
  widePairs,
} from "./dots.ts";
import { allTurns, turned, TURNS, TWO_TURNS, untwisted } from "./fours.ts";
import { simdImports } from "./imports.ts";
import { PANEL_KINDS, type PanelKind, WIDEST_KINDS, widestKind } from "./panels.ts";
import { stepStarts, stepSum } from "./steps.ts";

/** Vectors of four weight rows side by side. */
const VECTORS: readonly number[] = [0, 1];
/** Columns and cells of a block of steps. */
const BLOCK = 256, CELLS = 8;
/** Bytes of the scales of 16 rows: of a cell, or of a group. */
const SCALES = 128;

const PARAMETERS =
  "x: usize, columns: usize, codes: usize, scales: usize, out: usize, outStride: usize, offset: i32";

function isWide({ style, bits }: Tile): boolean {
  return style === "plain" || (style === "pair" && bits === 8);
}

/** Whether sums of two start where an offset takes them (assembly/matmul/fours.ts). */
function hasStarts({ style, offset, bits, centered = false }: Tile): boolean {
  return style === "pair" && (offset !== undefined || (centered && bits < 8));
}

/** Whether sums of 32 bits start where an offset takes them: that of the layout, which the caller says. */
function hasStart({ style, centered = false }: Tile): boolean {
  return style !== "pair" && centered;
}

/** Steps of sums that go together before the next turn. */
function runLength(kind: Tile): number {
  return kind.style === "pair" && !isWide(kind) && !hasStarts(kind) && runOf(kind.bits) === 2
    ? 2
    : 1;
}

/** Bytes of a cell of codes of a panel. */
function cellBytes(kind: Tile): number {
  return isWide(kind) ? 1024 : 512;
}

function dotsOf(kind: Tile): FloatSums {
  return isWide(kind) ? widePairs() : floatSumsOf(kind.style, kind.bits);
}

/** A kind of panel, the way to multiply, and the turns of rows that a tile takes. */
interface Tile extends PanelKind {
  readonly style: DotStyle;
  readonly turns: readonly number[];
}

/** All sums of a tile. */
function each({ turns }: Tile, line: (k: number, v: number) => string): string[] {
  return turns.flatMap((k) => VECTORS.map((v) => line(k, v)));
}

/** Where vector `v` of scales lies, or of what stands beside them. */
function place(v: number, beside: boolean): number {
  return 16 * v + (beside ? 32 : 0);
}

/** Products of group `g` of a cell. Where sums of two take few steps, those steps are made of one turn before the next. */
function products(kind: Tile, g: number): string[] {
  const dots = dotsOf(kind), all = kind.groupColumns / (isWide(kind) ? 2 : 4);
  const run = runLength(kind),
    isPair = kind.style === "pair",
    starts = hasStarts(kind),
    lines: string[] = [];
  const least = starts ? all : Math.min(runOf(kind.bits), all);
  for (let first = 0; first < all; first += run) {
    const steps = [...Array(run).keys()].map((k) => first + k);
    for (const k of steps) {
      const step = g * all + k;
      lines.push(`let x${step} = v128.load(x, ${16 * step});`);
      for (const v of VECTORS) {
        lines.push(`const w${step}_${v} = v128.load(codes, ${64 * step + 16 * v});`);
        if (kind.signs) {
          lines.push(...signParts(`${step}_${v}`, isWide(kind) ? "i16x8" : "i8x16"));
        }
      }
      if (kind.steps && isPair && (k + 1) % least === 0) {
        for (const v of VECTORS) {
          lines.push(`const S${g}_${v}_${k} = v128.load(scales, ${place(v, g > 0)});`);
        }
      }
    }
    for (const t of kind.turns) {
      if (starts && first === 0) {
        lines.push(
          `const z${g}_${t} = ${t ? turned(`z${g}_0`, t) : `v128.load(xs + ${g + 1} * sums)`};`,
        );
      }
      if (t) {
        for (const k of steps) lines.push(`x${g * all + k} = ${turned(`x${g * all + k}`, 1)};`);
      }
      for (const v of VECTORS) {
        for (const k of steps) {
          const step = g * all + k;
          const z = `z${g}_${t}`, isMoved = !isPair && kind.offset !== undefined;
          const from = isMoved || hasStart(kind) ? z : "ZERO", start = starts ? z : undefined;
          const by = kind.steps ? `S${g}_${v}_${k}` : "ONES";
          const more = { by, goesOn: kind.steps === true && g > 0, from, start };
          const add = (name: string, codes: string) => {
            const sum = `${name}${t}_${v}${kind.steps && !isPair ? `_${g}` : ""}`;
            lines.push(...dots.add(sum, `x${step}`, codes, k, all, more));
          };
          if (kind.signs) {
            add("c", `p${step}_${v}`);
            add("b", `n${step}_${v}`);
          } else add("c", `w${step}_${v}`);
        }
      }
    }
  }
  return lines;
}

/** A group whose scales are floats. */
function group(kind: Tile, g: number): string[] {
  const { value } = dotsOf(kind), hasBeside = kind.minima || kind.signs;
  const start = startOf("v128.load(xs + 2 * sums)");
  const lines = [
    ...hasStart(kind)
      ? allTurns(`z${g}_`, kind.style === "dot" ? `i32x4.add(ZERO, ${start})` : start, kind.turns)
      : [],
    ...products(kind, g),
    ...allTurns("s", "v128.load(xs)", kind.turns),
  ];
  for (const v of VECTORS) {
    lines.push(`const d${v} = v128.load(scales, ${place(v, false)});`);
    if (hasBeside) lines.push(`const m${v} = v128.load(scales, ${place(v, true)});`);
  }
  if (kind.minima) {
    lines.push(...allTurns(
      "t",
      kind.groupColumns === 32
        ? "v128.load(xs + sums)"
        : groupSum("v128.load(xs + 2 * sums)", g, "s0"),
      kind.turns,
    ));
  }
  // A step of all sums before the next: each waits for its own.
  for (const sum of kind.signs ? ["c", "b"] : ["c"]) {
    lines.push(
      ...each(kind, (k, v) => `const ${sum}f${k}_${v} = ${value(`${sum}${k}_${v}`)};`),
      ...each(kind, (k, v) => `const ${sum}s${k}_${v} = f32x4.mul(${sum}f${k}_${v}, s${k});`),
      ...each(kind, (k, v) => {
        const f = `f${k}_${v}`;
        return `${f} = madd(${sum}s${k}_${v}, ${sum === "c" ? "d" : "m"}${v}, ${f});`;
      }),
    );
  }
  if (kind.minima) {
    lines.push(...each(kind, (k, v) => `f${k}_${v} = madd(t${k}, m${v}, f${k}_${v});`));
  }
  return ["{", ...lines, `scales += ${SCALES};`, "}"];
}

/** What stands before the products of a cell with steps: of styles but `pair` those are floats. */
function steppedPrologue({ style, offset = 0, groupColumns, turns }: Tile): string[] {
  if (style === "pair") return [];
  const groups = [...Array(32 / groupColumns).keys()];
  const steps = groups.flatMap((g) =>
    VECTORS.map((v) => `const S${g}_${v} = v128.load(scales, ${place(v, g > 0)});`)
  );
  if (!offset) return steps;
  const starts = groups.flatMap((g) =>
    turns.slice(1).map((k) => `const z${g}_${k} = ${turned(`z${g}_0`, k)};`)
  );
  return [
    ...steps,
    "const h = v128.load(xs + 2 * sums);",
    ...stepStarts(offset, "h", "_0"),
    ...starts,
  ];
}

/** A cell whose scales are steps. */
function steppedCell(kind: Tile): string[] {
  const groups = [...Array(32 / kind.groupColumns).keys()], { style, bits } = kind;
  return [
    ...steppedPrologue(kind),
    ...groups.flatMap((g) => products(kind, g)),
    ...allTurns("s", "v128.load(xs)", kind.turns),
    // A step of all sums before the next: each waits for its own.
    ...each(kind, (k, v) => {
      const sums = style === "pair" ? [`c${k}_${v}`] : groups.map((g) => `c${k}_${v}_${g}`);
      const sum = stepSum(sums, {
        ...{ style, bits, steps: groups.map((g) => `S${g}_${v}`) },
      });
      return `const cf${k}_${v} = ${sum};`;
    }),
    ...each(kind, (k, v) => `p${k}_${v} = madd(cf${k}_${v}, s${k}, p${k}_${v});`),
    `scales += ${SCALES};`,
  ];
}

/** Minima of a block, in a loop of their own, whose sums stay in registers. */
function minima(kind: Tile): string[] {
  return [
    "{",
    ...each(kind, (k, v) => `let o${k}_${v} = f32x4.splat(0);`),
    `let at = scales - ${SCALES * CELLS}, t = xs + sums - ${16 * CELLS};`,
    "do {",
    ...VECTORS.map((v) => `const m${v} = v128.load(at, ${place(v, true)});`),
    ...allTurns("t", "v128.load(t)", kind.turns),
    ...each(kind, (k, v) => `o${k}_${v} = madd(m${v}, t${k}, o${k}_${v});`),
    `at += ${SCALES}; t += 16;`,
    "} while (at < scales);",
    ...VECTORS.map((v) => `const e${v} = v128.load(scales, ${place(v, true)});`),
    ...each(kind, (k, v) => `f${k}_${v} = madd(o${k}_${v}, e${v}, f${k}_${v});`),
    "}",
  ];
}

function cells(kind: Tile): string[] {
  const next = `codes += ${cellBytes(kind)}; x += ${isWide(kind) ? 256 : 128}; xs += 16;`;
  if (!kind.steps) {
    return [...[...Array(32 / kind.groupColumns).keys()].flatMap((g) => group(kind, g)), next];
  }
  return [
    ...each(kind, (k, v) => `let p${k}_${v} = f32x4.splat(0);`),
    `const blockEnd = x + ${(isWide(kind) ? 8 : 4) * BLOCK};`,
    "do {",
    ...steppedCell(kind),
    next,
    "} while (x < blockEnd);",
    ...VECTORS.map((v) => `const d${v} = v128.load(scales, ${place(v, false)});`),
    ...each(kind, (k, v) => `f${k}_${v} = madd(p${k}_${v}, d${v}, f${k}_${v});`),
    ...kind.minima ? minima(kind) : [],
    `scales += ${SCALES};`,
  ];
}

function tile(kind: Tile): string {
  const rows = (v: number) => untwisted(kind.turns.map((k) => `f${k}_${v}`));
  return [
    `function tile_${kind.name}_${kind.turns.length}(${PARAMETERS}): void {`,
    ...dotsOf(kind).constants,
    ...kind.signs ? [NOTHING] : [],
    ...hasStart(kind) ? [offsetConstant("-offset")] : [],
    `const end = x + ${isWide(kind) ? 8 : 4} * columns, sums = columns >> 1;`,
    "let xs = end;",
    ...each(kind, (k, v) => `let f${k}_${v} = f32x4.splat(0);`),
    "do {",
    ...cells(kind),
    "} while (x < end);",
    ...VECTORS.flatMap((v) =>
      rows(v).map((row, r) => `v128.store(out + ${r} * outStride, ${row}, ${16 * v});`)
    ),
    "}",
  ].join("\n");
}

/** Kinds of panels of a style. */
const KINDS: Readonly<Record<DotStyle, readonly PanelKind[]>> = {
  dot: WIDEST_KINDS,
  pair: PANEL_KINDS,
  plain: WIDEST_KINDS,
};

/** A function that calls the kernel of a kind of panel; kinds that a style has none of are like wider ones. */
function dispatch(style: DotStyle, turns: readonly number[]): string[] {
  return [
    `function tile${turns.length}(kind: u32, ${PARAMETERS}): void {`,
    "  switch (kind) {",
    ...PANEL_KINDS.map((kind, i) => {
      const { name } = style === "pair" ? kind : widestKind(kind);
      return `    case ${i}: tile_${name}_${turns.length}(x, columns, codes, scales, out, outStride, offset); return;`;
    }),
    "  }",
    "}",
  ];
}

/** Module `generated/tiles_{style}`. */
export function tilesModule(style: DotStyle): string {
  return [
    simdImports(),
    ...[TURNS, TWO_TURNS].flatMap((turns) => [
      ...KINDS[style].map((kind) => tile({ ...kind, style, turns })),
      ...dispatch(style, turns),
    ]),
    "/**",
    " * Rows of fours, `stride` apart, times a panel of 16 weight rows. Of the last four, outputs of all rows are written, or,",
    " * where there are one or two, of two. `offset` is what codes are too large by, where nothing else says it (cells.ts).",
    " */",
    `export function tiles_${style}(kind: u32, rows: u32, stride: usize, ${PARAMETERS}): void {`,
    "  for (let half: usize = 0; half < 2; half++, codes += 32, scales += 64, out += 32) {",
    "    let at = x, to = out, left = rows;",
    "    for (; left > 2; left -= min(left, 4), at += stride, to += 4 * outStride) {",
    "      tile4(kind, at, columns, codes, scales, to, outStride, offset);",
    "    }",
    "    if (left) tile2(kind, at, columns, codes, scales, to, outStride, offset);",
    "  }",
    "}",
    "",
  ].join("\n");
}
