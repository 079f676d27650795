// WebGPU kernels of functions of one and of two elements, and of gates.

import type { BinaryName } from "../../../../functions/binary.ts";
import type { UnaryName } from "../../../../functions/unary.ts";
import { NAN_LANES, SIGMOID } from "../../../../gpu/kernels/activations.ts";
import {
  activationFunction,
  binaryFunction,
  type Family,
  lanes,
  unaryFunction,
} from "../../../../gpu/kernels/element_functions.ts";
import {
  ELEMENTWISE_BLOCK,
  type ElementwiseRule,
  elementwiseShader,
} from "../../../../gpu/kernels/elementwise.ts";
import { gluHalvesShader, ROWS_BLOCK } from "../../../../gpu/kernels/rows.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import { ceilDiv } from "../../../graph/dim/mod.ts";
import type { DataType, Node } from "../../../graph/graph.ts";
import { broadcastLoop, isFlat } from "../../../ops/strided_loop.ts";
import { areFloat32 } from "../../wasm/lower/strided.ts";
import { emitElements, fits } from "./strided.ts";
import { groupsFor, inputSlice, outputSlice } from "./lower.ts";
import { countOf, isStatic } from "../../wasm/lower/lower.ts";

/** Emits a rule for inputs that have the shape of the output. */
export function emitElementwise(
  lowering: GpuLowering,
  { constants = {}, ...rule }: Omit<ElementwiseRule, "constants"> & {
    /** Values of f32 uniforms. */
    readonly constants?: Readonly<Record<string, number>>;
  },
): void {
  const count = countOf(lowering.node.outputs[0]!);
  lowering.emit({
    shader: elementwiseShader({ ...rule, constants: Object.keys(constants) }),
    storage: {
      ...Object.fromEntries(
        rule.inputs.map((name, i) => [`${name}_in`, inputSlice(lowering, i)]),
      ),
      y: outputSlice(lowering),
    },
    uniforms: { vectors: ceilDiv(count, 4), ...constants },
    workgroups: groupsFor(count, ELEMENTWISE_BLOCK),
  });
}

/** One memory cannot be bound twice where it may be written. */
function isDistinct({ node: { inputs: [a, b] } }: { readonly node: Node }): boolean {
  return a !== b;
}

function gates({ attributes }: Node, kind: "plain" | "clamped"): boolean {
  return attributes.to === "f32" && (attributes.activation === "clamped") === (kind === "clamped");
}

/** Kernels of `glu` with floats as result; they take no memory twice. */
export const gpuGluKernels: readonly GpuKernel[] = [
  {
    name: "gpu_glu_f32",
    when: (context) =>
      gates(context.node, "plain") && context.node.inputs[1] !== undefined && isDistinct(context),
    lower(lowering) {
      const functions = activationFunction(lowering.node.attributes.activation as string);
      emitElementwise(lowering, {
        name: "glu",
        inputs: ["gate", "up"],
        functions,
        expression: "activation(gate) * up",
      });
    },
  },
  {
    name: "gpu_glu_halves_f32",
    when: ({ node }) =>
      gates(node, "plain") && !node.inputs[1] && isStatic(node.outputs[0]!.shape.at(-1)),
    lower(lowering) {
      const { outputs: [y], attributes } = lowering.node;
      const count = countOf(y!);
      lowering.emit({
        shader: gluHalvesShader(activationFunction(attributes.activation as string)),
        storage: { x: inputSlice(lowering, 0), y: outputSlice(lowering) },
        uniforms: { count, width: y!.shape.at(-1)! },
        workgroups: groupsFor(count, ROWS_BLOCK),
      });
    },
  },
  {
    name: "gpu_clamped_glu_f32",
    when: (context) =>
      gates(context.node, "clamped") && context.node.inputs[1] !== undefined && isDistinct(context),
    lower(lowering) {
      const { limit, alpha } = lowering.node.attributes as Readonly<Record<string, number>>;
      emitElementwise(lowering, {
        name: "clamped_glu",
        inputs: ["gate", "up"],
        functions: [NAN_LANES, SIGMOID, CLAMPED_GLU].join("\n"),
        expression: "clamped_glu(gate, up)",
        constants: { limit: limit!, alpha: alpha! },
      });
    },
  },
];

