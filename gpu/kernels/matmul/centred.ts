// A layer norm in front of a product of floats, without a look at the whole row before the first product: with the row's
// first number p, and over all columns k,
//   y = f · (A − m · B) + C,   A = Σ (x − p) · g · w,   B = Σ g · w,   C = Σ s · w,
//   m = Σ (x − p) / K,   f = 1 / √(Σ (x − p)² / K − m² + ε),
// where all sums grow beside each other while rows and weights are read anyway, and parts of them over some columns are
// added up like those of the product. Because p is one of the row's numbers, |m| is at most √K times the deviation:
// so much is lost of the 24 bits of a sum, and not more, however far from 0 a row lies. Columns are whole steps.

import { float, wgsl } from "../../wgsl.ts";
import { sideMembers, type TileSide } from "./float_tile.ts";
import { list } from "./rows.ts";
import type { TeamSums } from "./team_sum.ts";

/** Columns that are whole steps of every product that takes such rows. */
export const CENTRED_COLUMNS = 16;

/** The norm. */
export interface Centred {
  readonly epsilon: number;
  /** Whether there are bindings `gain` and `shift`, a number a column. */
  readonly gain: boolean;
  readonly shift: boolean;
}

/** WGSL types of its bindings. */
export function centredStorage({ gain, shift }: Centred): Record<string, string> {
  return {
    ...gain && { gain: "array<vec4<f32>>" },
    ...shift && { shift: "array<vec4<f32>>" },
  };
}

/** `deviation(moments, columns)` → m and f, of Σ (x − p) and Σ (x − p)². */
function deviation({ epsilon }: Centred, columns: number): string {
  return wgsl`
    fn deviation(moments: vec2<f32>) -> vec2<f32> {
      let means = moments / ${float(columns)};
      let variance = max(means.y - means.x * means.x, 0.0);
      return vec2<f32>(means.x, 1.0 / sqrt(variance + ${float(epsilon)}));
    }
  `;
}

/** Products of few rows: of each quad of columns, and of all sums in the end. */
export interface CentredRows {
  readonly declarations: string;
  /** Statements before the loop. */
  readonly start: readonly string[];
  /** Statements that change `x{r}_{q}` and `w{o}_{q}`, which are variables, at quad `column` of the columns. */
  step(q: number, column: string): readonly string[];
  /** Sums beside those of the products. */
  readonly sums: number;
  /** A result, see TeamSums. */
  readonly result: NonNullable<TeamSums["result"]>;
}

/** The parts for so many rows and outputs at once. */
export function centredRows(
  norm: Centred,
  { columns, rows, outputs }: {
    readonly columns: number;
    readonly rows: number;
    readonly outputs: number;
  },
): CentredRows {
  const products = rows * outputs, lines = products + 2 * rows;
  return {
    declarations: wgsl`
      ${deviation(norm, columns)}

      fn centred(sum: f32, moments: vec2<f32>, line: vec2<f32>) -> f32 {
        let found = deviation(moments);
        return found.y * (sum - found.x * line.x) + line.y;
      }
    `,
    start: list(rows, (r) => `let first${r} = vec4<f32>(x_quad(row${r}, 0u).x);`),
    step: (q, column) => [
      ...list(rows, (r) =>
        wgsl`
          x${r}_${q} -= first${r};
          sum${products + 2 * r} += dot(x${r}_${q}, vec4<f32>(1.0));
          sum${products + 2 * r + 1} += dot(x${r}_${q}, x${r}_${q});
        `),
      ...norm.shift ? [`let shift_${q} = shift[${column}];`] : [],
      ...norm.gain ? [`let gain_${q} = gain[${column}];`] : [],
      ...list(outputs, (o) =>
        wgsl`
          ${norm.shift ? `sum${lines + 2 * o + 1} += dot(w${o}_${q}, shift_${q});` : ""}
          ${norm.gain ? `w${o}_${q} *= gain_${q};` : ""}
          sum${lines + 2 * o} += dot(w${o}_${q}, vec4<f32>(1.0));
        `),
    ],
    sums: 2 * (rows + outputs),
    result(total) {
      const pair = (first: number, of: "row" | "output") =>
        `vec2<f32>(${[0, 1].map((i) => total({ first: first + i, of, times: 2 })).join(", ")})`;
      const sum = total({ first: 0, of: "result", times: 1 });
      return `centred(${sum}, ${pair(products, "row")}, ${pair(lines, "output")})`;
    },
  };
}

/** Products by tiles: see `sideStep` of float_tile.ts for what is fetched and stored. */
export interface CentredTile {
  readonly declarations: string;
  /** Variables of all steps. */
  readonly held: readonly string[];
  /** Statements where unit `unit` of a line is fetched as item i, and where a side's item is stored. */
  fetchLine(i: number, unit: string): readonly string[];
  storeRow(i: number): readonly string[];
  storeLine(i: number): readonly string[];
  /** Statements behind the loop, and the floats that they define: sums over the columns of a split. */
  readonly behind: readonly string[];
  readonly floats: readonly string[];
  /** Statements that make results of `sum{i}_{j}`, once all are sums over all columns. */
  readonly results: readonly string[];
}

/** A side, the units of a member in a step and the quads of a unit. */
interface Side {
  readonly side: TileSide;
  readonly units: number;
  readonly quads: number;
}

/** What a tile is made of. */
interface TileSides {
  readonly columns: number;
  readonly threads: number;
  readonly rows: Side;
  readonly lines: Side;
}

const itemsOf = ({ side, units }: Side): number => units * sideMembers(side);

/** The i-th item of an invocation. */
const itemOf = (i: number, threads: number): string =>
  i === 0 ? "thread" : `thread + ${i * threads}u`;

