// WebGPU kernels of `resize`: float32 planes, resized along their two last dims. Elements that only stand several times, as
// where features are brought to the size of finer ones, and planes of known sizes in any way that stays inside of them.
// Crops, other axes and what else has symbolic sizes are the host's.

import { repeatShader, RESIZE_BLOCK, resizeShader } from "../../../../gpu/kernels/resize.ts";
import type { GpuKernel } from "../kernel.ts";
import type { Node } from "../../../graph/graph.ts";
import { groupsFor, inputSlice, outputSlice } from "./lower.ts";
import { countOf, isStatic } from "../../wasm/lower/lower.ts";
import { arePlanes, repeatsOf } from "../../../ops/resize_repeats.ts";
import { type AxisOptions, axisTaps } from "../../../ops/resize_taps.ts";

/** Taps of an axis as tables. */
function tablesOf({ inputs: [x], outputs: [y], attributes }: Node, axis: -1 | -2) {
  const from = x!.shape.at(axis) as number, to = y!.shape.at(axis) as number;
  const scale = (attributes.scales as readonly number[]).at(axis) ?? to / from;
  const options = { ...attributes as unknown as AxisOptions, scale, roi: [0, 1] as const };
  const taps = axisTaps(from, to, options).map((list) => list!);
  return {
    from,
    to,
    taps: taps[0]!.length,
    indices: Uint32Array.from(taps.flat(), ({ index }) => index),
    weights: Float32Array.from(taps.flat(), ({ weight }) => weight),
  };
}

/** Kernels of `resize`. */
export const gpuResizeKernels: readonly GpuKernel[] = [{
  name: "gpu_resize_repeat_f32",
  when: ({ node }) => repeatsOf(node) !== undefined,
  lower(lowering) {
    const { node, node: { outputs: [y] } } = lowering;
    const [scale_h, scale_w] = repeatsOf(node)!, count = countOf(y!);
    lowering.emit({
      shader: repeatShader,
      storage: { x: inputSlice(lowering, 0), y: outputSlice(lowering) },
      uniforms: {
        ...{ count, out_height: y!.shape.at(-2)!, out_width: y!.shape.at(-1)! },
        ...{ scale_h, scale_w },
      },
      workgroups: groupsFor(count, RESIZE_BLOCK),
    });
  },
}, {
  name: "gpu_resize_f32",
  when: ({ node, node: { inputs: [x], outputs: [y] } }) =>
    arePlanes(node) &&
    [...x!.shape.slice(-2), ...y!.shape.slice(-2)].every((size) => isStatic(size) && size > 0),
  lower(lowering) {
    const { node } = lowering;
    const rows = tablesOf(node, -2), columns = tablesOf(node, -1);
    const count = countOf(node.outputs[0]!);
    lowering.emit({
      shader: resizeShader,
      storage: {
        x: inputSlice(lowering, 0),
        row_indices: lowering.constant(rows.indices),
        row_weights: lowering.constant(rows.weights),
        column_indices: lowering.constant(columns.indices),
        column_weights: lowering.constant(columns.weights),
        y: outputSlice(lowering),
      },
      uniforms: {
        ...{ count, height: rows.from, width: columns.from },
        ...{ out_height: rows.to, out_width: columns.to },
        ...{ row_taps: rows.taps, column_taps: columns.taps },
      },
      workgroups: groupsFor(count, RESIZE_BLOCK),
    });
  },
}];
