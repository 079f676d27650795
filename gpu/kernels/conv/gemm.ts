// Convolution as a product of matrices that are never laid out (implicit GEMM): filters by places, over channels and taps
// of the window. A workgroup takes a tile of filters and of places, those of all images one behind the other; a chunk of the
// weights and of the elements that the places see goes through workgroup memory. An invocation fetches one row of the chunk
// for several places: what it needs to know of a place, where its window begins and which taps are inside, it finds once.
// A window of one place that moves by one is a plain product, whose elements are fetched by quads. Weights are packed rows of
// any layout of floats, or plain float32. Where there are too few tiles to fill a device, each of some workgroups adds up a
// part of the channels, and a second shader their sums.

import type { Shader } from "../../kernel.ts";
import { GROUP_MAIN, mainOf, wgsl } from "../../wgsl.ts";
import {
  blockQuad,
  memberPlace,
  multiplyTile,
  quadPlace,
  sideMemory,
  sideStep,
  type TileSide,
  type TileStep,
  tileSteps,
} from "../matmul/float_tile.ts";
import { list } from "../matmul/rows.ts";
import { quadReader } from "../matmul/weight_reader.ts";
import { epilogueFunction, WINDOW_UNIFORMS } from "../windows.ts";

/** A tile, and what an invocation makes of it. */
export interface ConvTile {
  readonly filters: number;
  readonly places: number;
  /** Filters and places of an invocation; multiples of 4. */
  readonly block: readonly [filters: number, places: number];
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
  /** Whether places of a result's plane are whole quads. */
  readonly wholeQuads: boolean;
  /** Whether, besides, places are those of x: a window of one, which moves by one. */
  readonly isPlain: boolean;
}

function sidesOf({ filters, places, block }: ConvTile): {
  readonly weights: TileSide;
  readonly seen: TileSide;
} {
  return {
    weights: { tile: "weights", block: block[0], lanes: filters / block[0] },
    seen: { tile: "seen", block: block[1], lanes: places / block[1] },
  };
}

/**
 * Uniforms as of `convShader`, `places` of a result's plane, `all_places` of all images, and `inner`: channels of a group
 * times taps; of parts, `results` and `chunks` of 16 of each. Workgroups: tiles of places, of filters, groups times parts.
 */
export function convGemmShader(params: ConvGemmParams): Shader {
  const { tile, hasBias, activation, layout, isSplit, wholeQuads, isPlain } = params;
  const { weights, seen } = sidesOf(tile), threads = weights.lanes * seen.lanes;
  const filters = weightFill(params, threads), elements = seenFill(params, threads);
  const quads = seen.block / 4;
  return {
    name: layout ? `conv_gemm_${layout}` : "conv_gemm",
    storage: {
      x: isPlain ? "array<vec4<f32>>" : "array<f32>",
      ...filters.storage,
      ...hasBias && !isSplit && { bias: "array<f32>" },
      y: wholeQuads ? "array<vec4<f32>>" : "array<f32>",
    },
    writes: ["y"],
    uniforms: {
      ...WINDOW_UNIFORMS,
      ...{ filters: "u32", groups: "u32", group_filters: "u32", group_channels: "u32" },
      ...{ places: "u32", all_places: "u32", inner: "u32" },
      ...isSplit && { results: "u32", chunks: "u32" } as const,
    },
    code: wgsl`
      ${filters.code}

      ${isSplit ? "" : epilogueFunction(activation)}

      ${sideMemory(weights, CONV_CHUNK)}
      ${sideMemory(seen, CONV_CHUNK)}

      ${elements.code}

      ${storeFunctions(params)}

      @compute @workgroup_size(${threads})
      ${mainOf({ group: "group", lane: "thread" })}
        let across = thread % ${seen.lanes}u;
        let down = thread / ${seen.lanes}u;
        let first_filter = group.y * ${tile.filters}u;
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
        ${elements.prologue}
        ${
      list(weights.block * quads, (n) =>
        `var sum${Math.floor(n / quads)}_${n % quads} = vec4<f32>();`)
    }
        var first = begin;
        ${
      tileSteps({
        held: [...elements.held, ...filters.held],
        fetch: [...elements.fetch, ...filters.fetch],
        store: [...elements.store, ...filters.store],
        multiply: multiplyTile({ rows: weights, lines: seen, columns: CONV_CHUNK }),
      }, { wanted: "first < end", next: `first += ${CONV_CHUNK}u;` })
    }
        ${storeCode(params)}
      }
    `,
  };
}

