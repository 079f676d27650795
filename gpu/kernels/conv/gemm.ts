// Convolution as a product of matrices that are never laid out (implicit GEMM): filters by places, over channels and taps
// of the window. A workgroup takes a tile of filters and of places, those of all images one behind the other; a chunk of the
// weights and of the elements that the places see goes through workgroup memory. An invocation fetches one row of the chunk
// for several places: what it needs to know of a place, where its window begins and which taps are inside, it finds once.
// A window of one place is a plain product. Weights are packed rows of any layout of floats, or plain float32. Where there
// are too few tiles to fill a device, each of some workgroups adds up a part of the channels, and a second shader their sums.

import type { Shader } from "../../kernel.ts";
import { GROUP_MAIN, mainOf, wgsl } from "../../wgsl.ts";
import { list } from "../matmul/rows.ts";
import { shared } from "../matmul/tile.ts";
import { quadReader } from "../matmul/weight_reader.ts";
import { epilogueFunction, WINDOW_UNIFORMS } from "../windows.ts";

/** A tile; an invocation makes 4 places of `block` filters. */
export interface ConvTile {
  /** Filters; a multiple of 4 `block`. */
  readonly filters: number;
  /** Places; a multiple of 64. */
  readonly places: number;
  /** A multiple of 4. */
  readonly block: number;
}

/** Most taps of a window: a bit of two words each. */
export const GEMM_TAPS = 64;

/** Channels times taps that are added up at once. */
export const CONV_CHUNK = 16;

/** What a shader is made for. */
export interface ConvGemmParams {
  readonly tile: ConvTile;
  readonly hasBias: boolean;
  readonly activation: string;
  /** Taps of the window along depth, height and width, `GEMM_TAPS` in all at most. */
  readonly kernel: readonly [number, number, number];
  /** Id of the weight's layout; absent: plain float32. */
  readonly layout?: string | undefined;
  /** Whether parts of the sums are made, [splits, results]; they know no bias and no activation. */
  readonly isSplit: boolean;
}

/**
 * Uniforms as of `convShader`, `places` of a result's plane, `all_places` of all images, and `inner`: channels of a group
 * times taps; of parts, `results` and `chunks` of 16 of each. Workgroups: tiles of places, of filters, groups times parts.
 */
