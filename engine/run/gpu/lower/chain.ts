// WebGPU kernels of `elementwise`: the steps of a chain become one function of WGSL, whose numbers are uniforms, so that
// chains that differ in numbers alone share a pipeline.

import { floatFunctions, lanes } from "../../../../gpu/kernels/element_functions.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import type { Attributes, Node } from "../../../graph/graph.ts";
import { broadcastLoop, isFlat } from "../../../ops/strided_loop.ts";
import { areFloat32 } from "../../wasm/lower/strided.ts";
import { areDistinct, emitElementwise } from "./elementwise.ts";
import { emitElements, fits, STRIDED_NAMES } from "./strided.ts";

/** Numbers of a chain, which share the uniform block with strides. */
const MOST_NUMBERS = 20;

/** A chain as text. */
interface Chain {
  /** `chain(a, …)`, and what it calls. */
  readonly functions: string;
  /** Values of the uniforms that it reads. */
  readonly numbers: Readonly<Record<string, number>>;
}

/** The function of a chain; undefined where WGSL lacks one of its steps. */
function chainOf(inputs: number, attributes: Attributes): Chain | undefined {
  const kinds = attributes.kinds as readonly string[];
  const operands = attributes.operands as readonly number[];
  const parameters = attributes.parameters as readonly number[];
  const constants = attributes.constants as readonly number[];
  const called = floatFunctions(kinds);
  if (called === undefined) return undefined;
  const numbers: Record<string, number> = {};
  const number = (name: string, value: number) => {
    numbers[name] = value;
    return `params.${name}`;
  };
  const registers = [
    ...STRIDED_NAMES.slice(0, inputs),
    ...constants.map((value, i) => number(`constant${i}`, value)),
  ];
  const steps = kinds.map((kind, step) => {
    const [first, second] = operands.slice(2 * step, 2 * step + 2) as [number, number];
    const call = second < 0
      ? `unary_${kind}(${registers[first]!}, ${
        [0, 1].map((i) => number(`number${2 * step + i}`, parameters[2 * step + i]!)).join(", ")
      })`
      : `binary_${kind}(${registers[first]!}, ${registers[second]!})`;
    registers.push(`step${step}`);
    return `  let step${step} = ${call};`;
  });
  const given = STRIDED_NAMES.slice(0, inputs).map((name) => `${name}: f32`).join(", ");
  return {
    functions: [
      called,
      `fn chain(${given}) -> f32 {`,
      ...steps,
      `  return ${registers.at(-1)!};`,
      "}",
    ].join("\n"),
    numbers,
  };
}

function chainOfNode({ inputs, attributes }: Node): Chain | undefined {
  if (inputs.length > STRIDED_NAMES.length || !areFloat32(inputs)) return undefined;
  const chain = chainOf(inputs.length, attributes);
  return chain && Object.keys(chain.numbers).length <= MOST_NUMBERS ? chain : undefined;
}

function lowerAny(lowering: GpuLowering): void {
  const { functions, numbers } = chainOfNode(lowering.node)!;
  const names = STRIDED_NAMES.slice(0, lowering.node.inputs.length).join(", ");
  const expression = `chain(${names})`;
  emitElements(lowering, { name: "elementwise", expression, functions, constants: numbers });
}

/** Kernels of `elementwise`, best first. */
export const gpuChainKernels: readonly GpuKernel[] = [{
  name: "gpu_elementwise_flat_f32",
  when: ({ node }) => isFlat(broadcastLoop(node)) && chainOfNode(node) !== undefined,
  lower(lowering) {
    if (!areDistinct(lowering)) return lowerAny(lowering);
    const { functions, numbers } = chainOfNode(lowering.node)!;
    const inputs = STRIDED_NAMES.slice(0, lowering.node.inputs.length);
    const expression = lanes("chain", { vectors: inputs });
    emitElementwise(lowering, {
      ...{ name: "elementwise", inputs, functions, expression, constants: numbers },
    });
  },
}, {
  name: "gpu_elementwise_f32",
  when: ({ node }) => fits(node) && chainOfNode(node) !== undefined,
  lower: lowerAny,
}];
