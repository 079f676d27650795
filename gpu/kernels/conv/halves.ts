// Convolutions by filters of float16 on subgroup matrices (matmul/halves_tile.ts), as a product that is never laid out: places
// by filters, over taps of the window and channels. Elements of x become two halves first, the channels of a place one behind
// the other, so that a step is 32 channels of one tap, and places outside of the plane are zeros. Filters are rearranged likewise
// while loading. Over large planes minimal filtering (winograd.ts) is faster: on an H200 it makes 529 GFLOP of Stable Diffusion's
// network in 5.4 ms, this shader all 800 in 14.7.

import type { Shader } from "../../kernel.ts";
import { float, GROUP_MAIN, mainOf, wgsl } from "../../wgsl.ts";
import {
  EIGHT,
  HALVES_FACTOR,
  type HalvesParts,
  LARGEST_HALF,
  putHalves,
} from "../matmul/halves.ts";
import { EIGHTS, halvesProduct, type HalvesTile } from "../matmul/halves_tile.ts";
import { STEP } from "../matmul/matrix_tile.ts";
import { list } from "../matmul/rows.ts";
import { epilogueFunction } from "../windows.ts";
import { filterReader } from "./filter_reader.ts";

/** Parts of an image whose largest magnitudes are looked for beside each other. */
export const TOP_PARTS = 128;

const WORKGROUP = 256;
/** Elements that an invocation fetches at once. */
const AT_ONCE = 8;

/** x to the largest magnitudes of its parts [N, parts]. Uniforms: `size` of an image. Workgroups: parts, images. */
export const planeTopsShader: Shader = {
  name: "plane_tops",
  storage: { x: "array<f32>", tops: "array<f32>" },
  writes: ["tops"],
  uniforms: { size: "u32" },
  code: wgsl`
    var<workgroup> largest: array<f32, ${WORKGROUP}>;

    @compute @workgroup_size(${WORKGROUP})
    ${mainOf({ group: "group", lane: "lane" })}
      let share = (params.size + ${TOP_PARTS - 1}u) / ${TOP_PARTS}u;
      let end = min(params.size, (group.x + 1u) * share);
      var own = 0.0;
      for (var at = group.x * share + lane; at < end; at += ${AT_ONCE * WORKGROUP}u) {
        ${
    list(AT_ONCE, (n) =>
      `let x${n} = x[group.y * params.size + min(at + ${n * WORKGROUP}u, end - 1u)];`)
  }
        ${list(AT_ONCE, (n) => `own = max(own, abs(x${n}));`)}
      }
      largest[lane] = own;
      for (var other = ${WORKGROUP / 2}u; other > 0u; other >>= 1u) {
        workgroupBarrier();
        if (lane < other) { largest[lane] = max(largest[lane], largest[lane + other]); }
      }
      if (lane == 0u) { tops[group.y * ${TOP_PARTS}u + group.x] = largest[0]; }
    }
  `,
};

/** Places of a workgroup of `planeHalves`. */
export const HALVES_PLACES = WORKGROUP / EIGHTS;

/**
 * x [N, C, places] to halves [N, places, parts, channels], whole steps of channels, divided by a part of the largest magnitude of
 * the image, which goes to `tops`. Uniforms: `channels`, `eighths` of them in a place of y, `places`. Workgroups: blocks of places, steps of
 * channels, images.
 */
