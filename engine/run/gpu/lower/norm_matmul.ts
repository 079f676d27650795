// The WebGPU kernels of products with a norm before them. One row takes one dispatch; more rows are normalised
// into scratch memory by a dispatch of its own, and go on as rows of 8 bit.

import type { Capabilities } from "../../../../gpu/kernel.ts";
import { workgroupOutputs } from "../../../../gpu/kernels/matmul/rows.ts";
import { MATMUL_TUNING, teamsFor } from "../../../../gpu/kernels/matmul/tuning.ts";
import type { NormOfX } from "../../../../gpu/kernels/matmul/norm_in_front.ts";
import { normMatmulQ8 } from "../../../../gpu/kernels/matmul/norm_matmul_q8.ts";
import { rmsNormQ8 } from "../../../../gpu/kernels/rms_norm_q8.ts";
import { q8RowBytes } from "../../../../quant/q8_activation.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import { mul } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
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
} from "./matmul.ts";
import { lowerGluRow, lowerGluRows } from "./matmul_glu.ts";

/** Lanes that share a group of 32 columns when they are quantised. */
const GROUP_LANES = 8;

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
function normalized(lowering: GpuLowering, style: Style, least: 1 | 2): GpuLowering {
  const { node, capabilities, slice, emit } = lowering;
  const [x, matrix, , , gain] = node.inputs;
  const columns = matrix!.shape[1] as number;
  const rows = rowsOfX(lowering);
  const codes = lowering.scratch(lowering.most(rows) * q8RowBytes(columns));
  const subgroupSize = style === "subgroup" ? capabilities.subgroupSize : 0;
  const workgroup = columns <= 512 ? 128 : 256;
  emit({
    shader: rmsNormQ8({ ...normOf(node, capabilities), subgroupSize, columns, workgroup }),
    storage: { x: slice(x!), y: codes, ...gain && { gain: slice(gain) } },
    uniforms: { rows },
    workgroups: [mul(isBetween(rows, least, Infinity), rows)],
  });
  return { ...lowering, slice: (value) => value === x ? codes : slice(value) };
}

function lowerNormRow(lowering: GpuLowering): void {
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
        mul(isBetween(rows, 1, 1), Math.ceil(part.rows / workgroupOutputs(shape))),
      ],
    });
  }
}

function canRun(node: Node, { subgroupSize }: Capabilities, style: Style): boolean {
  if (style === "subgroup" && subgroupSize < GROUP_LANES) return false;
  return isMatrix(node, 2, INTEGERS) &&
    (node.inputs[1]!.shape[1] as number) <= MATMUL_TUNING.normColumns;
}

const STYLES = ["subgroup", "workgroup"] as const;

const normMatmulKernels: readonly GpuKernel[] = STYLES.map((style) => ({
  name: `gpu_norm_matmul_q8_${style}`,
  when: ({ node, capabilities }) =>
    besidesProduct(node) === "normed" && canRun(node, capabilities, style),
  lower(lowering) {
    const isFused = style === "subgroup";
    if (isFused) lowerNormRow(lowering);
    const inner = normalized(lowering, style, isFused ? 2 : 1);
    lowerFew(inner, INTEGERS, style, isFused ? 2 : 1);
    lowerMany(inner, INTEGERS);
  },
}));

const normGatedMatmulKernels: readonly GpuKernel[] = STYLES.map((style) => ({
  name: `gpu_norm_matmul_glu_q8_${style}`,
  when: ({ node, capabilities }) =>
    besidesProduct(node) === "normed gated q8" && canRun(node, capabilities, style) &&
    (node.inputs[1]!.shape[0] as number) % 64 === 0,
  lower(lowering) {
    const { node, capabilities } = lowering;
    const isFused = style === "subgroup" && lowerGluRow(lowering, normOf(node, capabilities));
    lowerGluRows(normalized(lowering, style, isFused ? 2 : 1), style, isFused ? 2 : 1);
  },
}));

/** Of products that norm their input by themselves, with a gate and without. */
export const gpuNormedMatmulKernels: readonly GpuKernel[] = [
  ...normMatmulKernels,
  ...normGatedMatmulKernels,
];
