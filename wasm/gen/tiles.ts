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
// Of tiles that V8 joins to 256 bits (planes.ts) the panel lies in planes, rows are splat in place of turned, and eight
// of them share what it takes to put the planes together.
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
import { JOINED_LAYOUTS } from "./joined_lanes.ts";
import { simdImports } from "./imports.ts";
import { CODE_LAYOUTS } from "./kernel_layouts.ts";
import { PANEL_KINDS, type PanelKind, panelKind, WIDEST_KINDS, widestKind } from "./panels.ts";
import {
  behindLoop,
  bytes,
  halves,
  laneSplat,
  LOW_NIBBLES,
  nibbles,
  seed,
  spread,
} from "./planes.ts";
import { stepStarts, stepSum } from "./steps.ts";

/** Vectors of four weight rows side by side. */
const VECTORS: readonly number[] = [0, 1];
/** Columns and cells of a block of steps. */
const BLOCK = 256, CELLS = 8;
/** Bytes of the scales of 16 rows: of a cell, or of a group. */
const SCALES = 128;

const POINTERS =
  "columns: usize, codes: usize, scales: usize, out: usize, outStride: usize, offset: i32";
/** `apart`: how far behind the first four rows the second four lie. */
const PARAMETERS = `x: usize, apart: usize, ${POINTERS}`;

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
  if (kind.joined) return hasNibbles(kind) ? 256 : 512;
  return isWide(kind) ? 1024 : 512;
}

/** Whether a plane has two codes in a byte. */
function hasNibbles({ bits, style }: Pick<Tile, "bits" | "style">): boolean {
  return style === "pair" && bits === 4;
}

function dotsOf(kind: Tile): FloatSums {
  return isWide(kind) ? widePairs() : floatSumsOf(kind.style, kind.bits);
}

/** A kind of panel, the way to multiply, the turns of rows that a tile takes, or the rows themselves, and whether V8 joins it. */
interface Tile extends PanelKind {
  readonly style: DotStyle;
  readonly turns: readonly number[];
  readonly joined: boolean;
}

/** All sums of a tile. */
function each({ turns }: Tile, line: (k: number, v: number) => string): string[] {
  return turns.flatMap((k) => VECTORS.map((v) => line(k, v)));
}

/** Where vector `v` of scales lies, or of what stands beside them. */
function place(v: number, beside: boolean): number {
  return 16 * v + (beside ? 32 : 0);
}

/** The address of what is at `pointer` for the rows of a four. */
function ofFour(pointer: string, four: number): string {
  return four ? `${pointer} + apart` : pointer;
}

/** Statements that define {name}0 and so on, what `value` says of four rows for each turn or row. */
function ofRows(kind: Tile, name: string, value: (four: number) => string): string[] {
  if (!kind.joined) return allTurns(name, value(0), kind.turns);
  return kind.turns.flatMap((r) => [
    ...r & 3 ? [] : [`const ${name}four${r >> 2} = ${value(r >> 2)};`],
    `const ${name}${r} = ${laneSplat(`${name}four${r >> 2}`, r & 3)};`,
  ]);
}

/** The same of what is loaded. */
function loadRows(kind: Tile, name: string, pointer: string): string[] {
  return ofRows(kind, name, (four) => `v128.load(${ofFour(pointer, four)})`);
}

/** Statements that define {name}0 and {name}1 of weight rows. */
function loadScales(kind: Tile, name: string, at: number, pointer = "scales"): string[] {
  if (kind.joined) return halves((v) => `${name}${v}`, pointer, at);
  return VECTORS.map((v) => `const ${name}${v} = v128.load(${pointer}, ${at + 16 * v});`);
}

/** Statements that define w{step}_0 and w{step}_1. */
function loadCodes(kind: Tile, step: number): string[] {
  const name = (v: number) => `w${step}_${v}`;
  if (!kind.joined) {
    return VECTORS.map((v) => `const ${name(v)} = v128.load(codes, ${64 * step + 16 * v});`);
  }
  if (hasNibbles(kind)) return nibbles(name, "codes", 32 * step);
  if (!isWide(kind)) return bytes(name, "codes", 64 * step);
  return [
    `const b${step} = v128.load(codes, ${64 * (step >> 1) + 16 * (step & 1)});`,
    ...VECTORS.map((v) => `const ${name(v)} = ${spread(`b${step}`, v, "i16x8", "s")};`),
  ];
}

/** Statements before products of steps and turn or row `r`, and what its activations of a step are called. */
function operand(
  kind: Tile,
  steps: readonly number[],
  r: number,
): { readonly lines: string[]; readonly x: (step: number) => string } {
  if (!kind.joined) {
    const x = (step: number) => `x${step}_0`;
    return { lines: r ? steps.map((step) => `${x(step)} = ${turned(x(step), 1)};`) : [], x };
  }
  const four = r >> 2, x = (step: number) => `x${step}_${four}_${r & 3}`;
  const lines = steps.map((step) => `const ${x(step)} = ${laneSplat(`x${step}_${four}`, r & 3)};`);
  return { lines, x };
}

