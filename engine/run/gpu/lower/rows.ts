// WebGPU kernels of ops that work row by row: norms, softmax, rotations, embedding, selections.

import { EMBED_BLOCK, embedShader, embedUnit } from "../../../../gpu/kernels/embed.ts";
import { layerNormShader, rmsNormShader } from "../../../../gpu/kernels/norm.ts";
import {
  frequencyTurns,
  ROPE_BLOCK,
  ropeShader,
  ropeTableShader,
} from "../../../../gpu/kernels/rope.ts";
import {
  joinColumnsShader,
  ROWS_BLOCK,
  selectRowsShader,
  weightedSumShader,
} from "../../../../gpu/kernels/rows.ts";
import { softmaxShader } from "../../../../gpu/kernels/softmax.ts";
import type { GpuDispatch, GpuKernel, GpuLowering } from "../kernel.ts";
import { type Dim, mul, product } from "../../../graph/dim/mod.ts";
import type { Value } from "../../../graph/graph.ts";
import { groupsFor, inputSlice, optionalSlice, outputSlice } from "./lower.ts";
import { countOf, hasStaticColumns, isStatic, rowsOf } from "../../wasm/lower/lower.ts";
import { isLayerNorm, isRmsNorm } from "../../../ops/records/norm.ts";
import { lastDim } from "../../../ops/shape_rules.ts";

/** Kernels of `norm` with floats as result. */
export const gpuNormKernels: readonly GpuKernel[] = [
  {
    name: "gpu_rms_norm_f32",
    when: (context) => isRmsNorm(context.node, "f32") && hasStaticColumns(context),
    lower(lowering) {
      const { inputs: [, weight], attributes } = lowering.node;
      const { storage, uniforms, workgroups } = normDispatch(lowering);
      const shader = rmsNormShader({ hasWeight: weight !== undefined });
      const base = attributes.base as number;
      lowering.emit({ shader, storage, uniforms: { ...uniforms, base }, workgroups });
    },
  },
  {
    name: "gpu_layer_norm_f32",
    when: (context) => isLayerNorm(context.node) && hasStaticColumns(context),
    lower(lowering) {
      const { inputs: [, weight, bias] } = lowering.node;
      lowering.emit({
        shader: layerNormShader({ hasWeight: weight !== undefined, hasBias: bias !== undefined }),
        ...normDispatch(lowering),
      });
    },
  },
];

/** A workgroup a row. */
function normDispatch(lowering: GpuLowering): Omit<GpuDispatch, "shader"> {
  const { inputs: [x], attributes } = lowering.node;
  const rows = rowsOf(x!);
  return {
    storage: {
      x: inputSlice(lowering, 0),
      ...optionalSlice(lowering, { name: "w", index: 1 }),
      ...optionalSlice(lowering, { name: "b", index: 2 }),
      y: outputSlice(lowering),
    },
    uniforms: { rows, columns: lastDim(x!), epsilon: attributes.epsilon as number },
    workgroups: [rows],
  };
}

/** Kernels of `softmax`. */
export const gpuSoftmaxKernels: readonly GpuKernel[] = [{
  name: "gpu_softmax_f32",
  when: ({ node: { inputs: [x], attributes } }) => x!.shape.at(attributes.axis as number) !== 0,
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    const axis = attributes.axis as number;
    const at = axis < 0 ? axis + x!.shape.length : axis;
    const inner = product(x!.shape.slice(at + 1));
    const lines = mul(product(x!.shape.slice(0, at)), inner);
    lowering.emit({
      shader: softmaxShader,
      storage: { x: inputSlice(lowering, 0), y: outputSlice(lowering) },
      uniforms: { lines, length: x!.shape[at]!, inner },
      workgroups: [lines],
    });
  },
}];

/** Kernels of `rope_table`: frequencies must be known, they are turned into fixed point beforehand. */
export const gpuRopeTableKernels: readonly GpuKernel[] = [{
  name: "gpu_rope_table_f32",
  when: (context) => {
    const [, frequencies, spans, long] = context.node.inputs;
    return hasStaticColumns(context, 1) && isKnown(frequencies) && (!spans || isKnown(long));
  },
  lower(lowering) {
    const { inputs: [positions, frequencies, spans, long], attributes } = lowering.node;
    const pairs = frequencies!.shape[0] as number;
    const count = mul(positions!.shape[0]!, pairs);
    lowering.emit({
      shader: ropeTableShader({ hasSpans: spans !== undefined }),
      storage: {
        positions: inputSlice(lowering, 0),
        turns: lowering.constant(turnsOf(frequencies!)),
        ...spans && {
          spans: inputSlice(lowering, 2),
          long_turns: lowering.constant(turnsOf(long!)),
        },
        y: outputSlice(lowering),
      },
      uniforms: {
        count,
        pairs,
        magnitude: attributes.magnitude as number,
        ...spans && { beyond: attributes.beyond as number },
      },
      workgroups: groupsFor(count, ROPE_BLOCK),
    });
  },
}];

