// The WebGPU kernels of products with a norm before them or a gate behind. One row takes one dispatch where subgroups
// allow it. Otherwise, and for more rows, what is normed goes to scratch memory as rows of 8 bit, what is gated as floats,
// each by a dispatch of its own.

import type { Capabilities } from "../../../../gpu/kernel.ts";
import { activationFunction } from "../../../../gpu/kernels/element_functions.ts";
import { gemvQ8Steps } from "../../../../gpu/kernels/matmul/gemv_q8.ts";
import { gluWorkgroup, gluWorkgroups, matmulGluQ8 } from "../../../../gpu/kernels/matmul/glu_q8.ts";
import type { NormOfX } from "../../../../gpu/kernels/matmul/norm_in_front.ts";
import { normMatmulQ8 } from "../../../../gpu/kernels/matmul/norm_matmul_q8.ts";
import { workgroupOutputs } from "../../../../gpu/kernels/matmul/rows.ts";
import { gluLanes, MATMUL_TUNING, teamsFor } from "../../../../gpu/kernels/matmul/tuning.ts";
import { gluHalvesQ8, QUANTIZE_QUADS } from "../../../../gpu/kernels/quantize_q8.ts";
import { rmsNormQ8 } from "../../../../gpu/kernels/rms_norm_q8.ts";
import { q8RowBytes } from "../../../../quant/q8_activation.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import { ceilDiv, exactDiv, mul, product } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { besidesProduct } from "../../../ops/records/matmul.ts";
import { isBetween } from "./choice.ts";
import {
  INTEGERS,
  isMatrix,
  lowerFew,
  lowerMany,
  type SomeRows,
  type Style,
  STYLES,
  takesRows,
} from "./matmul.ts";
import { planesOf, rowsOfX } from "./tiles.ts";
import { takesGroups } from "./quantize.ts";

/** Names of kernels by what their products do besides. */
const FORMS = [
  ["gated q8", "matmul_glu_q8"],
  ["normed", "norm_matmul_q8"],
  ["normed gated q8", "norm_matmul_glu_q8"],
] as const;

/** Kernels of `matmul` for 8-bit rows, or floats that they norm. */
export const gpuFusedMatmulKernels: readonly GpuKernel[] = FORMS.flatMap(([besides, name]) =>
  STYLES.map((style) => fusedKernel({ besides, name }, style))
);

function fusedKernel(
  { besides, name }: { readonly besides: string; readonly name: string },
  style: Style,
): GpuKernel {
  const isNormed = besides.includes("normed"), isGated = besides.includes("gated");
  return {
    name: `gpu_${name}_${style}`,
    when({ node, capabilities }) {
      if (besidesProduct(node) !== besides || !isMatrix(node, 2, INTEGERS)) return false;
      const [outputs, columns] = node.inputs[1]!.shape as [number, number];
      const takesX = isNormed ? columns <= MATMUL_TUNING.normColumns : takesRows(node, INTEGERS);
      return takesX && takesGroups(capabilities, style) && (!isGated || outputs % 64 === 0);
    },
    lower(lowering) {
      const { node, capabilities } = lowering;
      const isFused = style === "subgroup" &&
        (isGated
          ? lowerGluRow(lowering, isNormed ? normOf(node, capabilities) : undefined)
          : lowerNormRow(lowering));
      const some = { style, least: isFused ? 2 : 1 };
      const inner = isNormed ? normalized(lowering, some) : lowering;
      if (isGated) return lowerGluRows(inner, some);
      lowerFew(inner, INTEGERS, some);
      lowerMany(inner, INTEGERS);
    },
  };
}

function normOf(
  { inputs: [, , , , gain], attributes }: Node,
  { subgroupSize }: Capabilities,
): NormOfX {
  return {
    weight: gain !== undefined,
    epsilon: attributes.epsilon as number,
    base: attributes.base as number,
    subgroupSize,
  };
}

