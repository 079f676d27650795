// WASM kernels on elements of any type: conversions, arithmetic on whole numbers, progressions, totals.

import { BINARY, type BinaryName } from "../../../../functions/binary.ts";
import { UNARY, UNARY_NUMBERS, type UnaryName } from "../../../../functions/unary.ts";
import { isSmallFloat, type SmallFloat } from "../../../../quant/small_floats.ts";
import { ELEMENT_KINDS } from "../../../../wasm/opcodes_onnx.ts";
import type { WasmKernel } from "../kernel.ts";
import { add, type Dim, floorDiv, product } from "../../../graph/dim/mod.ts";
import type { DataType, Node, Value } from "../../../graph/graph.ts";
import { axisOf } from "../../../ops/host_numbers.ts";
import { hostElementBytes } from "../../../ops/host_tensor.ts";
import { broadcastLoop } from "../../../ops/strided_loop.ts";
import { combineOperands } from "./elementwise.ts";
import { countOf, emit, inputAddress, outputAddress } from "./lower.ts";
import { smallFloatSteps, smallFloatValues } from "../../../ops/small_float_steps.ts";

/** Number of an element type in instructions; undefined where no kernel knows it. */
export function elementKind(dtype: DataType): number | undefined {
  return Object.hasOwn(ELEMENT_KINDS, dtype)
    ? ELEMENT_KINDS[dtype as keyof typeof ELEMENT_KINDS]
    : undefined;
}

/** 1 for indices of 64 bits, 0 for those of 32. */
export function isWide({ dtype }: Value): number {
  return dtype === "i64" ? 1 : 0;
}

function isInteger(value: Value | undefined): boolean {
  return (elementKind(value!.dtype) ?? Infinity) < ELEMENT_KINDS.f32;
}

/** Lines along an axis: how many before, how long, how many side by side. */
export function linesOf(
  { shape }: Value,
  axis: number,
): { readonly outer: Dim; readonly length: Dim; readonly inner: Dim } {
  const at = axisOf(axis, shape.length);
  return {
    outer: product(shape.slice(0, at)),
    length: shape[at]!,
    inner: product(shape.slice(at + 1)),
  };
}

/** Kernel of `cast`; float64 to half precision would round twice. */
export const convertKernel: WasmKernel = {
  name: "cast_elements",
  when({ node: { inputs: [x], outputs: [y] } }) {
    const known = elementKind(x!.dtype) !== undefined && elementKind(y!.dtype) !== undefined;
    return known && !(x!.dtype === "f64" && hostElementBytes(y!.dtype) === 2);
  },
  lower(lowering) {
    const { inputs: [x], outputs: [y] } = lowering.node;
    emit(lowering, {
      name: "convert",
      operands: {
        x: lowering.address(x!),
        y: outputAddress(lowering),
        count: countOf(x!),
        from: elementKind(x!.dtype)!,
        to: elementKind(y!.dtype)!,
      },
    });
  },
};

/** Kernels of `cast` between float32 and small floats, by tables. */
export const codeKernels: readonly WasmKernel[] = [{
  name: "cast_from_codes",
  when: ({ node: { inputs: [x], outputs: [y] } }) => isSmallFloat(x!.dtype) && y!.dtype === "f32",
  lower(lowering) {
    const { inputs: [x] } = lowering.node;
    emit(lowering, {
      name: "look_up",
      operands: {
        x: lowering.address(x!),
        y: outputAddress(lowering),
        count: countOf(x!),
        table: lowering.words(smallFloatValues(x!.dtype as SmallFloat)),
      },
    });
  },
}, {
  name: "cast_to_codes",
  when: ({ node: { inputs: [x], outputs: [y] } }) => isSmallFloat(y!.dtype) && x!.dtype === "f32",
  lower(lowering) {
    const { inputs: [x], outputs: [y], attributes } = lowering.node;
    const { count: steps, words } = smallFloatSteps(y!.dtype as SmallFloat, attributes);
    emit(lowering, {
      name: "find_code",
      operands: {
        x: lowering.address(x!),
        y: outputAddress(lowering),
        count: countOf(x!),
        table: lowering.words(words),
        steps,
      },
    });
  },
}];