const CLAMPED_GLU = `fn clamped_glu(gate: vec4<f32>, up: vec4<f32>) -> vec4<f32> {
  let limit = vec4<f32>(params.limit);
  let g = select(min(gate, limit), gate, nan_lanes(gate));
  let u = select(clamp(up, -limit, limit), up, nan_lanes(up));
  return g * sigmoid(params.alpha * g) * (u + 1.0);
}`;

/** Families of types that one expression serves; floats of 16 bits are widened by the graph. */
const FAMILIES: Readonly<Partial<Record<DataType, Family>>> = {
  ...{ f32: "float", bool: "bool", i8: "signed", i16: "signed", i32: "signed" },
  ...{ u8: "unsigned", u16: "unsigned", u32: "unsigned", i64: "wide", u64: "wide" },
};

/** `unary` and what it calls; undefined where WGSL has none. */
function unaryOf({ inputs: [x], attributes: { kind } }: Node): string | undefined {
  const family = FAMILIES[x!.dtype];
  return family && unaryFunction(kind as UnaryName, family);
}

/** Kernels of `unary`, best first. */
export const gpuUnaryKernels: readonly GpuKernel[] = [{
  name: "gpu_unary_f32",
  when: ({ node }) => areFloat32([...node.inputs, ...node.outputs]) && unaryOf(node) !== undefined,
  lower(lowering) {
    const { kind, alpha, beta } = lowering.node.attributes;
    const expression = lanes("unary", { vectors: ["x"], others: ", params.alpha, params.beta" });
    emitElementwise(lowering, {
      ...{ name: `unary_${kind}`, inputs: ["x"], functions: unaryOf(lowering.node)!, expression },
      constants: { alpha: alpha as number, beta: beta as number },
    });
  },
}, {
  name: "gpu_unary",
  when: ({ node }) => fits(node) && unaryOf(node) !== undefined,
  lower(lowering) {
    const { kind, alpha, beta } = lowering.node.attributes;
    emitElements(lowering, {
      name: `unary_${kind}`,
      expression: "unary(a, params.alpha, params.beta)",
      functions: unaryOf(lowering.node)!,
      constants: { alpha: alpha as number, beta: beta as number },
    });
  },
}];

/** `binary` and what it calls; undefined where WGSL has none. */
function binaryOf({ inputs: [a, b], attributes: { kind } }: Node): string | undefined {
  const family = a!.dtype === b!.dtype ? FAMILIES[a!.dtype] : undefined;
  return family && binaryFunction(kind as BinaryName, family, { signed: a!.dtype === "i64" });
}

/** Whether no two inputs lie in the same memory, which is bound once. */
export function areDistinct({ node, slice }: GpuLowering): boolean {
  const slices = node.inputs.map((input) => slice(input!));
  return slices.every(({ buffer, offset }, i) =>
    slices.findIndex((other) => other.buffer === buffer && other.offset === offset) === i
  );
}

function lowerAny(lowering: GpuLowering): void {
  emitElements(lowering, {
    name: `binary_${lowering.node.attributes.kind}`,
    expression: "binary(a, b)",
    functions: binaryOf(lowering.node)!,
  });
}

/** Kernels of `binary`, best first. */
export const gpuBinaryKernels: readonly GpuKernel[] = [{
  name: "gpu_binary_flat_f32",
  when: ({ node }) =>
    areFloat32([...node.inputs, ...node.outputs]) && isFlat(broadcastLoop(node)) &&
    binaryOf(node) !== undefined,
  lower(lowering) {
    if (!areDistinct(lowering)) return lowerAny(lowering);
    emitElementwise(lowering, {
      name: `binary_${lowering.node.attributes.kind}`,
      inputs: ["a", "b"],
      functions: binaryOf(lowering.node)!,
      expression: lanes("binary", { vectors: ["a", "b"] }),
    });
  },
}, {
  name: "gpu_binary",
  when: ({ node }) => fits(node) && binaryOf(node) !== undefined,
  lower: lowerAny,
}];
