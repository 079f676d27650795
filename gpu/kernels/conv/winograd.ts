// Convolution with windows of 3 × 3 by minimal filtering (Winograd's F(m × m, 3 × 3); Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2016): tiles of the source, m + 2 wide, and the filters go through a transform of a few
// sums, after which a tile of m × m results takes (m + 2)² products a channel in place of 9 m². What is left are (m + 2)²
// products of matrices, which conv/gemm.ts makes as groups of a convolution with windows of one place. Weights are
// transformed once, while loading. Float32 all along: F(4 × 4) loses about four bits beside the plain sum.

import type { Shader } from "../../kernel.ts";
import { float, GROUP_MAIN, wgsl } from "../../wgsl.ts";
import { list } from "../matmul/rows.ts";
import { filterReader } from "./filter_reader.ts";
import { epilogueFunction } from "../windows.ts";

/** Results of a tile along a side. */
export type WinogradTile = 2 | 4;

/** Invocations of a workgroup. */
export const WINOGRAD_BLOCK = 64;

interface Transforms {
  /** Of the source, of the filters, and back. */
  readonly source: readonly (readonly number[])[];
  readonly filter: readonly (readonly number[])[];
  readonly result: readonly (readonly number[])[];
}

const TRANSFORMS: Readonly<Record<WinogradTile, Transforms>> = {
  2: {
    source: [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
    filter: [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
    result: [[1, 1, 1, 0], [0, 1, -1, -1]],
  },
  4: {
    source: [
      [4, 0, -5, 0, 1, 0],
      [0, -4, -4, 1, 1, 0],
      [0, 4, -4, -1, 1, 0],
      [0, -2, -1, 2, 1, 0],
      [0, 2, -1, -2, 1, 0],
      [0, 4, 0, -5, 0, 1],
    ],
    filter: [
      [1 / 4, 0, 0],
      [-1 / 6, -1 / 6, -1 / 6],
      [-1 / 6, 1 / 6, -1 / 6],
      [1 / 24, 1 / 12, 1 / 6],
      [1 / 24, -1 / 12, 1 / 6],
      [0, 0, 1],
    ],
    result: [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
  },
};

/** Elements of a transformed tile. */
export function winogradPoints(tile: WinogradTile): number {
  return (tile + 2) ** 2;
}

function sumOf(factors: readonly number[], term: (i: number) => string): string {
  const terms = factors.flatMap((factor, i) =>
    factor === 0 ? [] : [factor === 1 ? term(i) : `${float(factor)} * ${term(i)}`]
  );
  return terms.join(" + ");
}

/** Lines that make `to{r}_{c}` of `from{r}_{c}`: the matrix times that times its transpose. */
function transform(
  matrix: readonly (readonly number[])[],
  { from, to }: { readonly from: string; readonly to: string },
): string[] {
  const inner = matrix[0]!.length;
  return [
    ...matrix.flatMap((row, r) =>
      list(inner, (c) => `let ${to}_half${r}_${c} = ${sumOf(row, (k) => `${from}${k}_${c}`)};`)
    ),
    ...matrix.flatMap((_, r) =>
      matrix.map((row, c) => `let ${to}${r}_${c} = ${sumOf(row, (k) => `${to}_half${r}_${k}`)};`)
    ),
  ];
}

/** Lines for each place of a square. */
function square(side: number, text: (row: number, column: number) => string): string[] {
  return list(side * side, (i) => text(Math.floor(i / side), i % side));
}

/**
 * Filters [F, C, 3, 3], packed in a layout, to [points, F, C]. Uniforms: `count` (F · C), `channels`, `taps` (9); rows of the result have
 * `stride` elements, a multiple of 4.
 */
export function winogradFilterShader(
  { tile, layout }: { readonly tile: WinogradTile; readonly layout: string },
): Shader {
  const { filter } = TRANSFORMS[tile], side = tile + 2, reader = filterReader(layout);
  return {
    name: "winograd_filter",
    storage: { ...reader.storage, y: "array<f32>" },
    writes: ["y"],
    uniforms: { count: "u32", channels: "u32", taps: "u32", stride: "u32" },
    code: wgsl`
      ${reader.code}

      @compute @workgroup_size(${WINOGRAD_BLOCK})
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * ${WINOGRAD_BLOCK}u + lane;
        if (i >= params.count) { return; }
        let filter_at = i / params.channels;
        let channel = i % params.channels;
        ${square(3, (r, c) => `let w${r}_${c} = element(filter_at, channel, ${3 * r + c}u);`)}
        ${transform(filter, { from: "w", to: "u" })}
        let filters = params.count / params.channels;
        ${
      square(
        side,
        (r, c) =>
          `y[(${side * r + c}u * filters + filter_at) * params.stride + channel] = u${r}_${c};`,
      )
    }
      }
    `,
  };
}

/** Uniforms of tiles: of all images, of one along its width and in all. */
const TILE_UNIFORMS = {
  ...{ tiles: "u32", tiles_across: "u32", tiles_of_image: "u32" } as const,
  ...{ channels: "u32", height: "u32", width: "u32" } as const,
};

/**
 * x [N, C, H, W], whose elements stand `repeats` times along each side, to [points, C, tiles]. Uniforms: those of tiles, sizes of
 * x as it is seen, pads before. Workgroups: blocks of tiles,
 * channels.
 */
export function winogradSourceShader(
  { tile, repeats: [rows, columns] }: {
    readonly tile: WinogradTile;
    readonly repeats: readonly [rows: number, columns: number];
  },
): Shader {
  const { source } = TRANSFORMS[tile], side = tile + 2;
  return {
    name: "winograd_source",
    storage: { x: "array<f32>", y: "array<f32>" },
    writes: ["y"],
    uniforms: { ...TILE_UNIFORMS, begin_h: "i32", begin_w: "i32" },
    code: wgsl`
      fn element(plane: u32, row: i32, column: i32) -> f32 {
        let is_inside = row >= 0 && column >= 0 && row < i32(params.height) && column < i32(params.width);
        let line = plane * (params.height / ${rows}u) + u32(row) / ${rows}u;
        let at = line * (params.width / ${columns}u) + u32(column) / ${columns}u;
        return select(0.0, x[select(0u, at, is_inside)], is_inside);
      }

      @compute @workgroup_size(${WINOGRAD_BLOCK})
      ${GROUP_MAIN}
        let number = group.x * ${WINOGRAD_BLOCK}u + lane;
        if (number >= params.tiles) { return; }
        let own = number % params.tiles_of_image;
        let row = i32(own / params.tiles_across) * ${tile} - params.begin_h;
        let column = i32(own % params.tiles_across) * ${tile} - params.begin_w;
        let plane = number / params.tiles_of_image * params.channels + group.y;
        ${square(side, (r, c) => `let x${r}_${c} = element(plane, row + ${r}, column + ${c});`)}
        ${transform(source, { from: "x", to: "v" })}
        ${
      square(
        side,
        (r, c) =>
          `y[(${side * r + c}u * params.channels + group.y) * params.tiles + number] = v${r}_${c};`,
      )
    }
      }
    `,
  };
}

/**
 * Products [points, F, tiles] to y [N, F, H, W], with bias and activation. Uniforms: those of tiles with the sizes of y, whose
 * `channels` are its filters. Workgroups: blocks of tiles, filters.
 */
export function winogradResultShader(
  { tile, hasBias, activation }: {
    readonly tile: WinogradTile;
    readonly hasBias: boolean;
    readonly activation: string;
  },
): Shader {
  const { result } = TRANSFORMS[tile], side = tile + 2;
  return {
    name: "winograd_result",
    storage: { x: "array<f32>", ...hasBias && { bias: "array<f32>" }, y: "array<f32>" },
    writes: ["y"],
    uniforms: TILE_UNIFORMS,
    code: wgsl`
      ${epilogueFunction(activation)}

      fn store(plane: u32, row: u32, column: u32, value: f32) {
        if (row >= params.height || column >= params.width) { return; }
        y[(plane * params.height + row) * params.width + column] = epilogue(value);
      }

      @compute @workgroup_size(${WINOGRAD_BLOCK})
      ${GROUP_MAIN}
        let number = group.x * ${WINOGRAD_BLOCK}u + lane;
        if (number >= params.tiles) { return; }
        let own = number % params.tiles_of_image;
        let row = own / params.tiles_across * ${tile}u;
        let column = own % params.tiles_across * ${tile}u;
        let plane = number / params.tiles_of_image * params.channels + group.y;
        let added = ${hasBias ? "bias[group.y]" : "0.0"};
        ${
      square(
        side,
        (r, c) =>
          `let m${r}_${c} = x[(${
            side * r + c
          }u * params.channels + group.y) * params.tiles + number];`,
      )
    }
        ${transform(result, { from: "m", to: "y" })}
        ${square(tile, (r, c) => `store(plane, row + ${r}u, column + ${c}u, y${r}_${c} + added);`)}
      }
    `,
  };
}
