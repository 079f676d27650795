// Convolution as a product of matrices that are never laid out (implicit GEMM): filters by places, over channels and taps
// of the window. A workgroup takes a tile of filters and of places of one group; a chunk of the weights and of the
// elements that the places see goes through workgroup memory. A window of one place is a plain product.

import type { Shader } from "../../kernel.ts";
import { mainOf, wgsl } from "../../wgsl.ts";
import { epilogueFunction, WINDOW_UNIFORMS } from "../windows.ts";

/** Places of a tile. */
export const GEMM_PLACES = 64;

const SIZE = 256, CHUNK = 16, PITCH = CHUNK + 1;

/** Filters of a tile: `rows` for each of 16 rows of invocations. */
export function gemmFilters(rows: number): number {
  return rows * SIZE / CHUNK;
}

/**
 * Uniforms as of `convShader`, `places` of a result's plane, and `inner`: channels of a group times taps. Workgroups:
 * tiles of places, of filters, groups of all images.
 */
export function convGemmShader(
  { hasBias, activation, rows }: {
    readonly hasBias: boolean;
    readonly activation: string;
    /** Filters of an invocation. */
    readonly rows: number;
  },
): Shader {
  const own = Array.from({ length: rows }, (_, row) => row);
  const filters = gemmFilters(rows);
  return {
    name: "conv_gemm",
    storage: Object.fromEntries(
      ["x", "weight", ...hasBias ? ["bias"] : [], "y"].map((name) => [name, "array<f32>"]),
    ),
    writes: ["y"],
    uniforms: {
      ...WINDOW_UNIFORMS,
      ...{ filters: "u32", groups: "u32", group_filters: "u32", group_channels: "u32" },
      ...{ places: "u32", inner: "u32" },
    },
    code: wgsl`
      ${epilogueFunction(activation)}

      var<workgroup> weights: array<f32, ${filters * PITCH}>;
      var<workgroup> seen: array<f32, ${CHUNK * GEMM_PLACES}>;

      // Where the window of a place of the result begins.
      fn origin_of(place: u32) -> vec3<i32> {
        let w = place % params.out_width;
        let rest = place / params.out_width;
        let out = vec3<i32>(vec3<u32>(rest / params.out_height, rest % params.out_height, w));
        return out * vec3<i32>(params.stride_d, params.stride_h, params.stride_w) -
          vec3<i32>(params.begin_d, params.begin_h, params.begin_w);
      }

      @compute @workgroup_size(${SIZE})
      ${mainOf({ group: "group", lane: "lane" })}
        let x_lane = lane % ${CHUNK}u;
        let y_lane = lane / ${CHUNK}u;
        let first_place = group.x * ${GEMM_PLACES}u;
        let first_filter = group.y * ${filters}u;
        let of_group = group.z % params.groups;
        let size = vec3<i32>(params.depth, params.height, params.width);
        let area = u32(size.x * size.y * size.z);
        let channels = group.z * params.group_channels;
        var origins: array<vec3<i32>, 4>;
        for (var j = 0u; j < 4u; j++) { origins[j] = origin_of(first_place + x_lane + ${CHUNK}u * j); }
        ${own.map((row) => `var sum${row} = vec4<f32>();`)}
        for (var first = 0u; first < params.inner; first += ${CHUNK}u) {
          workgroupBarrier();
          let inner = first + x_lane;
          for (var i = y_lane; i < ${filters}u; i += ${SIZE / CHUNK}u) {
            var element = 0.0;
            if (first_filter + i < params.group_filters && inner < params.inner) {
              let filter_at = of_group * params.group_filters + first_filter + i;
              element = weight[filter_at * params.inner + inner];
            }
            weights[i * ${PITCH}u + x_lane] = element;
          }
          let row = i32(first + y_lane);
          let in_plane = row / params.kernel_w;
          let in_depth = in_plane / params.kernel_h;
          let step = vec3<i32>(in_depth % params.kernel_d, in_plane % params.kernel_h, row % params.kernel_w) *
            vec3<i32>(params.dilation_d, params.dilation_h, params.dilation_w);
          let plane = (channels + u32(in_depth / params.kernel_d)) * area;
          for (var j = 0u; j < 4u; j++) {
            let at = origins[j] + step;
            var element = 0.0;
            if (u32(row) < params.inner && all(at >= vec3<i32>(0)) && all(at < size)) {
              element = x[plane + u32((at.x * size.y + at.y) * size.z + at.z)];
            }
            seen[y_lane * ${GEMM_PLACES}u + x_lane + ${CHUNK}u * j] = element;
          }
          workgroupBarrier();
          for (var i = 0u; i < ${CHUNK}u; i++) {
            let at = i * ${GEMM_PLACES}u + x_lane;
            let elements = vec4<f32>(seen[at], seen[at + 16u], seen[at + 32u], seen[at + 48u]);
            ${
      own.map((row) =>
        `sum${row} += weights[(y_lane * ${rows}u + ${row}u) * ${PITCH}u + i] * elements;`
      )
    }
          }
        }
        let sums = array<vec4<f32>, ${rows}>(${own.map((row) => `sum${row}`).join(", ")});
        for (var i = 0u; i < ${4 * rows}u; i++) {
          let f = first_filter + y_lane * ${rows}u + i / 4u;
          let place = first_place + x_lane + ${CHUNK}u * (i % 4u);
          if (f < params.group_filters && place < params.places) {
            let sum = sums[i / 4u][i % 4u]${
      hasBias ? " + bias[of_group * params.group_filters + f]" : ""
    };
            y[(group.z * params.group_filters + f) * params.places + place] = epilogue(sum);
          }
        }
      }
    `,
  };
}
