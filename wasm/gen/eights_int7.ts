// A register tile on weights rounded to 7 bit that V8 joins to 256 bits (planes.ts): eight activation rows, which lie in
// planes (assembly/matmul/fours.ts), times one tile of the layout. A pair is rows 0..3 and 4..7, so that weights need
// no other layout: a lane of a vector of codes is four columns of one output, which one load splats over all rows. Sums
// and bits are those of tiles_int7.ts. Groups stand in the text, a loop of four steps is 5 % slower. What else was tried:
// bench/results/kernels.md.

import { INT7_GROUP } from "../../quant/int7_groups.ts";
import { INT7_CELL_BYTES, INT7_SCALE_BYTES } from "../int7_layout.ts";
import { simdImports } from "./imports.ts";
import { halves, laneSplat, seed, spread } from "./planes.ts";
import { HALVES } from "./scales.ts";

const OUTPUTS: readonly number[] = [0, 1, 2, 3, 4, 5, 6, 7];
/** Steps of a group, and those whose sums of two fit in 16 bits. */
const STEPS = 16, RUN = 4;

/** Statements that define {name}{output}, splats of what lies as float32 at `pointer` + `at`. */
function splats(name: string, pointer: string, at: number): string[] {
  return [
    `const ${name}_0 = v128.load(${pointer}, ${at}), ${name}_1 = v128.load(${pointer}, ${
      at + 16
    });`,
    ...OUTPUTS.map((o) => `const ${name}${o} = ${laneSplat(`${name}_${o >> 2}`, o & 3)};`),
  ];
}

/** A statement for each output and half of the rows. */
function each(line: (output: number, sum: string, half: number) => string): string[] {
  return OUTPUTS.flatMap((o) => HALVES.map((h) => line(o, `${o}_${h}`, h)));
}

/** Statements that define x{step}_0 and x{step}_1, four columns of each row. */
function rows(step: number): string[] {
  return [
    `const a${step} = v128.load(x, ${32 * step}), b${step} = v128.load(x, ${32 * step + 16});`,
    ...HALVES.map((h) => {
      const [a, b] = ["a", "b"].map((plane) => spread(plane + step, h, "i16x8", "s"));
      return `const x${step}_${h} = i8x16.narrow_i16x8_s(${a}, ${b});`;
    }),
  ];
}

/** Products of some steps from `first` on, whose rows stay while all outputs pass. */
function products(first: number): string[] {
  const steps = [...Array(RUN).keys()].map((step) => first + step);
  return [
    ...steps.flatMap(rows),
    ...OUTPUTS.flatMap((o) => [
      ...steps.flatMap((step) => {
        const vector = `w${step}_${o >> 2}`, at = INT7_SCALE_BYTES + 32 * step + 16 * (o >> 2);
        return [
          ...o & 3 ? [] : [`const ${vector} = v128.load(w, ${at});`],
          `const v${step}_${o} = ${laneSplat(vector, o & 3)};`,
        ];
      }),
      ...HALVES.map((h) => {
        const sum = steps
          .map((step) => `i16x8.relaxed_dot_i8x16_i7x16_s(x${step}_${h}, v${step}_${o})`)
          .reduce((a, b) => `i16x8.add(${a}, ${b})`);
        const wide = `i32x4.dot_i16x8_s(${sum}, ONES)`, c = `c${o}_${h}`;
        return first ? `${c} = i32x4.add(${c}, ${wide});` : `let ${c} = ${wide};`;
      }),
    ]),
  ];
}

/** Statements that store rows 4·`h` on: four vectors of a row an output become as many of an output a row. */
function stores(h: number): string[] {
  return HALVES.flatMap((four) => {
    const [a, b, c, d] = [0, 1, 2, 3].map((o) => `r${4 * four + o}_${h}`);
    return ["0, 4, 1, 5", "2, 6, 3, 7"].flatMap((lanes, p) => {
      const ab = `ab${h}_${four}_${p}`, cd = `cd${h}_${four}_${p}`;
      return [
        `const ${ab} = v128.shuffle<i32>(${a}, ${b}, ${lanes}), ${cd} = v128.shuffle<i32>(${c}, ${d}, ${lanes});`,
        ...["0, 2", "1, 3"].map((lanes, row) =>
          `v128.store(out + ${4 * h + 2 * p + row} * outStride, ` +
          `v128.shuffle<i64>(${ab}, ${cd}, ${lanes}), ${16 * four});`
        ),
      ];
    });
  });
}

/** Module `generated/eights_int7`. */
export function eightsInt7Module(): string {
  return [
    simdImports(),
    "/** Eight rows that lie in planes times one tile, and a bias. */",
    "export function eight_int7(x: usize, columns: usize, w: usize, bias: usize, out: usize, outStride: usize): void {",
    "const ONES = v128.load(ONES_AT), sums = columns >> 1, end = x + 8 * columns;",
    "let xs = end;",
    ...each((_, sum) => `let f${sum} = f32x4.splat(0);`),
    "do {",
    ...halves((h) => `t${h}`, "xs + sums", 0),
    ...splats("m", "w", 32),
    ...each((o, sum, h) => `f${sum} = madd(t${h}, m${o}, f${sum});`),
    ...[...Array(STEPS / RUN).keys()].flatMap((run) => products(run * RUN)),
    ...halves((h) => `s${h}`, "xs", 0),
    ...splats("d", "w", 0),
    ...each((o, sum, h) =>
      `f${sum} = madd(f32x4.convert_i32x4_s(c${sum}), f32x4.mul(s${h}, d${o}), f${sum});`
    ),
    `x += ${8 * INT7_GROUP}; xs += 32; w += ${INT7_CELL_BYTES};`,
    "} while (x < end);",
    ...splats("b", "bias", 0),
    ...each((o, sum) => `const r${sum} = f32x4.add(f${sum}, b${o});`),
    seed("out", OUTPUTS.map((o) => [`r${o}_0`, `r${o}_1`])),
    ...HALVES.flatMap(stores),
    "}",
    "",
  ].join("\n");
}