function isKnown(value: Value | undefined): boolean {
  return value?.data instanceof Float32Array;
}

function turnsOf({ data }: Value): Uint32Array {
  return frequencyTurns(data as Float32Array);
}

/** Kernels of `rope`. */
export const gpuRopeKernels: readonly GpuKernel[] = [{
  name: "gpu_rope_f32",
  when: ({ node: { inputs: [x, table], attributes } }) =>
    attributes.heads === 0 && isStatic(x!.shape[1]) && isStatic(x!.shape[2]) &&
    isStatic(table!.shape[1]) &&
    table!.shape[1] % 2 === 0,
  lower(lowering) {
    const { inputs: [x, table], attributes } = lowering.node;
    const [rows, heads, width] = x!.shape as [Dim, number, number];
    const count = mul(rows, heads * Math.ceil(width / 2));
    lowering.emit({
      shader: ropeShader({ interleaved: attributes.style === "interleaved" }),
      storage: {
        x: inputSlice(lowering, 0),
        table: inputSlice(lowering, 1),
        y: outputSlice(lowering),
      },
      uniforms: { count, heads, width, pairs: (table!.shape[1] as number) / 2 },
      workgroups: groupsFor(count, ROPE_BLOCK),
    });
  },
}];

/** Kernels of `embed`. */
export const gpuEmbedKernels: readonly GpuKernel[] = [{
  name: "gpu_embed",
  when: ({ node: { inputs: [, table] } }) => table!.role === "weight" && table!.shape.length === 2,
  lower(lowering) {
    const { inputs: [tokens, table], attributes: { scale } } = lowering.node;
    const { layout, columns, parts } = lowering.weight(table!);
    const shader = embedShader(layout);
    const planes = Object.keys(shader.storage).slice(1, -1);
    const units = Math.ceil(columns / embedUnit(layout));
    const count = mul(tokens!.shape[0]!, units);
    for (const part of parts) {
      lowering.emit({
        shader,
        storage: {
          tokens: inputSlice(lowering, 0),
          ...Object.fromEntries(planes.map((name, i) => [name, part.planes[i]!])),
          y: outputSlice(lowering),
        },
        uniforms: {
          ...{ count, units, columns, first: part.firstRow, tokens_here: part.rows },
          scale: scale as number,
        },
        workgroups: groupsFor(count, EMBED_BLOCK),
      });
    }
  },
}];

/** Kernels of `select_rows`. */
export const gpuSelectRowsKernels: readonly GpuKernel[] = [{
  name: "gpu_select_rows_f32",
  when: hasStaticColumns,
  lower(lowering) {
    const { inputs: [x], outputs: [y] } = lowering.node;
    const count = countOf(y!);
    lowering.emit({
      shader: selectRowsShader,
      storage: {
        x: inputSlice(lowering, 0),
        indices: inputSlice(lowering, 1),
        y: outputSlice(lowering),
      },
      uniforms: { count, columns: x!.shape[1]! },
      workgroups: groupsFor(count, ROWS_BLOCK),
    });
  },
}];

/** Kernels of `join_columns`. */
export const gpuJoinColumnsKernels: readonly GpuKernel[] = [{
  name: "gpu_join_columns_f32",
  when: (context) =>
    hasStaticColumns(context, 0) && hasStaticColumns(context, 1) &&
    context.node.inputs[0] !== context.node.inputs[1],
  lower(lowering) {
    const { inputs: [a, b], outputs: [y] } = lowering.node;
    const count = countOf(y!);
    lowering.emit({
      shader: joinColumnsShader,
      storage: {
        a: inputSlice(lowering, 0),
        b: inputSlice(lowering, 1),
        y: outputSlice(lowering),
      },
      uniforms: { count, left: lastDim(a!), right: lastDim(b!) },
      workgroups: groupsFor(count, ROWS_BLOCK),
    });
  },
}];

/** Kernels of `weighted_sum`. */
export const gpuWeightedSumKernels: readonly GpuKernel[] = [{
  name: "gpu_weighted_sum_f32",
  when: ({ node: { inputs: [x] } }) => isStatic(x!.shape[1]) && isStatic(x!.shape[2]),
  lower(lowering) {
    const { inputs: [x], outputs: [y] } = lowering.node;
    const [, items, columns] = x!.shape as [Dim, number, number];
    const count = countOf(y!);
    lowering.emit({
      shader: weightedSumShader,
      storage: {
        x: inputSlice(lowering, 0),
        weights: inputSlice(lowering, 1),
        y: outputSlice(lowering),
      },
      uniforms: { count, items, columns },
      workgroups: groupsFor(count, ROWS_BLOCK),
    });
  },
}];
