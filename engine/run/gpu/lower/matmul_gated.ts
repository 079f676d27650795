// The WebGPU kernels of products of floats with a gate behind: few rows as a product and what halves it, many in tiles that
// gate their sums.

import { activationFunction } from "../../../../gpu/kernels/element_functions.ts";
import { gemmGluHalves } from "../../../../gpu/kernels/matmul/gemm_halves.ts";
import { halvesTileOf } from "../../../../gpu/kernels/matmul/halves_tile.ts";
import { matrixOutputs, matrixRows } from "../../../../gpu/kernels/matmul/matrix_tile.ts";
import { gemmGluF32, GLU_ROWS, gluResults } from "../../../../gpu/kernels/matmul/gemm_glu_f32.ts";
import { gluHalvesShader, ROWS_BLOCK } from "../../../../gpu/kernels/rows.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import { ceilDiv, mul } from "../../../graph/dim/mod.ts";
import { besidesProduct } from "../../../ops/records/matmul.ts";
import { isBetween } from "./choice.ts";
import { optionalSlice } from "./lower.ts";
import {
  FLOATS,
  hasStyle,
  isMatrix,
  lowerFew,
  lowerMany,
  type Style,
  STYLES,
  takesRows,
} from "./matmul.ts";
import { floatHalvesOf } from "./matrix_product.ts";
import { canBeHalves, planesOf, rowsOfX } from "./tiles.ts";

/** Kernels of `matmul` with a gate, for floats. */
export const gpuGatedMatmulKernels: readonly GpuKernel[] = STYLES.map((style) => ({
  name: `gpu_matmul_glu_f32_${style}`,
  when: ({ node, capabilities }) =>
    besidesProduct(node) === "gated" && node.attributes.gate !== "clamped" &&
    isMatrix(node, 2, FLOATS) && takesRows(node, FLOATS) && hasStyle(capabilities, style),
  lower(lowering) {
    const weight = lowering.weight(lowering.node.inputs[1]!);
    const isTiled = !lowering.rowByRow && weight.parts.length === 1;
    lowerProduct(lowering, style, isTiled ? FLOATS.mostFew(weight) : Infinity);
    if (isTiled) lowerTiles(lowering);
  },
}));

/** Up to so many rows: the product as floats, then its halves. */
function lowerProduct(lowering: GpuLowering, style: Style, most: number): void {
  const { node, slice, emit } = lowering;
  const { inputs: [, matrix], outputs: [y], attributes } = node;
  const rows = rowsOfX(lowering), lines = matrix!.shape[0] as number;
  const wanted = isBetween(rows, { least: 1, most });
  if (wanted === 0) return;
  const mostRows = Math.min(most, lowering.most(rows));
  const floats = lowering.scratch(4 * mostRows * lines);
  const inner = { ...lowering, slice: (value: typeof y) => value === y ? floats : slice(value!) };
  lowerFew(inner, FLOATS, { style, least: 1 });
  if (most === Infinity && !lowering.rowByRow) lowerMany(inner, FLOATS);
  const count = mul(rows, lines / 2);
  emit({
    shader: gluHalvesShader(activationFunction(attributes.gate as string)),
    storage: { x: floats, y: slice(y!) },
    uniforms: { count, width: lines / 2 },
    workgroups: [mul(wanted, ceilDiv(count, ROWS_BLOCK))],
  });
}

/** More rows. */
function lowerTiles(lowering: GpuLowering): void {
  const { node, slice } = lowering;
  const { inputs: [x, matrix], outputs: [y], attributes } = node;
  const weight = lowering.weight(matrix!), { layout, columns, rows: lines, parts } = weight;
  const rows = rowsOfX(lowering), results = lines / 2;
  const wanted = isBetween(rows, { least: FLOATS.mostFew(weight) + 1, most: Infinity });
  if (wanted === 0) return;
  const bias = optionalSlice(lowering, { name: "bias", index: 2 });
  const does = { bias: bias.bias !== undefined, activation: attributes.gate as string };
  const w = planesOf(layout, parts[0]!.planes), { capabilities } = lowering;
  const tile = canBeHalves(weight) && halvesTileOf(capabilities, { outputs: lines, kind: "gated" });
  if (tile) {
    lowering.emit({
      shader: gemmGluHalves({ ...tile, ...does }),
      storage: {
        ...floatHalvesOf(lowering, { columns, wanted, mostRows: Infinity }),
        ...w,
        ...bias,
        y: slice(y!),
      },
      uniforms: { rows, results, eighths: columns / 8, splits: 1 },
      workgroups: [
        mul(wanted, ceilDiv(rows, matrixRows(tile))),
        Math.ceil(lines / matrixOutputs(tile)),
      ],
    });
    return;
  }
  lowering.emit({
    shader: gemmGluF32({
      ...{ ...does, layout, columns, wholeQuads: results % 4 === 0 },
      activation: activationFunction(does.activation),
    }),
    storage: {
      x: slice(x!),
      ...{ ...w, ...bias },
      y: slice(y!),
    },
    uniforms: { rows, results },
    workgroups: [mul(wanted, ceilDiv(rows, GLU_ROWS)), Math.ceil(results / gluResults(layout))],
  });
}
