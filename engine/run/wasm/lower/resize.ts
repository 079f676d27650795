// Lowering of resizing along the two last dims of float32 planes, to the nearest element or linearly.
// Cubic kernels, antialiasing, crops and other axes are left to the reference.

import type { WasmKernel } from "../kernel.ts";
import { equal, product } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { roundUp64 } from "./conv.ts";
import { emit, inputAddress, outputAddress } from "./lower.ts";
import { COORDINATES, ROUNDINGS } from "../../../ops/resize_taps.ts";

/** Bytes of a table of 256 columns and one row: see wasm/assembly/network/resize.ts. */
const SCRATCH_BYTES = 257 * 12;

function isPlane({ inputs: [x], outputs: [y], attributes }: Node): boolean {
  const rank = x!.shape.length, scales = attributes.scales as readonly number[];
  if (x!.dtype !== "f32" || rank < 2) return false;
  const others = x!.shape.slice(0, -2);
  return others.every((size, axis) => equal(size, y!.shape[axis]!)) &&
    scales.slice(0, -2).every((scale) => scale === 1) &&
    scales.slice(-2).every((scale) => Math.fround(scale) === scale && scale > 0);
}

/** Nearest and linear. */
export const resizeKernel: WasmKernel = {
  name: "resize_f32",
  when({ node }) {
    const { mode, antialias, exclude_outside, coordinates } = node.attributes;
    return mode !== "cubic" && !antialias && !exclude_outside &&
      coordinates !== "crop_and_resize" && isPlane(node);
  },
  lower(lowering) {
    const { inputs: [x], outputs: [y], attributes } = lowering.node;
    const [scale_h = 0, scale_w = 0] = (attributes.scales as readonly number[]).slice(-2);
    emit(lowering, {
      name: "resize",
      operands: {
        x: inputAddress(lowering, 0),
        y: outputAddress(lowering),
        planes: product(x!.shape.slice(0, -2)),
        height: x!.shape.at(-2)!,
        width: x!.shape.at(-1)!,
        out_height: y!.shape.at(-2)!,
        out_width: y!.shape.at(-1)!,
        ...{ scale_h, scale_w },
        linear: attributes.mode === "linear" ? 1 : 0,
        coordinates: (COORDINATES as readonly unknown[]).indexOf(attributes.coordinates),
        rounding: (ROUNDINGS as readonly unknown[]).indexOf(attributes.rounding),
        scratch: lowering.scratch(SCRATCH_BYTES),
        scratch_bytes: roundUp64(SCRATCH_BYTES),
      },
    });
  },
};
