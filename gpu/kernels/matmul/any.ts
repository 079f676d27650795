// Products of two computed matrices and of stacks of them: neither is packed, either may be read transposed. A
// workgroup makes a tile of 64 × 64, each invocation a block of 4 × 4 in registers; a step brings 16 columns of
// both sides into workgroup memory, where rows lie side by side whatever they did before.

import type { Shader } from "../../kernel.ts";
import { mainOf, wgsl } from "../../wgsl.ts";

/** Rows and columns of a tile. */
export const MATMUL_ANY_TILE = 64;

/**
 * y = alpha · a · b. Uniforms: the sizes `rows`, `inner`, `columns`; steps of `a` from row to row and along one, of `b`
 * along a column and from one to the next; `batch` products and, of both sides, the steps from one to the next and from
 * one group of `batch` to the next. Workgroups: tiles of columns, tiles of rows, products.
 */
export const matmulAnyShader: Shader = {
  name: "matmul_any",
  storage: { a: "array<f32>", b: "array<f32>", y: "array<f32>" },
  writes: ["y"],
  uniforms: {
    ...{ rows: "u32", inner: "u32", columns: "u32", batch: "u32" },
    ...{ a_row: "u32", a_inner: "u32", a_batch: "u32", a_outer: "u32" },
    ...{ b_inner: "u32", b_column: "u32", b_batch: "u32", b_outer: "u32" },
    alpha: "f32",
  },
  code: wgsl`
    var<workgroup> a_tile: array<vec4<f32>, 256>;
    var<workgroup> b_tile: array<vec4<f32>, 256>;

    @compute @workgroup_size(256)
    ${mainOf({ group: "group", lane: "lane" })}
      let outer = group.z / params.batch;
      let inner_batch = group.z % params.batch;
      let a_at = outer * params.a_outer + inner_batch * params.a_batch;
      let b_at = outer * params.b_outer + inner_batch * params.b_batch;
      let across = lane % 16u;
      let down = lane / 16u;
      let quad = lane % 16u * 4u;
      let k = lane / 16u;
      var sums: array<vec4<f32>, 4>;
      for (var first = 0u; first < params.inner; first += 16u) {
        var a_quad = vec4<f32>(0.0);
        var b_quad = vec4<f32>(0.0);
        if (first + k < params.inner) {
          for (var i = 0u; i < 4u; i++) {
            let row = group.y * 64u + quad + i;
            if (row < params.rows) {
              a_quad[i] = a[a_at + row * params.a_row + (first + k) * params.a_inner];
            }
            let column = group.x * 64u + quad + i;
            if (column < params.columns) {
              b_quad[i] = b[b_at + (first + k) * params.b_inner + column * params.b_column];
            }
          }
        }
        workgroupBarrier();
        a_tile[lane] = a_quad;
        b_tile[lane] = b_quad;
        workgroupBarrier();
        for (var step = 0u; step < 16u; step++) {
          let left = a_tile[step * 16u + down];
          let right = b_tile[step * 16u + across];
          sums[0] += left.x * right;
          sums[1] += left.y * right;
          sums[2] += left.z * right;
          sums[3] += left.w * right;
        }
      }
      for (var i = 0u; i < 4u; i++) {
        let row = group.y * 64u + down * 4u + i;
        if (row >= params.rows) { continue; }
        for (var j = 0u; j < 4u; j++) {
          let column = group.x * 64u + across * 4u + j;
          if (column < params.columns) {
            y[(group.z * params.rows + row) * params.columns + column] = params.alpha * sums[i][j];
          }
        }
      }
    }
  `,
};