/** How a chunk of a side comes into workgroup memory: what is known before the first one, then of each. */
interface Fill extends Omit<TileStep, "multiply"> {
  readonly code: string;
  readonly prologue: readonly string[];
}

function seenFill(params: ConvGemmParams, threads: number): Fill {
  return params.isPlain ? plainFill(params, threads) : windowFill(params, threads);
}

/** By quads of a channel. */
function plainFill({ tile }: ConvGemmParams, threads: number): Fill {
  const { seen } = sidesOf(tile), quads = tile.places / 4, each = CONV_CHUNK * quads / threads;
  return {
    code: "",
    prologue: [wgsl`
      let quad = thread % ${quads}u;
      let chunk_row = thread / ${quads}u;
      let number = min(group.x * ${quads}u + quad, params.all_places / 4u - 1u);
      let plane_quads = params.places / 4u;
      let plane = (number / plane_quads * params.groups + of_group) * params.group_channels;
      let origin = plane * plane_quads + number % plane_quads;
    `],
    held: list(each, (i) => `var seen${i} = vec4<f32>();`),
    fetch: list(each, (i) =>
      wgsl`
        {
        let channel${i} = first + chunk_row + ${i * threads / quads}u;
        let is_seen${i} = channel${i} < params.inner;
        seen${i} = select(
          vec4<f32>(), x[origin + select(0u, channel${i}, is_seen${i}) * plane_quads], is_seen${i},
        );
        }
      `),
    store: list(each, (i) => {
      const column = `(chunk_row + ${i * threads / quads}u)`;
      return `${quadPlace(seen, { quad: "quad", column })} = seen${i};`;
    }),
  };
}

