// A layer norm in front of a product of floats, without a look at the whole row before the first product: with the row's
// first number p, and over all columns k,
//   y = f · (A − m · B) + C,   A = Σ (x − p) · g · w,   B = Σ g · w,   C = Σ s · w,
//   m = Σ (x − p) / K,   f = 1 / √(Σ (x − p)² / K − m² + ε),
// where all sums grow beside each other while rows and weights are read anyway, and parts of them over some columns are
// added up like those of the product. Because p is one of the row's numbers, |m| is at most √K times the deviation:
// so much is lost of the 24 bits of a sum, and not more, however far from 0 a row lies. Columns are whole steps.

import { float, wgsl } from "../../wgsl.ts";
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
      let variance = means.y - means.x * means.x;
      // A maximum takes 0 for what is no number, and a driver a comparison for a maximum: bits are neither.
      let is_none = (bitcast<u32>(variance) & 0x7fffffffu) > 0x7f800000u;
      let seen = bitcast<u32>(max(variance, 0.0) + ${
    float(epsilon)
  }) | select(0u, 0x7fc00000u, is_none);
      return vec2<f32>(means.x, 1.0 / sqrt(bitcast<f32>(seen)));
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
