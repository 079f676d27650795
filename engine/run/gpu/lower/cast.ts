// WebGPU kernels of `cast`. Floats of 8 and 4 bits go through tables (small_float_steps.ts). Left to the host: floats
// of 64 bits, and float32 to and from whole numbers of 64 bits.

import {
  CAST_FUNCTIONS,
  castExpression,
  FIND_CODE,
  FLOAT_TO_U32,
} from "../../../../gpu/kernels/cast_functions.ts";
import { ELEMENTS } from "../../../../gpu/kernels/element_types.ts";
import { stridedShader } from "../../../../gpu/kernels/strided_map.ts";
import { isSmallFloat, type SmallFloat } from "../../../../quant/small_floats.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import type { DataType, Node } from "../../../graph/graph.ts";
import { inputSlice, outputSlice } from "./lower.ts";
import { elementTypeOf, emitElements, stridedGroups } from "./strided.ts";
import { countOf } from "../../wasm/lower/lower.ts";
import { smallFloatSteps, smallFloatValues } from "../../../ops/small_float_steps.ts";

/** Whole numbers that are smaller than what holds them. */
const NARROW: Readonly<Partial<Record<DataType, (value: string) => string>>> = {
  i4: (value) => `extractBits(${value}, 0u, 4u)`,
  i2: (value) => `extractBits(${value}, 0u, 2u)`,
  u4: (value) => `(${value} & 15u)`,
  u2: (value) => `(${value} & 3u)`,
};

function castRule({ inputs: [x], outputs: [y] }: Node): string | undefined {
  const from = elementTypeOf(x!), to = elementTypeOf(y!);
  if (!from || !to || x!.dtype === "f64" || y!.dtype === "f64") return undefined;
  if (x!.dtype === y!.dtype) return "a";
  if (ELEMENTS[from].value === "f32" && y!.dtype === "u32") return FLOAT_TO_U32;
  const value = castExpression(ELEMENTS[from].value, ELEMENTS[to].value);
  return value && (NARROW[y!.dtype]?.(value) ?? value);
}

/** Kernels of `cast`. */
export const gpuCastKernels: readonly GpuKernel[] = [{
  name: "gpu_cast",
  when: ({ node }) => castRule(node) !== undefined,
  lower: (lowering) =>
    emitElements(lowering, {
      name: "cast",
      expression: castRule(lowering.node)!,
      functions: CAST_FUNCTIONS,
    }),
}, {
  name: "gpu_cast_from_codes",
  when: ({ node: { inputs: [x], outputs: [y] } }) => isSmallFloat(x!.dtype) && y!.dtype === "f32",
  lower(lowering) {
    const values = smallFloatValues(lowering.node.inputs[0]!.dtype as SmallFloat);
    emitTable(lowering, {
      words: values,
      rule: {
        ...{ name: "look_up", inputs: { a: "u8", table: "u32" }, output: "u32" },
        expression: "table_in[a]",
      },
    });
  },
}, {
  name: "gpu_cast_to_codes",
  when: ({ node: { inputs: [x], outputs: [y] } }) => isSmallFloat(y!.dtype) && x!.dtype === "f32",
  lower(lowering) {
    const { outputs: [y], attributes } = lowering.node;
    const { count, words } = smallFloatSteps(y!.dtype as SmallFloat, attributes);
    emitTable(lowering, {
      words,
      rule: {
        ...{ name: "find_code", inputs: { a: "u32", table: "u32" }, output: "u8" },
        ...{ expression: "find_code(a)", functions: FIND_CODE, numbers: ["steps"] },
      },
      numbers: { steps: count },
    });
  },
}];

type Rule = Omit<Parameters<typeof stridedShader>[0], "rank">;

function emitTable(
  lowering: GpuLowering,
  { words, rule, numbers = {} }: {
    readonly words: Uint32Array;
    readonly rule: Rule;
    readonly numbers?: Readonly<Record<string, number>> | undefined;
  },
): void {
  const count = countOf(lowering.node.outputs[0]!);
  lowering.emit({
    shader: stridedShader({ ...rule, rank: 1 }),
    storage: {
      a_in: inputSlice(lowering, 0),
      table_in: lowering.constant(words),
      y: outputSlice(lowering),
    },
    uniforms: { count, a_at: 0, a_0: 1, table_at: 0, table_0: 0, ...numbers },
    workgroups: stridedGroups(count, rule.output),
  });
}