export function convGemmShader(params: ConvGemmParams): Shader {
  const { tile: { filters, places, block }, hasBias, activation, kernel, layout, isSplit } = params;
  const [depth, height, width] = kernel, taps = depth * height * width;
  const across = places / 4, threads = across * filters / block;
  /** Invocations that share a row of the chunk, and places of each. */
  const sharers = threads / CONV_CHUNK, own = places / sharers;
  const weights = weightFill(params, threads);
  const quads = block / 4;
  return {
    name: layout ? `conv_gemm_${layout}` : "conv_gemm",
    storage: {
      x: "array<f32>",
      ...weights.storage,
      ...hasBias && !isSplit && { bias: "array<f32>" },
      y: "array<f32>",
    },
    writes: ["y"],
    uniforms: {
      ...WINDOW_UNIFORMS,
      ...{ filters: "u32", groups: "u32", group_filters: "u32", group_channels: "u32" },
      ...{ places: "u32", all_places: "u32", inner: "u32" },
      ...isSplit && { results: "u32", chunks: "u32" } as const,
    },
    code: wgsl`
      ${weights.code}

      ${isSplit ? "" : epilogueFunction(activation)}

      var<workgroup> weights: array<vec4<f32>, ${CONV_CHUNK * filters / 4}>;
      var<workgroup> seen: array<vec4<f32>, ${CONV_CHUNK * places / 4}>;

      ${placeCode(kernel)}

      @compute @workgroup_size(${threads})
      ${mainOf({ group: "group", lane: "thread" })}
        let across = thread % ${across}u;
        let down = thread / ${across}u;
        let chunk_row = thread / ${sharers}u;
        let column = thread % ${sharers}u;
        let first_filter = group.y * ${filters}u;
        let of_group = group.z % params.groups;
        ${
      isSplit
        ? wgsl`
          let split = group.z / params.groups;
          let begin = split * params.chunks * ${CONV_CHUNK}u;
          let end = min(params.inner, begin + params.chunks * ${CONV_CHUNK}u);
        `
        : "let begin = 0u;\nlet end = params.inner;"
    }
        let area = params.depth * params.height * params.width;
        ${
      list(
        own,
        (j) =>
          `let place${j} = place_of(group.x * ${places}u + column + ${j * sharers}u, of_group);`,
      )
    }
        ${list(block, (i) => `var sum${i} = vec4<f32>();`)}
        for (var first = begin; first < end; first += ${CONV_CHUNK}u) {
          let row = first + chunk_row;
          let tap = row % ${taps}u;
          let at = vec3<i32>(vec3<u32>(
            tap / ${height * width}u, tap / ${width}u % ${height}u, tap % ${width}u,
          )) * vec3<i32>(params.dilation_d, params.dilation_h, params.dilation_w);
          let step = i32(row / ${taps}u) * area +
            (at.x * params.height + at.y) * params.width + at.z;
          let bit = select(0u, 1u << (tap % 32u), row < params.inner);
          ${
      list(own, (j) => {
        const word = taps > 32 ? `place${j}.taps[tap / 32u]` : `place${j}.taps.x`;
        return wgsl`
          let is_seen${j} = (${word} & bit) != 0u;
          let seen${j} = select(0.0, x[select(0, place${j}.origin + step, is_seen${j})], is_seen${j});
        `;
      })
    }
          workgroupBarrier();
          ${
      list(own, (j) => {
        const at = `chunk_row * ${places}u + column + ${j * sharers}u`;
        return `seen[(${at}) / 4u][(${at}) % 4u] = seen${j};`;
      })
    }
          ${weights.fill}
          workgroupBarrier();
          for (var i = 0u; i < ${CONV_CHUNK}u; i++) {
            let elements = seen[i * ${across}u + across];
            ${
      list(
        quads,
        (q) => `let w${q} = weights[i * ${filters / 4}u + down + ${q * filters / block}u];`,
      )
    }
            ${list(block, (i) => `sum${i} += w${i >> 2}.${"xyzw"[i & 3]} * elements;`)}
          }
        }
        ${storeCode(params)}
      }
    `,
  };
}

/** `place_of`: what has to be known of a place of the result. */
function placeCode([depth, height, width]: ConvGemmParams["kernel"]): string {
  return wgsl`
    struct Place {
      // Where the window begins in x; it may lie before the plane.
      origin: i32,
      // Taps inside of the plane.
      taps: vec2<u32>,
    }

    fn place_of(number: u32, group: u32) -> Place {
      if (number >= params.all_places) { return Place(0, vec2<u32>()); }
      let image = number / params.places;
      let row = number % params.places / params.out_width;
      let out = vec3<i32>(vec3<u32>(
        row / params.out_height, row % params.out_height, number % params.out_width,
      ));
      let begin = out * vec3<i32>(params.stride_d, params.stride_h, params.stride_w) -
        vec3<i32>(params.begin_d, params.begin_h, params.begin_w);
      let size = vec3<i32>(params.depth, params.height, params.width);
      var taps = vec2<u32>();
      var tap = 0u;
      for (var d = 0; d < ${depth}; d++) {
        for (var h = 0; h < ${height}; h++) {
          for (var w = 0; w < ${width}; w++) {
            let at = begin +
              vec3<i32>(d, h, w) * vec3<i32>(params.dilation_d, params.dilation_h, params.dilation_w);
            let is_inside = all(at >= vec3<i32>()) && all(at < size);
            taps[tap / 32u] |= u32(is_inside) << (tap % 32u);
            tap++;
          }
        }
      }
      let plane = (image * params.groups + group) * params.group_channels;
      let first = i32(plane) * size.x * size.y * size.z;
      return Place(first + (begin.x * size.y + begin.y) * size.z + begin.z, taps);
    }
  `;
}