/** The kernel of `unary` on some types. */
function mapTypedKernel(
  name: string,
  form: "i64" | "f64",
  takes: (x: Value) => boolean,
): WasmKernel {
  return {
    name,
    when: ({ node: { inputs: [x], attributes: { kind } } }) =>
      takes(x!) && UNARY[kind as UnaryName][form] !== undefined,
    lower(lowering) {
      const { inputs: [x], attributes } = lowering.node;
      emit(lowering, {
        name: "map_integers",
        operands: {
          x: lowering.address(x!),
          y: outputAddress(lowering),
          count: countOf(x!),
          kind: UNARY_NUMBERS[attributes.kind as UnaryName],
          type: elementKind(x!.dtype)!,
        },
      });
    },
  };
}

/** Kernels of `unary` on whole numbers and truth values, and on float64. */
export const mapTypedKernels: readonly WasmKernel[] = [
  mapTypedKernel("unary_integers", "i64", (x) => isInteger(x) && x.dtype !== "u64"),
  mapTypedKernel("unary_float64", "f64", ({ dtype }) => dtype === "f64"),
];

const RANK = 6;

/** The kernel of `binary` on some types. */
function combineTypedKernel(
  name: string,
  form: "i64" | "f64",
  takes: (x: Value) => boolean,
): WasmKernel {
  return {
    name,
    when: ({ node }) =>
      takes(node.inputs[0]!) &&
      BINARY[node.attributes.kind as BinaryName][form] !== undefined &&
      broadcastLoop(node).sizes.length <= RANK,
    lower(lowering) {
      const { dtype } = lowering.node.inputs[0]!;
      emit(lowering, {
        name: "combine_integers",
        operands: {
          ...combineOperands(lowering, hostElementBytes(dtype)),
          type: elementKind(dtype)!,
        },
      });
    },
  };
}

/** Kernels of `binary` on whole numbers and truth values, and on float64. */
export const combineTypedKernels: readonly WasmKernel[] = [
  combineTypedKernel("binary_integers", "i64", isInteger),
  combineTypedKernel("binary_float64", "f64", ({ dtype }) => dtype === "f64"),
];

/** Kernel of `range`. */
export const rangeKernel: WasmKernel = {
  name: "range_elements",
  when: ({ node }) => elementKind(node.outputs[0]!.dtype) !== undefined,
  lower(lowering) {
    const { outputs: [y] } = lowering.node;
    emit(lowering, {
      name: "count_up",
      operands: {
        start: inputAddress(lowering, 0),
        delta: inputAddress(lowering, 1),
        y: outputAddress(lowering),
        count: countOf(y!),
        type: elementKind(y!.dtype)!,
      },
    });
  },
};

// Each element is an instruction: this is for shapes, not for tables.
const MOST_NUMBERS = 64;

/** Kernel of `from_dims`. */
export const numbersKernel: WasmKernel = {
  name: "from_dims_elements",
  when: ({ node }) =>
    elementKind(node.outputs[0]!.dtype) !== undefined && valuesOf(node).length <= MOST_NUMBERS,
  lower(lowering) {
    const { dtype } = lowering.node.outputs[0]!;
    const address = outputAddress(lowering), bytes = hostElementBytes(dtype);
    valuesOf(lowering.node).forEach((value, i) => {
      // Operands keep the low 32 bits of a number.
      emit(lowering, {
        name: "set_number",
        operands: {
          y: add(address, i * bytes),
          type: elementKind(dtype)!,
          low: value,
          high: floorDiv(value, 2 ** 32),
        },
      });
    });
  },
};

function valuesOf({ attributes }: Node): readonly Dim[] {
  return attributes.values as readonly Dim[];
}

/** Kernel of `cumulative`. */
export const accumulateKernel: WasmKernel = {
  name: "cumulative_elements",
  when: ({ node }) => elementKind(node.inputs[0]!.dtype) !== undefined,
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    emit(lowering, {
      name: "accumulate",
      operands: {
        x: lowering.address(x!),
        y: outputAddress(lowering),
        ...linesOf(x!, attributes.axis as number),
        type: elementKind(x!.dtype)!,
        products: attributes.kind === "prod" ? 1 : 0,
        exclusive: Number(attributes.exclusive),
        reverse: Number(attributes.reverse),
      },
    });
  },
};