export function planeHalves(parts: HalvesParts): Shader {
  return {
    name: "plane_halves",
    storage: {
      ...{ x: "array<f32>", part_tops: "array<vec4<f32>>" },
      ...{ y: "array<vec4<u32>>", tops: "array<f32>" },
    },
    writes: ["y", "tops"],
    uniforms: { channels: "u32", eighths: "u32", places: "u32" },
    code: wgsl`
    ${EIGHT}

    var<workgroup> elements: array<array<f32, ${STEP + 1}>, ${HALVES_PLACES}>;

    @compute @workgroup_size(${WORKGROUP})
    ${mainOf({ group: "group", lane: "lane" })}
      var most = vec4<f32>();
      for (var i = 0u; i < ${TOP_PARTS / 4}u; i += 8u) {
        ${list(8, (n) => `let most${n} = part_tops[group.z * ${TOP_PARTS / 4}u + i + ${n}u];`)}
        ${list(8, (n) => `most = max(most, most${n});`)}
      }
      let top = max(max(most.x, most.y), max(most.z, most.w));
      let inverse = ${HALVES_FACTOR};
      let column = lane % ${HALVES_PLACES}u;
      let seen = group.x * ${HALVES_PLACES}u + column;
      ${
      list(STEP * HALVES_PLACES / WORKGROUP, (n) =>
        wgsl`
        {
          let row = lane / ${HALVES_PLACES}u + ${n * WORKGROUP / HALVES_PLACES}u;
          let channel = group.y * ${STEP}u + row;
          let is_inside = channel < params.channels && seen < params.places;
          let at = (group.z * params.channels + channel) * params.places + seen;
          elements[column][row] = select(0.0, x[select(0u, at, is_inside)], is_inside) * inverse;
        }
      `)
    }
      workgroupBarrier();
      let own = lane / ${EIGHTS}u;
      let eighth = lane % ${EIGHTS}u;
      let place = group.x * ${HALVES_PLACES}u + own;
      if (place < params.places) {
        let first = 8u * eighth;
        ${
      ["low", "high"].map((name, half) =>
        `let ${name} = vec4<f32>(${
          list(4, (i) => `elements[own][first + ${4 * half + i}u]`).join(", ")
        });`
      )
    }
        let to = (group.z * params.places + place) * ${parts}u * params.eighths +
          group.y * ${EIGHTS}u + eighth;
        ${putHalves(parts, "params.eighths")}
      }
      if (group.x == 0u && group.y == 0u && lane == 0u) {
        tops[group.z] = top / ${float(LARGEST_HALF)};
      }
    }
  `,
  };
}

/** Invocations of a workgroup of `filterHalvesShader`. */
export const FILTER_BLOCK = 64;

/**
 * Packed filters [F, C, taps] to halves [F, taps, channels]. Uniforms: `count` of vectors of eight, `channels`, `taps`, `eighths`
 * of the channels of a tap.
 */
export function filterHalvesShader(layout: string): Shader {
  const reader = filterReader(layout);
  return {
    name: `filter_halves_${layout}`,
    storage: { ...reader.storage, y: "array<vec4<u32>>" },
    writes: ["y"],
    uniforms: { count: "u32", channels: "u32", taps: "u32", eighths: "u32" },
    code: wgsl`
      ${reader.code}

      ${EIGHT}

      @compute @workgroup_size(${FILTER_BLOCK})
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * ${FILTER_BLOCK}u + lane;
        if (i >= params.count) { return; }
        let first = 8u * (i % params.eighths);
        let tap = i / params.eighths % params.taps;
        let own = i / params.eighths / params.taps;
        ${
      list(8, (n) =>
        wgsl`
          let is_inside${n} = first + ${n}u < params.channels;
          let w${n} = select(
            0.0, element(own, select(0u, first + ${n}u, is_inside${n}), tap), is_inside${n},
          );
        `)
    }
        y[i] = eight(vec4<f32>(w0, w1, w2, w3), vec4<f32>(w4, w5, w6, w7));
      }
    `,
  };
}

/** What a shader is made for. */
export interface ConvHalvesParams extends HalvesTile {
  readonly hasBias: boolean;
  readonly activation: string;
  /** Whether parts of the sums are made, [splits, results]; they know no bias and no activation. */
  readonly isSplit: boolean;
  /** How often each element of x stands along each side. */
  readonly repeats: readonly [rows: number, columns: number];
}

/**
 * The shader; bindings x [N, places of x, parts, channels], tops [N], w [F, taps, channels], bias, y [splits, N, F, places].
 * Uniforms: `eighths` of the channels of a tap, `taps` and the window along both axes; sizes of x as it is seen; `out_width`,
 * `places` of y and those of all images, filters, `results`, `splits`. Workgroups: tiles of places, of filters, splits.
 */