/** Stores the sums of an invocation, or its part of them. */
function storeCode(
  { tile: { filters, places, block }, hasBias, isSplit }: ConvGemmParams,
): string {
  return wgsl`
    let sums = array<vec4<f32>, ${block}>(${list(block, (i) => `sum${i}`).join(", ")});
    for (var i = 0u; i < ${4 * block}u; i++) {
      let quad = down + i / 16u * ${filters / block}u;
      let f = first_filter + 4u * quad + i / 4u % 4u;
      let number = group.x * ${places}u + 4u * across + i % 4u;
      if (f < params.group_filters && number < params.all_places) {
        let image = number / params.places;
        let plane = (image * params.groups + of_group) * params.group_filters + f;
        let at = plane * params.places + number % params.places;
        let sum = sums[i / 4u][i % 4u];
        ${
    isSplit
      ? "y[split * params.results + at] = sum;"
      : `y[at] = epilogue(sum${hasBias ? " + bias[of_group * params.group_filters + f]" : ""});`
  }
      }
    }
  `;
}

/** How a chunk of the weights comes into workgroup memory; `first_filter` and `first` say where it begins. */
function weightFill(
  { tile: { filters }, layout }: ConvGemmParams,
  threads: number,
): { readonly storage: Readonly<Record<string, string>>; code: string; fill: readonly string[] } {
  const store = (row: string, value: string) =>
    `weights[(${row}) * ${filters / 4}u + filter_at / 4u][filter_at % 4u] = ${value};`;
  if (!layout) {
    return {
      storage: { weight: "array<f32>" },
      code: "",
      fill: shared({ items: filters * CONV_CHUNK, threads }, (item) =>
        wgsl`
          let filter_at = ${item} / ${CONV_CHUNK}u;
          let at = first + ${item} % ${CONV_CHUNK}u;
          var element = 0.0;
          if (first_filter + filter_at < params.group_filters && at < params.inner) {
            let line = of_group * params.group_filters + first_filter + filter_at;
            element = weight[line * params.inner + at];
          }
          ${store(`${item} % ${CONV_CHUNK}u`, "element")}
        `),
    };
  }
  const reader = quadReader(layout, "0u");
  const { unitColumns } = reader;
  return {
    storage: reader.storage,
    code: reader.code,
    fill: shared({ items: filters * CONV_CHUNK / unitColumns, threads }, (item) =>
      wgsl`
        let filter_at = ${item} % ${filters}u;
        let part = ${item} / ${filters}u;
        let line = of_group * params.group_filters +
          min(first_filter + filter_at, params.group_filters - 1u);
        let units = (params.inner + ${unitColumns - 1}u) / ${unitColumns}u;
        let unit = first / ${unitColumns}u + part;
        ${reader.load("q", "line * units + min(unit, units - 1u)")}
        ${
        list(
          unitColumns,
          (i) =>
            store(
              `part * ${unitColumns}u + ${i}u`,
              `select(0.0, q${i >> 2}.${"xyzw"[i & 3]}, unit < units)`,
            ),
        )
      }
      `),
  };
}

/** Results of a workgroup of `convReduceShader`. */
export const CONV_REDUCE = 256;

/** Adds up parts, bias and activation. Uniforms: `results`, `splits`, `places` of a plane, `filters`. */
export function convReduceShader(
  { hasBias, activation }: Pick<ConvGemmParams, "hasBias" | "activation">,
): Shader {
  return {
    name: "conv_reduce",
    storage: {
      partial: "array<f32>",
      ...hasBias && { bias: "array<f32>" },
      y: "array<f32>",
    },
    writes: ["y"],
    uniforms: { results: "u32", splits: "u32", places: "u32", filters: "u32" },
    code: wgsl`
      ${epilogueFunction(activation)}

      @compute @workgroup_size(${CONV_REDUCE})
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * ${CONV_REDUCE}u + lane;
        if (i >= params.results) { return; }
        var sum = ${hasBias ? "bias[i / params.places % params.filters]" : "0.0"};
        for (var split = 0u; split < params.splits; split++) {
          sum += partial[split * params.results + i];
        }
        y[i] = epilogue(sum);
      }
    `,
  };
}
