// The WebGPU kernels of gated products: one dispatch for one row where subgroups allow it; otherwise, and for
// more rows, the product goes to scratch memory as floats and a second dispatch gates and quantises it.

import type { Capabilities } from "../../../../gpu/kernel.ts";
import { ACTIVATIONS } from "../../../../gpu/kernels/activations.ts";
import { gemvQ8Steps } from "../../../../gpu/kernels/matmul/gemv_q8.ts";
import { gluWorkgroup, gluWorkgroups, matmulGluQ8 } from "../../../../gpu/kernels/matmul/glu_q8.ts";
import { gluLanes, MATMUL_TUNING } from "../../../../gpu/kernels/matmul/tuning.ts";
import type { NormOfX } from "../../../../gpu/kernels/matmul/norm_in_front.ts";
import { gluHalvesQ8, QUANTIZE_QUADS } from "../../../../gpu/kernels/quantize_q8.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import { ceilDiv, exactDiv, mul, product } from "../../../graph/dim/mod.ts";
import { besidesProduct } from "../../../ops/records/matmul.ts";
import { isBetween } from "./choice.ts";
import {
  INTEGERS,
  isMatrix,
  lowerFew,
  lowerMany,
  planesOf,
  rowsOfX,
  type Style,
  takesRows,
} from "./matmul.ts";

/** Lanes that share a group of 32 columns when they are quantised. */
const GROUP_LANES = 8;

function hasStyle({ subgroupSize }: Capabilities, style: Style): boolean {
  return style === "workgroup" || subgroupSize >= GROUP_LANES;
}

/** One row in one dispatch, after a norm of it if there is one; false where that cannot be. */
export function lowerGluRow(lowering: GpuLowering, norm?: NormOfX): boolean {
  const { node, capabilities, slice, emit } = lowering;
  const { inputs: [x, matrix, bias, , gain], outputs: [y], attributes } = node;
  const { layout, columns, rows: lines, parts } = lowering.weight(matrix!);
  const lanes = gluLanes(capabilities, gemvQ8Steps(columns));
  if (parts.length !== 1 || gluWorkgroup(lanes) > capabilities.maxWorkgroupSize) return false;
  const results = lines / 2;
  emit({
    shader: matmulGluQ8({
      ...{ layout, columns, results, lanes, bias: bias !== undefined },
      unroll: MATMUL_TUNING.unroll,
      packedDot: capabilities.packedDot,
      activation: ACTIVATIONS[attributes.gate as string]!,
      ...norm && { norm },
    }),
    storage: {
      x: slice(x!),
      ...planesOf(layout, parts[0]!.planes),
      y: slice(y!),
      ...bias && { bias: slice(bias) },
      ...gain && { gain: slice(gain) },
    },
    workgroups: [mul(isBetween(rowsOfX(lowering), 1, 1), gluWorkgroups({ results }))],
  });
  return true;
}

/** `least` and more rows: the product as floats, then the rest. */
export function lowerGluRows(lowering: GpuLowering, style: Style, least: 1 | 2): void {
  const { node, slice, emit } = lowering;
  const { inputs: [, matrix], outputs: [y], attributes } = node;
  const rows = rowsOfX(lowering);
  const wanted = isBetween(rows, least, Infinity);
  if (wanted === 0) return;
  const lines = lowering.weight(matrix!).rows;
  const floats = lowering.scratch(4 * lowering.most(mul(rows, lines)));
  const inner = { ...lowering, slice: (value: typeof y) => value === y ? floats : slice(value!) };
  lowerFew(inner, INTEGERS, style, least);
  lowerMany(inner, INTEGERS);
  const quads = exactDiv(product(y!.shape), 4)!;
  const columns = lines / 2;
  emit({
    shader: gluHalvesQ8(
      { columns, subgroups: style === "subgroup" },
      ACTIVATIONS[attributes.gate as string]!,
    ),
    storage: { x: floats, y: slice(y!) },
    uniforms: { quads },
    workgroups: [mul(wanted, ceilDiv(quads, QUANTIZE_QUADS))],
  });
}

/** (x q8[M, K], weight [2F, K], bias [2F]?) → q8[M, F]: gates and ups in one matrix, gates first. */
export const gpuGatedMatmulKernels: readonly GpuKernel[] = (["subgroup", "workgroup"] as const)
  .map((style) => ({
    name: `gpu_matmul_glu_q8_${style}`,
    when({ node, capabilities }) {
      return besidesProduct(node) === "gated q8" && takesRows(node, INTEGERS) &&
        isMatrix(node, 2, INTEGERS) && hasStyle(capabilities, style) &&
        (node.inputs[1]!.shape[0] as number) % 64 === 0;
    },
    lower(lowering) {
      const isFused = style === "subgroup" && lowerGluRow(lowering);
      lowerGluRows(lowering, style, isFused ? 2 : 1);
    },
  }));
