// WebGPU kernels of `quantize_linear` and `dequantize_linear` between float32 and whole numbers of up to 32 bits: one
// function of each element, its scale and its zero point, which are read with strides of their own.

import { FLOAT_TESTS } from "../../../../gpu/kernels/element_functions.ts";
import type { GpuKernel } from "../kernel.ts";
import { type Dim, equal, product } from "../../../graph/dim/mod.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { axisOf } from "../../../ops/host_numbers.ts";
import { elementTypeOf, emitElements } from "./strided.ts";
import { areFloat32 } from "../../wasm/lower/strided.ts";
import { CODE_RANGES } from "../../../ops/quantization.ts";
import { denseStrides, type Loop, mergedLoop } from "../../../ops/strided_loop.ts";

/** The loop over x, with blocks as a dim of their own; undefined where scales fit it in no known way. */
function scaleLoop({ inputs: [x, scale, zero], attributes }: Node): Loop | undefined {
  const { shape } = x!, block = attributes.block as number;
  const loop = (sizes: readonly Dim[], steps: readonly Dim[]) => {
    const strides = [denseStrides(sizes), steps, ...zero ? [steps] : []];
    return mergedLoop({ sizes, strides });
  };
  if (zero && !equal(product(zero.shape), product(scale!.shape))) return undefined;
  if (equal(product(scale!.shape), 1)) return loop(shape, shape.map(() => 0));
  const axis = axisOf(attributes.axis as number, shape.length), size = shape[axis]!;
  if (block === 0) {
    if (!equal(product(scale!.shape), size)) return undefined;
    return loop(shape, shape.map((_, at) => at === axis ? 1 : 0));
  }
  if (typeof size !== "number" || size % block !== 0) return undefined;
  const blocks = shape.with(axis, size / block);
  if (!equal(product(scale!.shape), product(blocks))) return undefined;
  const steps = denseStrides(blocks);
  return loop(blocks.toSpliced(axis + 1, 0, block), steps.toSpliced(axis + 1, 0, 0));
}

function fits(node: Node): boolean {
  return (scaleLoop(node)?.sizes.length ?? Infinity) <= 6;
}

/** Types whose differences 32 bits hold. */
function isWhole({ dtype }: Value): boolean {
  return /^[iu](2|4|8|16)$/.test(dtype);
}

/** Kernels of `dequantize_linear`; sums of 32 bits have no zero point. */
export const gpuDequantizeKernels: readonly GpuKernel[] = [{
  name: "gpu_dequantize_f32",
  when: ({ node }) => {
    const { inputs: [x, scale, zero], outputs } = node;
    return (isWhole(x!) || x!.dtype === "i32" && !zero) && areFloat32([scale, ...outputs]) &&
      fits(node);
  },
  lower(lowering) {
    const { node } = lowering;
    emitElements(lowering, {
      name: "dequantize",
      expression: node.inputs[2] ? "f32(i32(a) - i32(c)) * b" : "f32(a) * b",
      loop: scaleLoop(node)!,
    });
  },
}];

/** Kernels of `quantize_linear`. */
export const gpuQuantizeLinearKernels: readonly GpuKernel[] = [{
  name: "gpu_quantize_codes",
  when: ({ node }) =>
    areFloat32(node.inputs.slice(0, 2)) && node.attributes.precision === "f32" &&
    isWhole(node.outputs[0]!) && fits(node),
  lower(lowering) {
    const { node } = lowering, { outputs: [y] } = node;
    const [least, most] = CODE_RANGES[y!.dtype]!;
    const type = elementTypeOf(y!)!.startsWith("u") ? "u32" : "i32";
    const moved = node.inputs[2] ? "round(a / b) + f32(c)" : "round(a / b)";
    emitElements(lowering, {
      name: "quantize",
      // NaN becomes 0, as in whatever stores it as a whole number.
      expression:
        `select(${type}(clamp(${moved}, params.least, params.most)), ${type}(), is_nan(a / b))`,
      functions: FLOAT_TESTS,
      constants: { least, most },
      loop: scaleLoop(node)!,
    });
  },
}];
