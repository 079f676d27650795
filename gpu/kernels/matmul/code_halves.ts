// Rows of 8-bit codes as what subgroup matrices multiply (gemm_matrix.ts), made once before a product and not by each of its tiles:
// plain float16, scales applied. Sixteen rows, which are one matrix, are divided by a number that they share, so that their
// sums are multiplied by it as a matrix: the largest of their scales, brought near the end of float16's range. A row a
// thousandth as large has all its eleven bits still.

import type { Shader } from "../../kernel.ts";
import { float, GROUP_MAIN, wgsl } from "../../wgsl.ts";
import { UNIT } from "./matrix_tile.ts";
import { list } from "./rows.ts";

const WORKGROUP = 128;
/** Largest magnitude of a half that is made: a code has at most 127 steps. */
const LARGEST = 32512;
/** What is divided by less is zero. */
const LEAST = 2 ** -120;

/**
 * The shader; bindings x, y: rows of halves, of each four columns the first and the third first, and tops: what each sixteen rows
 * of the product are multiplied by. Uniforms: rows, groups of a row, vectors of sixteen bytes of a row of x; workgroups: rows.
 */
export function codeHalves(): Shader {
  return {
    name: "code_halves",
    storage: { x: "array<vec4<u32>>", y: "array<vec4<u32>>", tops: "array<f32>" },
    writes: ["y", "tops"],
    uniforms: { rows: "u32", groups: "u32", stride: "u32" },
    code: wgsl`
      var<workgroup> largest: array<f32, ${WORKGROUP}>;

      fn x_scale(row: u32, group: u32) -> f32 {
        let pairs = x[row * params.stride + 2u * params.groups + (group >> 1u)];
        return bitcast<f32>(select(pairs.x, pairs.z, (group & 1u) == 1u));
      }

      fn halves(word: u32, scale: f32) -> vec2<u32> {
        let codes = vec4<i32>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
        let numbers = vec4<f32>(codes) * scale;
        return vec2<u32>(pack2x16float(numbers.xz), pack2x16float(numbers.yw));
      }

      @compute @workgroup_size(${WORKGROUP})
      ${GROUP_MAIN}
        let row = min(flat_workgroup(group, groups), params.rows - 1u);
        let unit = row / ${UNIT}u;
        var own = 0.0;
        for (var at = lane % 32u; at < params.groups; at += 32u) {
          ${
      list(UNIT / (WORKGROUP / 32), (i) =>
        wgsl`
          let row${i} = min(unit * ${UNIT}u + lane / 32u + ${
          i * WORKGROUP / 32
        }u, params.rows - 1u);
          let scale${i} = x_scale(row${i}, at);
        `)
    }
          // A row that holds what is no number spoils none of the others.
          ${
      list(
        UNIT / (WORKGROUP / 32),
        (i) => `own = max(own, select(scale${i}, 0.0, bitcast<u32>(scale${i}) >= 0x7f800000u));`,
      )
    }
        }
        largest[lane] = own;
        for (var other = ${WORKGROUP / 2}u; other > 0u; other >>= 1u) {
          workgroupBarrier();
          if (lane < other) { largest[lane] = max(largest[lane], largest[lane + other]); }
        }
        workgroupBarrier();
        let top = largest[0] * ${float(127 / LARGEST)};
        let inverse = select(0.0, 1.0 / top, top > ${float(LEAST)});
        for (var at = lane; at < 2u * params.groups; at += ${WORKGROUP}u) {
          let codes = x[row * params.stride + at];
          let scale = x_scale(row, at >> 1u) * inverse;
          let to = 2u * (row * 2u * params.groups + at);
          y[to] = vec4<u32>(halves(codes.x, scale), halves(codes.y, scale));
          y[to + 1u] = vec4<u32>(halves(codes.z, scale), halves(codes.w, scale));
        }
        if (lane == 0u && row % ${UNIT}u == 0u) { tops[unit] = top; }
      }
    `,
  };
}