/** Element by element, where a tap is inside. */
function windowFill({ tile, kernel }: ConvGemmParams, threads: number): Fill {
  const { seen } = sidesOf(tile), [depth, height, width] = kernel, taps = depth * height * width;
  /** Invocations that share a row of the chunk, and places of each. */
  const sharers = threads / CONV_CHUNK, own = tile.places / sharers;
  return {
    code: placeCode(kernel),
    prologue: [
      wgsl`
        let chunk_row = thread / ${sharers}u;
        let column = thread % ${sharers}u;
        let area = params.depth * params.height * params.width;
      `,
      ...list(
        own,
        (j) =>
          `let place${j} = place_of(group.x * ${tile.places}u + column + ${
            j * sharers
          }u, of_group);`,
      ),
    ],
    held: list(own, (j) => `var seen${j} = 0.0;`),
    fetch: [
      "{",
      wgsl`
        let row = first + chunk_row;
        let tap = row % ${taps}u;
        let at = vec3<i32>(vec3<u32>(
          tap / ${height * width}u, tap / ${width}u % ${height}u, tap % ${width}u,
        )) * vec3<i32>(params.dilation_d, params.dilation_h, params.dilation_w);
        let step = i32(row / ${taps}u) * area +
          (at.x * params.height + at.y) * params.width + at.z;
        let bit = select(0u, 1u << (tap % 32u), row < params.inner);
      `,
      ...list(own, (j) => {
        const word = taps > 32 ? `place${j}.taps[tap / 32u]` : `place${j}.taps.x`;
        return wgsl`
          let is_seen${j} = (${word} & bit) != 0u;
          seen${j} = select(0.0, x[select(0, place${j}.origin + step, is_seen${j})], is_seen${j});
        `;
      }),
      "}",
    ],
    store: list(own, (j) => {
      const member = `(column + ${j * sharers}u)`;
      return `${memberPlace(seen, { member, column: "chunk_row" })} = seen${j};`;
    }),
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

/** `result_at`, the place of a result of the group's first filter, and `store`: four places of a filter, or a part of them. */
function storeFunctions({ hasBias, isSplit, wholeQuads }: ConvGemmParams): string {
  const bias = hasBias ? " + bias[of_group * params.group_filters + f]" : "";
  const result = (c: string) => isSplit ? `sum.${c}` : `epilogue(sum.${c}${bias})`;
  return wgsl`
    fn result_at(of_group: u32, number: u32) -> u32 {
      let plane = (number / params.places * params.groups + of_group) * params.group_filters;
      return plane * params.places + number % params.places;
    }

    fn store(of_group: u32, f: u32, number: u32, at: ${
    wholeQuads ? "u32" : "vec4<u32>"
  }, sum: vec4<f32>) {
      if (f >= params.group_filters || number >= params.all_places) { return; }
      let own = f * params.places;
      ${
    wholeQuads
      ? `y[(at + own) >> 2u] = vec4<f32>(${[..."xyzw"].map(result).join(", ")});`
      : list(4, (i) => {
        const stored = `y[at.${"xyzw"[i]} + own] = ${result("xyzw"[i]!)};`;
        return i === 0 ? stored : `if (number + ${i}u < params.all_places) { ${stored} }`;
      })
  }
    }
  `;
}

/** Stores the sums of an invocation. */
function storeCode({ tile, isSplit, wholeQuads }: ConvGemmParams): string[] {
  const { weights, seen } = sidesOf(tile), quads = seen.block / 4;
  const at = (number: string) =>
    `${isSplit ? "split * params.results + " : ""}result_at(of_group, ${number})`;
  return [
    ...list(quads, (j) =>
      wgsl`
        let number${j} = group.x * ${tile.places}u + ${blockQuad(seen, { lane: "across", i: j })};
        let at${j} = ${
        wholeQuads
          ? at(`number${j}`)
          : `vec4<u32>(${list(4, (c) => at(`number${j} + ${c}u`)).join(", ")})`
      };
      `),
    wgsl`
      let sums = array<vec4<f32>, ${weights.block * quads}>(
        ${list(weights.block * quads, (n) => `sum${Math.floor(n / quads)}_${n % quads}`).join(", ")}
      );
      for (var i = 0u; i < ${weights.block}u; i++) {
        let f = first_filter + ${4 * weights.lanes}u * (i >> 2u) + 4u * down + (i & 3u);
        ${
      list(
        quads,
        (j) => `store(of_group, f, number${j}, at${j}, sums[${quads}u * i + ${j}u]);`,
      )
    }
      }
    `,
  ];
}

/** `first_filter` and `first` say where a chunk of the weights begins. */
function weightFill(
  { tile, layout }: ConvGemmParams,
  threads: number,
): Omit<TileStep, "multiply"> & { readonly storage: Shader["storage"]; readonly code: string } {
  const side = sidesOf(tile).weights;
  const line = wgsl`
    let line = of_group * params.group_filters +
      min(first_filter + member, params.group_filters - 1u);
  `;
  if (!layout) {
    return {
      storage: { weight: "array<f32>" },
      code: wgsl`
        fn weight_at(line: u32, column: u32) -> f32 {
          let value = weight[line * params.inner + min(column, params.inner - 1u)];
          return select(0.0, value, column < params.inner);
        }
      `,
      ...sideStep({
        ...{ side, units: CONV_CHUNK / 4, quads: 1, threads },
        load: (name) =>
          wgsl`
            ${line}
            let ${name}0 = vec4<f32>(
              ${list(4, (c) => `weight_at(line, first + 4u * part + ${c}u),`)}
            );
          `,
      }),
    };
  }
  const { unitColumns, storage, code, load } = quadReader(layout, "0u"), quads = unitColumns / 4;
  return {
    ...{ storage, code },
    ...sideStep({
      ...{ side, units: CONV_CHUNK / unitColumns, quads, threads },
      load: (name) =>
        wgsl`
          ${line}
          let units = (params.inner + ${unitColumns - 1}u) / ${unitColumns}u;
          let unit = first / ${unitColumns}u + part;
          ${load("own", "line * units + min(unit, units - 1u)")}
          ${list(quads, (q) => `let ${name}${q} = select(vec4<f32>(), own${q}, unit < units);`)}
        `,
    }),
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
