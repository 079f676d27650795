// The WebGPU kernels that make 8-bit rows: quantize and the ops that end with it, with shuffles where
// subgroups are large enough for a group of 32 columns.

import type { Capabilities, GpuSlice, Shader } from "../../../../gpu/kernel.ts";
import { activationFunction } from "../../../../gpu/kernels/element_functions.ts";
import {
  gluHalvesQ8,
  gluQ8,
  QUANTIZE_QUADS,
  type QuantizeParams,
  quantizeQ8,
} from "../../../../gpu/kernels/quantize_q8.ts";
import { rmsNormQ8 } from "../../../../gpu/kernels/rms_norm_q8.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import { type Style, STYLES } from "./matmul.ts";
import { ceilDiv, exactDiv, product } from "../../../graph/dim/mod.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { isRmsNorm } from "../../../ops/records/norm.ts";

/** Lanes that share a group of 32 columns. */
const GROUP_LANES = 8;
/** Most quads of a row that an invocation of rms_norm_q8 may have: they are kept in registers. */
const MOST_PASSES = 32;

/** Whether subgroups, where they are to be used, are large enough to quantise groups. */
export function takesGroups({ subgroupSize }: Capabilities, style: Style): boolean {
  return style === "workgroup" || subgroupSize >= GROUP_LANES;
}

function columnsOf({ shape }: Value): number {
  return shape.at(-1) as number;
}

/** What kernels with an invocation a quad of the result are made of. */
interface QuadKernels {
  readonly name: string;
  when(node: Node): boolean;
  shaderOf(params: QuantizeParams, node: Node): Shader;
  storageOf(lowering: GpuLowering): Readonly<Record<string, GpuSlice>>;
}

function quadKernels({ name, when, shaderOf, storageOf }: QuadKernels): readonly GpuKernel[] {
  return STYLES.map((style) => ({
    name: `gpu_${name}_${style}`,
    when: ({ node, capabilities }) => when(node) && takesGroups(capabilities, style),
    lower(lowering) {
      const { node, slice, emit } = lowering;
      const [y] = node.outputs;
      const quads = exactDiv(product(y!.shape), 4)!;
      const params = { columns: columnsOf(y!), subgroups: style === "subgroup" };
      emit({
        shader: shaderOf(params, node),
        storage: { ...storageOf(lowering), y: slice(y!) },
        uniforms: { quads },
        workgroups: [ceilDiv(quads, QUANTIZE_QUADS)],
      });
    },
  }));
}

function activationOf({ attributes }: Node): string {
  return activationFunction(attributes.activation as string);
}

function inputX({ node: { inputs: [x] }, slice }: GpuLowering): Readonly<Record<string, GpuSlice>> {
  return { x: slice(x!) };
}

/** Kernels of `quantize`. */
export const gpuQuantizeKernels: readonly GpuKernel[] = quadKernels({
  name: "quantize_q8",
  when: ({ attributes: { format, activation } }) => format === "q8" && activation === "none",
  shaderOf: quantizeQ8,
  storageOf: inputX,
});

function gates({ attributes }: Node): boolean {
  return attributes.to === "q8" && attributes.activation !== "clamped";
}

/** Kernels of `glu` with 8-bit rows as result. */
export const gpuGluQ8Kernels: readonly GpuKernel[] = [
  ...quadKernels({
    name: "glu_q8",
    when: (node) => gates(node) && node.inputs[1] !== undefined,
    shaderOf: (params, node) => gluQ8(params, activationOf(node)),
    storageOf: ({ node: { inputs: [gate, up] }, slice }) => ({
      gate: slice(gate!),
      up: slice(up!),
    }),
  }),
  ...quadKernels({
    name: "glu_halves_q8",
    when: (node) => gates(node) && !node.inputs[1],
    shaderOf: (params, node) => gluHalvesQ8(params, activationOf(node)),
    storageOf: inputX,
  }),
];

/** Kernels of `norm` with 8-bit rows as result. */
export const gpuRmsNormQ8Kernels: readonly GpuKernel[] = STYLES.map((style) => ({
  name: `gpu_rms_norm_q8_${style}`,
  when({ node, capabilities }) {
    const x = node.inputs[0]!;
    return isRmsNorm(node, "q8") && takesGroups(capabilities, style) &&
      columnsOf(x) / 4 <= MOST_PASSES * workgroupOf(x);
  },
  lower({ node: { inputs: [x, weight], outputs: [y], attributes }, capabilities, slice, emit }) {
    const rows = product(x!.shape.slice(0, -1));
    emit({
      shader: rmsNormQ8({
        columns: columnsOf(x!),
        weight: weight !== undefined,
        epsilon: attributes.epsilon as number,
        base: attributes.base as number,
        workgroup: workgroupOf(x!),
        subgroupSize: style === "subgroup" ? capabilities.subgroupSize : 0,
      }),
      storage: { x: slice(x!), y: slice(y!), ...weight && { gain: slice(weight) } },
      uniforms: { rows },
      workgroups: [rows],
    });
  },
}));

/** Invocations for a row: no more than it has quads. */
function workgroupOf(x: Value): number {
  const quads = columnsOf(x) / 4;
  return [32, 64, 128].find((size) => quads <= size) ?? 256;
}
