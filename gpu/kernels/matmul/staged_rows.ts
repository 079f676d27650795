// Float rows by way of workgroup memory, for products whose lanes take 32 columns at once. A lane's quads lie side by
// side in a row, so that neighbouring lanes read x from places 128 bytes apart, of which every read moves a whole
// line; and each team of a workgroup reads all of it. Here the workgroup reads a part of the row in order, once, and
// puts it down by quads: quad q of all units, then quad q + 1. One vector more between them keeps both the writes
// and the reads on different banks.

import { wgsl } from "../../wgsl.ts";
import { list } from "./rows.ts";

/** What is staged. */
export interface StagedShape {
  readonly workgroup: number;
  readonly lanes: number;
  readonly unroll: number;
  /** Rows of x that a workgroup takes. */
  readonly rows: number;
  /** Units of a row, and quads of one. */
  readonly count: number;
  readonly quads: number;
}

/** Parts of a shader that reads x from workgroup memory. */
export interface StagedRows {
  /** Module scope. */
  readonly declarations: string;
  /** Quad `quad` of the unit of a step, of row `row`. */
  at(row: number, quad: number): string;
  /** The loop of a team over a row; its `step` reads `unit`. Reached by all invocations of a workgroup. */
  loop(step: string): string;
}

/** Staging for a shape; needs `x_quad(row, quad)` and `row0`, … */
export function stagedRows(shape: StagedShape): StagedRows {
  const { workgroup, lanes, unroll, rows, count, quads } = shape;
  const chunk = Math.min(count, lanes * unroll);
  const stride = chunk + 1;
  const whole = Math.floor(count / chunk), rest = count % chunk;

  const bring = (start: string, units: number) =>
    wgsl`
      workgroupBarrier();
      for (var i = thread; i < ${units * quads}u; i += ${workgroup}u) {
        let at = i % ${quads}u * ${stride}u + i / ${quads}u;
        ${
      list(
        rows,
        (r) => `x_tile[${r * quads * stride}u + at] = x_quad(row${r}, ${quads}u * ${start} + i);`,
      )
    }
      }
      workgroupBarrier();
    `;
  const steps = (start: string, units: number, step: string) =>
    Array.from({ length: Math.ceil(units / lanes) }, (_, i) => {
      const body = wgsl`
        let place = lane + ${i * lanes}u;
        let unit = ${start} + place;
        ${step}
      `;
      const left = units - i * lanes;
      return left < lanes
        ? wgsl`
          if (lane < ${left}u) {
            ${body}
          }
        `
        : wgsl`
          {
            ${body}
          }
        `;
    });
  return {
    declarations: `var<workgroup> x_tile: array<vec4<f32>, ${rows * quads * stride}>;`,
    at: (row, quad) => `x_tile[${(row * quads + quad) * stride}u + place]`,
    loop: (step) =>
      wgsl`
        for (var start = 0u; start < ${whole * chunk}u; start += ${chunk}u) {
          ${bring("start", chunk)}
          ${steps("start", chunk, step)}
        }
        ${
        rest === 0 ? "" : wgsl`
          ${bring(`${whole * chunk}u`, rest)}
          ${steps(`${whole * chunk}u`, rest, step)}
        `
      }
      `,
  };
}
