// WebGPU kernels of elementwise ops: functions of one or two tensors of one shape, and sums and products that
// broadcast.

import {
  ACTIVATIONS,
  NAN_LANES,
  SIGMOID_FUNCTION,
  TANH,
} from "../../../../gpu/kernels/activations.ts";
import { BROADCAST_BLOCK, broadcastShader } from "../../../../gpu/kernels/broadcast.ts";
import {
  ELEMENTWISE_BLOCK,
  type ElementwiseRule,
  elementwiseShader,
} from "../../../../gpu/kernels/elementwise.ts";
import { gluHalvesShader, ROWS_BLOCK } from "../../../../gpu/kernels/rows.ts";
import type { GpuKernel, GpuKernelContext, GpuLowering } from "../kernel.ts";
import { ceilDiv } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { mergedDims, strides } from "../../wasm/lower/binary.ts";
import { groupsFor, inputSlice, outputSlice } from "./lower.ts";
import { countOf, isStatic } from "../../wasm/lower/lower.ts";

/** Emits a rule for inputs that have the shape of the output. */
function emitElementwise(
  lowering: GpuLowering,
  rule: ElementwiseRule,
  constants: Readonly<Record<string, number>> = {},
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
function isDistinct({ node: { inputs: [a, b] } }: GpuKernelContext): boolean {
  return a !== b;
}

/** Kernels of `activation`. */
export const gpuActivationKernels: readonly GpuKernel[] = [{
  name: "gpu_activation_f32",
  when: () => true,
  lower(lowering) {
    const functions = ACTIVATIONS[lowering.node.attributes.kind as string]!;
    emitElementwise(lowering, {
      name: "activation",
      inputs: ["x"],
      functions,
      expression: "activation(x)",
    });
  },
}];

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
      const functions = ACTIVATIONS[lowering.node.attributes.activation as string]!;
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
        shader: gluHalvesShader(ACTIVATIONS[attributes.activation as string]!),
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
        functions: [NAN_LANES, SIGMOID_FUNCTION, CLAMPED_GLU].join("\n"),
        expression: "clamped_glu(gate, up)",
      }, { limit: limit!, alpha: alpha! });
    },
  },
];

const CLAMPED_GLU = `fn clamped_glu(gate: vec4<f32>, up: vec4<f32>) -> vec4<f32> {
  let limit = vec4<f32>(params.limit);
  let g = select(min(gate, limit), gate, nan_lanes(gate));
  let u = select(clamp(up, -limit, limit), up, nan_lanes(up));
  return g * sigmoid(params.alpha * g) * (u + 1.0);
}`;

/** Kernels of `scale`. */
export const gpuScaleKernels: readonly GpuKernel[] = [{
  name: "gpu_scale_f32",
  when: () => true,
  lower(lowering) {
    const factor = lowering.node.attributes.factor as number;
    emitElementwise(
      lowering,
      { name: "scale", inputs: ["x"], expression: "x * params.factor" },
      { factor },
    );
  },
}];

/** Kernels of `softcap`. */
export const gpuSoftcapKernels: readonly GpuKernel[] = [{
  name: "gpu_softcap_f32",
  when: () => true,
  lower(lowering) {
    const cap = lowering.node.attributes.cap as number;
    emitElementwise(lowering, {
      name: "softcap",
      inputs: ["x"],
      functions: TANH,
      expression: "params.cap * safe_tanh(x / params.cap)",
    }, { cap });
  },
}];

const OPERATORS = { add: "+", mul: "*" } as const;

/** Kernels of `add` or `mul`, best first. */
export function gpuBinaryKernels(op: keyof typeof OPERATORS): readonly GpuKernel[] {
  const operator = OPERATORS[op];
  return [
    {
      name: `gpu_${op}_same_f32`,
      when: (context) => !isDistinct(context),
      lower(lowering) {
        emitElementwise(lowering, {
          name: `${op}_same`,
          inputs: ["x"],
          expression: `x ${operator} x`,
        });
      },
    },
    {
      name: `gpu_${op}_flat_f32`,
      when: (context) => isDistinct(context) && isFlat(context.node),
      lower(lowering) {
        emitElementwise(lowering, {
          name: op,
          inputs: ["a", "b"],
          expression: `a ${operator} b`,
        });
      },
    },
    {
      name: `gpu_${op}_strided_f32`,
      when: (context) => isDistinct(context) && mergedDims(context.node).length <= 4,
      lower(lowering) {
        const dims = mergedDims(lowering.node);
        const front = Array<0>(4 - dims.length).fill(0);
        const [, n1, n2, n3] = [...front.map(() => 1), ...dims.map(({ size }) => size)];
        const [a0, a1, a2, a3] = [...front, ...strides(dims, "a")];
        const [b0, b1, b2, b3] = [...front, ...strides(dims, "b")];
        const count = countOf(lowering.node.outputs[0]!);
        lowering.emit({
          shader: broadcastShader(operator),
          storage: {
            a: inputSlice(lowering, 0),
            b: inputSlice(lowering, 1),
            y: outputSlice(lowering),
          },
          uniforms: {
            ...{ n1: n1!, n2: n2!, n3: n3!, count },
            ...{ a0: a0!, a1: a1!, a2: a2!, a3: a3! },
            ...{ b0: b0!, b1: b1!, b2: b2!, b3: b3! },
          },
          workgroups: groupsFor(count, BROADCAST_BLOCK),
        });
      },
    },
  ];
}

function isFlat(node: Node): boolean {
  return mergedDims(node).every(({ a, b }) => a && b);
}