/** The parts for a tile; lines and rows lie apart as float_tile.ts has them. */
export function centredTile(norm: Centred, sides: TileSides): CentredTile {
  const { threads, rows, lines } = sides;
  const each = (side: Side) => Math.ceil(itemsOf(side) / threads);
  const heldOf = (name: string) =>
    list(
      each(lines) * lines.quads,
      (n) => `var ${name}_held${Math.floor(n / lines.quads)}_${n % lines.quads} = vec4<f32>();`,
    );
  return {
    held: [
      ...list(each(rows), (i) =>
        wgsl`
          let first${i} = vec4<f32>(
            x_quad(min(row_tile + (${itemOf(i, threads)}) / ${rows.units}u, params.rows - 1u), 0u).x
          );
          var row_sums${i} = vec2<f32>();
        `),
      ...list(each(lines), (i) => `var line_sums${i} = vec2<f32>();`),
      ...norm.gain ? heldOf("gain") : [],
      ...norm.shift ? heldOf("shift") : [],
    ],
    fetchLine: (i, unit) =>
      list(lines.quads, (q) => {
        const column = `${lines.quads}u * ${unit} + ${q}u`;
        return [
          ...norm.gain ? [`gain_held${i}_${q} = gain[${column}];`] : [],
          ...norm.shift ? [`shift_held${i}_${q} = shift[${column}];`] : [],
        ].join("\n");
      }),
    storeRow: (i) =>
      list(rows.quads, (q) => {
        const x = `${rows.side.tile}_held${i}_${q}`;
        return wgsl`
          ${x} -= first${i};
          row_sums${i} += vec2<f32>(dot(${x}, vec4<f32>(1.0)), dot(${x}, ${x}));
        `;
      }),
    storeLine: (i) =>
      list(lines.quads, (q) => {
        const w = `${lines.side.tile}_held${i}_${q}`;
        return wgsl`
          ${norm.shift ? `line_sums${i}.y += dot(${w}, shift_held${i}_${q});` : ""}
          ${norm.gain ? `${w} *= gain_held${i}_${q};` : ""}
          line_sums${i}.x += dot(${w}, vec4<f32>(1.0));
        `;
      }),
    ...sumsOfTile(norm, sides),
  };
}

/** What becomes of the sums that invocations have made of their items. */
function sumsOfTile(
  norm: Centred,
  { columns, threads, rows, lines }: TileSides,
): Pick<CentredTile, "declarations" | "behind" | "floats" | "results"> {
  const height = sideMembers(rows.side), width = sideMembers(lines.side);
  const values = 2 * (height + width), own = Math.ceil(values / threads);
  /** A statement for the k-th item of an invocation, of `count` in all. */
  const guarded = (k: number, count: number, text: string) =>
    (k + 1) * threads <= count ? text : `if (${itemOf(k, threads)} < ${count}u) { ${text} }`;
  const kept = (side: Side, name: string) =>
    list(
      Math.ceil(itemsOf(side) / threads),
      (i) => guarded(i, itemsOf(side), `${name}_parts[${itemOf(i, threads)}] = ${name}_sums${i};`),
    );
  const added = ({ units }: Side, name: string, value: string) =>
    list(units, (u) => `${name}_parts[${value} / 2u * ${units}u + ${u}u][${value} % 2u]`).join(
      " + ",
    );
  const place = (i: number, { lanes }: TileSide, lane: string) =>
    `4u * ${lane} + ${(i >> 2) * 4 * lanes + (i & 3)}u`;
  const lineSums = (j: number, component: number) => {
    const sums = list(
      4,
      (c) =>
        `tile_sums[${2 * height + component}u + 2u * (${place(4 * j + c, lines.side, "across")})]`,
    );
    return `vec4<f32>(${sums.join(", ")})`;
  };
  const quads = lines.side.block / 4;
  return {
    declarations: wgsl`
      var<workgroup> row_parts: array<vec2<f32>, ${itemsOf(rows)}>;
      var<workgroup> line_parts: array<vec2<f32>, ${itemsOf(lines)}>;
      var<workgroup> tile_sums: array<f32, ${values}>;

      ${deviation(norm, columns)}
    `,
    behind: [
      ...kept(rows, "row"),
      ...kept(lines, "line"),
      "workgroupBarrier();",
      ...list(own, (k) =>
        wgsl`
          var own${k} = 0.0;
          {
            let value = ${itemOf(k, threads)};
            if (value < ${2 * height}u) {
              own${k} = ${added(rows, "row", "value")};
            } else if (value < ${values}u) {
              own${k} = ${added(lines, "line", `(value - ${2 * height}u)`)};
            }
          }
        `),
    ],
    floats: list(own, (k) => `own${k}`),
    results: [
      ...list(own, (k) => guarded(k, values, `tile_sums[${itemOf(k, threads)}] = own${k};`)),
      "workgroupBarrier();",
      ...list(rows.side.block, (i) =>
        wgsl`
          let found${i} = deviation(vec2<f32>(
            tile_sums[2u * (${place(i, rows.side, "down")})],
            tile_sums[2u * (${place(i, rows.side, "down")}) + 1u],
          ));
        `),
      ...list(quads, (j) =>
        wgsl`
          let gains${j} = ${lineSums(j, 0)};
          let shifts${j} = ${lineSums(j, 1)};
        `),
      ...list(rows.side.block * quads, (n) => {
        const i = Math.floor(n / quads), j = n % quads, sum = `sum${i}_${j}`;
        return `${sum} = found${i}.y * (${sum} - found${i}.x * gains${j}) + shifts${j};`;
      }),
    ],
  };
}