export function convHalvesShader(params: ConvHalvesParams): Shader {
  const { hasBias, activation, isSplit, subgroupSize, down, across } = params;
  const { repeats: [rows, columns] } = params, threads = subgroupSize * down * across;
  const matrices = 16 * down * params.unitRows;
  const own = Math.ceil(EIGHTS * matrices / threads);
  const result = isSplit ? "sum * top" : `epilogue(sum * top${hasBias ? " + own_bias" : ""})`;
  return halvesProduct(params, {
    name: "conv_halves",
    storage: {
      ...{ x: "array<vec4<u32>>", tops: "array<f32>", w: "array<vec4<u32>>" },
      ...hasBias && !isSplit && { bias: "array<f32>" },
      y: "array<f32>",
    },
    uniforms: {
      ...{ eighths: "u32", taps: "u32", kernel_w: "u32", height: "i32", width: "i32" },
      ...{ stride_h: "i32", stride_w: "i32", dilation_h: "i32", dilation_w: "i32" },
      ...{ begin_h: "i32", begin_w: "i32", out_width: "u32", places: "u32", all_places: "u32" },
      ...{ filters: "u32", results: "u32", splits: "u32" },
    },
    functions: wgsl`
      ${isSplit ? "" : epilogueFunction(activation)}

      struct Place {
        // The first place of its image in x.
        image: u32,
        // Where the window begins in x as it is seen; it may lie before the plane.
        at: vec2<i32>,
      }

      fn place_of(number: u32) -> Place {
        if (number >= params.all_places) { return Place(0u, vec2<i32>(-${2 ** 30})); }
        let image = number / params.places * u32(params.height / ${rows} * (params.width / ${columns}));
        let place = number % params.places;
        let at = vec2<i32>(vec2<u32>(place / params.out_width, place % params.out_width)) *
          vec2<i32>(params.stride_h, params.stride_w);
        return Place(image, at - vec2<i32>(params.begin_h, params.begin_w));
      }

      fn x_eight(place: Place, tap: vec2<i32>, eighth: u32) -> vec4<u32> {
        let at = place.at + tap;
        let is_inside = at.x >= 0 && at.y >= 0 && at.x < params.height && at.y < params.width;
        let source = place.image + u32(at.x / ${rows} * (params.width / ${columns}) + at.y / ${columns});
        let first = source * ${params.parts}u * params.eighths;
        return select(vec4<u32>(), x[select(0u, first + eighth, is_inside)], is_inside);
      }
    `,
    steps: `params.taps * params.eighths / ${EIGHTS}u`,
    prologue: [
      ...list(
        own,
        (n) => `let place${n} = place_of(row_tile + (thread + ${n * threads}u) / ${EIGHTS}u);`,
      ),
      // Counted, not divided: in each step that would take as long as the indices.
      wgsl`
        var channel = begin * ${EIGHTS}u % params.eighths;
        var tap_row = i32(begin * ${EIGHTS}u / params.eighths / params.kernel_w);
        var tap_column = i32(begin * ${EIGHTS}u / params.eighths % params.kernel_w);
      `,
    ],
    step: wgsl`
      let tap = vec2<i32>(tap_row, tap_column) * vec2<i32>(params.dilation_h, params.dilation_w);
    `,
    row: ({ item, n, part }) =>
      `x_eight(place${n}, tap, ${part ? `${part}u * params.eighths + ` : ""}channel + ` +
      `${item} % ${EIGHTS}u)`,
    line: ({ item }) =>
      `w[(min(line_tile + ${item} / ${EIGHTS}u, params.filters - 1u) * steps + next) * ${EIGHTS}u + ` +
      `${item} % ${EIGHTS}u]`,
    stepped: wgsl`
      channel += ${EIGHTS}u;
      if (channel == params.eighths) {
        channel = 0u;
        tap_column++;
        if (tap_column == i32(params.kernel_w)) {
          tap_column = 0;
          tap_row++;
        }
      }
    `,
    along: "rows",
    reads: {
      top: "tops[min(row, params.all_places - 1u) / params.places]",
      ...hasBias && !isSplit && { own_bias: "bias[min(line, params.filters - 1u)]" },
    },
    store: wgsl`
      if (row < params.all_places && line < params.filters) {
        let plane = row / params.places * params.filters + line;
        y[${isSplit ? "id.z * params.results + " : ""}plane * params.places + row % params.places] =
          ${result};
      }
    `,
  });
}