/** Normalises `least` and more rows; the lowering of the product that reads them. */
function normalized(lowering: GpuLowering, { style, least }: SomeRows): GpuLowering {
  const { node, capabilities, slice, emit } = lowering;
  const [x, matrix, , , gain] = node.inputs;
  const columns = matrix!.shape[1] as number;
  const rows = rowsOfX(lowering);
  const codes = lowering.carried(lowering.most(rows) * q8RowBytes(columns));
  const subgroupSize = style === "subgroup" ? capabilities.subgroupSize : 0;
  const workgroup = columns <= 512 ? 128 : 256;
  const norm = { ...normOf(node, capabilities), subgroupSize, columns, workgroup };
  emit({
    shader: rmsNormQ8(norm),
    storage: { x: slice(x!), y: codes, ...gain && { gain: slice(gain) } },
    uniforms: { rows },
    workgroups: [mul(isBetween(rows, { least, most: Infinity }), rows)],
    joins: { norm },
  });
  return { ...lowering, slice: (value) => value === x ? codes : slice(value) };
}

/** One normed row in one dispatch. */
function lowerNormRow(lowering: GpuLowering): boolean {
  const { node, capabilities, slice, emit } = lowering;
  const { inputs: [x, matrix, bias, , gain], outputs: [y] } = node;
  const { layout, columns, rows: outputs, parts } = lowering.weight(matrix!);
  const rows = rowsOfX(lowering);
  const shape = {
    ...teamsFor(capabilities, "subgroup", {
      kind: "q8",
      steps: INTEGERS.steps(lowering.weight(matrix!)),
      lines: outputs,
      rows: 1,
    }),
    ...{ layout, columns, rows: 1, bias: bias !== undefined },
    packedDot: capabilities.packedDot,
    norm: normOf(node, capabilities),
  };
  for (const part of parts) {
    emit({
      shader: normMatmulQ8(shape),
      storage: {
        x: slice(x!),
        ...planesOf(layout, part.planes),
        y: slice(y!),
        ...bias && { bias: slice(bias) },
        ...gain && { gain: slice(gain) },
      },
      uniforms: { lines: part.rows, first: part.firstRow, outputs, rows },
      workgroups: [
        mul(isBetween(rows, { least: 1, most: 1 }), Math.ceil(part.rows / workgroupOutputs(shape))),
      ],
    });
  }
  return true;
}

/** One row in one dispatch, after a norm of it if there is one; false where that cannot be. */
function lowerGluRow(lowering: GpuLowering, norm?: NormOfX): boolean {
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
      activation: activationFunction(attributes.gate as string),
      ...norm && { norm },
    }),
    storage: {
      x: slice(x!),
      ...planesOf(layout, parts[0]!.planes),
      y: slice(y!),
      ...bias && { bias: slice(bias) },
      ...gain && { gain: slice(gain) },
    },
    workgroups: [
      mul(isBetween(rowsOfX(lowering), { least: 1, most: 1 }), gluWorkgroups({ results })),
    ],
  });
  return true;
}

/** `least` and more rows: the product as floats, then the rest. */
function lowerGluRows(lowering: GpuLowering, { style, least }: SomeRows): void {
  const { node, slice, emit } = lowering;
  const { inputs: [, matrix], outputs: [y], attributes } = node;
  const rows = rowsOfX(lowering);
  const wanted = isBetween(rows, { least, most: Infinity });
  if (wanted === 0) return;
  const lines = lowering.weight(matrix!).rows;
  const floats = lowering.scratch(4 * lowering.most(mul(rows, lines)));
  const inner = { ...lowering, slice: (value: typeof y) => value === y ? floats : slice(value!) };
  lowerFew(inner, INTEGERS, { style, least });
  lowerMany(inner, INTEGERS);
  const quads = exactDiv(product(y!.shape), 4)!;
  const columns = lines / 2;
  emit({
    shader: gluHalvesQ8(
      { columns, subgroups: style === "subgroup" },
      activationFunction(attributes.gate as string),
    ),
    storage: { x: floats, y: slice(y!) },
    uniforms: { quads },
    workgroups: [mul(wanted, ceilDiv(quads, QUANTIZE_QUADS))],
  });
}