/** Products of group `g` of a cell. Where sums of two take few steps, those steps are made of one turn before the next. */
function products(kind: Tile, g: number): string[] {
  const dots = dotsOf(kind), all = kind.groupColumns / (isWide(kind) ? 2 : 4);
  const run = runLength(kind),
    isPair = kind.style === "pair",
    starts = hasStarts(kind),
    lines: string[] = [];
  const least = starts ? all : Math.min(runOf(kind.bits), all);
  const fours = kind.turns.length === 8 ? [0, 1] : [0];
  const zs = starts ? loadRows(kind, `z${g}_`, `xs + ${g + 1} * sums`) : [];
  for (let first = 0; first < all; first += run) {
    const steps = [...Array(run).keys()].map((k) => first + k);
    for (const k of steps) {
      const step = g * all + k;
      lines.push(
        ...fours.map((four) =>
          kind.joined
            ? `const x${step}_${four} = v128.load(${ofFour("x", four)} + ${16 * step});`
            : `let x${step}_${four} = v128.load(${ofFour("x", four)}, ${16 * step});`
        ),
        ...loadCodes(kind, step),
      );
      if (kind.signs) {
        const lanes = isWide(kind) ? "i16x8" : "i8x16";
        lines.push(...VECTORS.flatMap((v) => signParts(`${step}_${v}`, lanes)));
      }
      if (kind.steps && isPair && (k + 1) % least === 0) {
        lines.push(...loadScales(kind, `S${g}_${k}_`, place(0, g > 0)));
      }
    }
    for (const t of kind.turns) {
      const { lines: before, x } = operand(kind, steps.map((k) => g * all + k), t);
      if (first === 0) lines.push(...zs.splice(0, kind.joined && (t & 3) === 0 ? 2 : 1));
      lines.push(...before);
      for (const v of VECTORS) {
        for (const k of steps) {
          const step = g * all + k;
          const z = `z${g}_${t}`, isMoved = !isPair && kind.offset !== undefined;
          const from = isMoved || hasStart(kind) ? z : "ZERO", start = starts ? z : undefined;
          const by = kind.steps ? `S${g}_${k}_${v}` : "ONES";
          const more = { by, goesOn: kind.steps === true && g > 0, from, start };
          const add = (name: string, codes: string) => {
            const sum = `${name}${t}_${v}${kind.steps && !isPair ? `_${g}` : ""}`;
            lines.push(...dots.add(sum, x(step), codes, k, all, more));
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
  const start = (four: number) => {
    const value = startOf(`v128.load(${ofFour("xs + 2 * sums", four)})`);
    return kind.style === "dot" ? `i32x4.add(ZERO, ${value})` : value;
  };
  const lines = [
    ...hasStart(kind) ? ofRows(kind, `z${g}_`, start) : [],
    ...products(kind, g),
    ...loadRows(kind, "s", "xs"),
  ];
  lines.push(...loadScales(kind, "d", place(0, false)));
  if (hasBeside) lines.push(...loadScales(kind, "m", place(0, true)));
  if (kind.minima) {
    const scale = (four: number) => kind.joined ? `sfour${four}` : "s0";
    lines.push(
      ...kind.groupColumns === 32 ? loadRows(kind, "t", "xs + sums") : ofRows(
        kind,
        "t",
        (four) => groupSum(`v128.load(${ofFour("xs + 2 * sums", four)})`, g, scale(four)),
      ),
    );
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
function steppedPrologue(kind: Tile): string[] {
  const { style, offset = 0, groupColumns, turns } = kind;
  if (style === "pair") return [];
  const groups = [...Array(32 / groupColumns).keys()];
  const steps = groups.flatMap((g) => loadScales(kind, `S${g}_`, place(0, g > 0)));
  if (!offset) return steps;
  if (kind.joined) {
    return [
      ...steps,
      ...loadRows(kind, "h", "xs + 2 * sums"),
      ...turns.flatMap((r) => stepStarts(offset, `h${r}`, `_${r}`)),
    ];
  }
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
    ...loadRows(kind, "s", "xs"),
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
    ...loadScales(kind, "m", place(0, true), "at"),
    ...loadRows(kind, "t", "t"),
    ...each(kind, (k, v) => `o${k}_${v} = madd(m${v}, t${k}, o${k}_${v});`),
    `at += ${SCALES}; t += 16;`,
    "} while (at < scales);",
    ...loadScales(kind, "e", place(0, true)),
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
    ...loadScales(kind, "d", place(0, false)),
    ...each(kind, (k, v) => `f${k}_${v} = madd(p${k}_${v}, d${v}, f${k}_${v});`),
    ...kind.minima ? minima(kind) : [],
    `scales += ${SCALES};`,
  ];
}

/** Statements that store the sums of all rows. */
function stores(kind: Tile): string[] {
  const rows = VECTORS.map((v) => {
    const sums = kind.turns.map((k) => `f${k}_${v}`);
    return kind.joined ? sums : untwisted(sums);
  });
  return [
    ...kind.joined ? rows.flat().map(behindLoop) : [],
    ...kind.joined ? [seed("out", rows[0]!.map((row, r) => [row, rows[1]![r]!]))] : [],
    ...VECTORS.flatMap((v) =>
      rows[v]!.map((row, r) => `v128.store(out + ${r} * outStride, ${row}, ${16 * v});`)
    ),
  ];
}

function tile(kind: Tile): string {
  return [
    `function tile_${kind.name}_${kind.turns.length}(${PARAMETERS}): void {`,
    ...kind.joined && hasNibbles(kind) ? [LOW_NIBBLES] : [],
    ...dotsOf(kind).constants,
    ...kind.signs ? [NOTHING] : [],
    ...hasStart(kind) ? [offsetConstant("-offset")] : [],
    `const end = x + ${isWide(kind) ? 8 : 4} * columns, sums = columns >> 1;`,
    "let xs = end;",
    ...each(kind, (k, v) => `let f${k}_${v} = f32x4.splat(0);`),
    "do {",
    ...cells(kind),
    "} while (x < end);",
    ...stores(kind),
    "}",
  ].join("\n");
}

/** Kinds of panels of a style. */
const KINDS: Readonly<Record<DotStyle, readonly PanelKind[]>> = {
  dot: WIDEST_KINDS,
  pair: PANEL_KINDS,
  plain: WIDEST_KINDS,
};

/** The kind of panel of a style that one is multiplied as: of those that it has none of, like a wider one. */
function kindOf(kind: PanelKind, style: DotStyle): PanelKind {
  return style === "pair" ? kind : widestKind(kind);
}

/** Whether panels of a kind of a style are multiplied in 256 bits: of some no layout is unpacked (gemv_joined.ts). */
function isJoined(kind: PanelKind, style: DotStyle): boolean {
  return CODE_LAYOUTS.some((layout) =>
    kindOf(PANEL_KINDS[panelKind(layout)]!, style) === kind &&
    !JOINED_LAYOUTS[style].includes(layout)
  );
}

/** A function that calls the kernel of a kind of panel. */
function dispatch(style: DotStyle, rows: number, joined: boolean): string[] {
  return [
    `function tile${rows}(kind: u32, ${PARAMETERS}): void {`,
    "  switch (kind) {",
    ...PANEL_KINDS.flatMap((kind, i) => {
      const own = kindOf(kind, style), { name } = own;
      if (joined && !isJoined(own, style)) return [];
      const values = "x, apart, columns, codes, scales, out, outStride, offset";
      return `    case ${i}: tile_${name}_${rows}(${values}); return;`;
    }),
    "  }",
    "}",
  ];
}

/** Rows of the tiles that V8 joins: of a four with two rows or one the others are the same again. */
const JOINED_ROWS: readonly (readonly number[])[] = [8, 4].map((n) => [...Array(n).keys()]);

/** Module `generated/tiles_{style}`, or `generated/tiles_joined_{style}`. */
export function tilesModule(style: DotStyle, joined = false): string {
  const values = "columns, codes, scales, to, outStride, offset";
  const narrow = PANEL_KINDS.reduce(
    (all, { bits }, i) => hasNibbles({ bits, style }) ? all | 1 << i : all,
    0,
  );
  return [
    simdImports(),
    ...(joined ? JOINED_ROWS : [TURNS, TWO_TURNS]).flatMap((turns) => [
      ...KINDS[style].filter((kind) => !joined || isJoined(kind, style))
        .map((kind) => tile({ ...kind, style, turns, joined })),
      ...dispatch(style, turns.length, joined),
    ]),
    "/**",
    " * Rows of fours, `stride` apart, times a panel of 16 weight rows. Of the last four, outputs of all rows are written, or,",
    ` * where there are one or two, of two${
      joined ? " or all" : ""
    }. \`offset\` is what codes are too large by, where nothing else says it (cells.ts).`,
    " */",
    `export function tiles_${joined ? "joined_" : ""}${style}` +
    `(kind: u32, rows: u32, stride: usize, x: usize, ${POINTERS}): void {`,
    joined ? `  const half: usize = 1 << kind & ${narrow} ? 16 : 32;` : "  const half: usize = 32;",
    "  for (let h: usize = 0; h < 2; h++, codes += half, scales += 64, out += 32) {",
    "    let at = x, to = out, left = rows;",
    ...joined
      ? [
        "    for (; left > 7; left -= 8, at += 2 * stride, to += 8 * outStride) {",
        `      tile8(kind, at, stride, ${values});`,
        "    }",
      ]
      : [],
    `    for (; left > ${
      joined ? 0 : 2
    }; left -= min(left, 4), at += stride, to += 4 * outStride) {`,
    `      tile4(kind, at, 0, ${values});`,
    "    }",
    joined ? "" : `    if (left) tile2(kind, at, 0, ${values});`,
    "  }",
    "}",
    "",
  ].join("\n");
}
