// The WebGPU kernels that make 8-bit rows: quantize_q8 and the ops that end with it.

import { ACTIVATIONS } from "../../gpu/kernels/activations.ts";
import {
  gluHalvesQ8,
  gluQ8,
  QUANTIZE_QUADS,
  quantizeQ8,
  rmsNormQ8,
} from "../../gpu/kernels/quantize_q8.ts";
import { ceilDiv, exactDiv, product } from "./dim.ts";
import type { Value } from "./graph.ts";
import type { GpuKernel } from "./op.ts";

/** Most quads of a row that an invocation of rms_norm_q8 may have: they are kept in registers. */
const MOST_PASSES = 32;

function columnsOf({ shape }: Value): number {
  return shape.at(-1) as number;
}

function quadsOf({ shape }: Value) {
  return exactDiv(product(shape), 4)!;
}

/** quantize_q8. */
export const gpuQuantizeQ8: GpuKernel = {
  name: "quantize_q8",
  when: () => true,
  lower({ node: { inputs: [x], outputs: [y] }, slice, emit }) {
    const quads = quadsOf(x!);
    emit({
      shader: quantizeQ8(columnsOf(x!)),
      storage: { x: slice(x!), y: slice(y!) },
      uniforms: { quads },
      workgroups: [ceilDiv(quads, QUANTIZE_QUADS)],
    });
  },
};

/** glu_q8. */
export const gpuGluQ8: GpuKernel = {
  name: "glu_q8",
  when: () => true,
  lower({ node: { inputs: [gate, up], outputs: [y], attributes }, slice, emit }) {
    const quads = quadsOf(gate!);
    emit({
      shader: gluQ8(columnsOf(gate!), ACTIVATIONS[attributes.activation as string]!),
      storage: { gate: slice(gate!), up: slice(up!), y: slice(y!) },
      uniforms: { quads },
      workgroups: [ceilDiv(quads, QUANTIZE_QUADS)],
    });
  },
};

/** Kernels of `glu_halves_q8`. */
export const gpuGluHalvesQ8Kernels: readonly GpuKernel[] = [{
  name: "gpu_glu_halves_q8",
  when: () => true,
  lower({ node: { inputs: [x], outputs: [y], attributes }, slice, emit }) {
    const quads = quadsOf(y!);
    emit({
      shader: gluHalvesQ8(columnsOf(y!), ACTIVATIONS[attributes.activation as string]!),
      storage: { x: slice(x!), y: slice(y!) },
      uniforms: { quads },
      workgroups: [ceilDiv(quads, QUANTIZE_QUADS)],
    });
  },
}];

/** rms_norm_q8. */
export const gpuRmsNormQ8: GpuKernel = {
  name: "rms_norm_q8",
  when: ({ node: { inputs: [x] } }) => columnsOf(x!) / 4 <= MOST_PASSES * workgroupOf(x!),
  lower({ node: { inputs: [x, weight], outputs: [y], attributes }, slice, emit }) {
    const rows = product(x!.shape.slice(0, -1));
    emit({
      shader: rmsNormQ8({
        columns: columnsOf(x!),
        weight: weight !== undefined,
        epsilon: attributes.epsilon as number,
        base: attributes.base as number,
        workgroup: workgroupOf(x!),
      }),
      storage: { x: slice(x!), y: slice(y!), ...weight && { weight: slice(weight) } },
      uniforms: { rows },
      workgroups: [rows],
    });
  },
};

/** Invocations for a row: no more than it has quads. */
function workgroupOf(x: Value): number {
  const quads = columnsOf(x) / 4;
  return [32, 64, 128].find((size) => quads <= size) ?? 256;
}
