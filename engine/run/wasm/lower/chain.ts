// The WASM kernel of `elementwise`: its steps become code in memory, with blocks of intermediate results
// that are used again as soon as nobody reads them.

import { BINARY, BINARY_NUMBERS, type BinaryName } from "../../../../functions/binary.ts";
import { UNARY, UNARY_NUMBERS, type UnaryName } from "../../../../functions/unary.ts";
import type { WasmKernel } from "../kernel.ts";
import type { Attributes, Node } from "../../../graph/graph.ts";
import { broadcastLoop } from "../../../ops/strided_loop.ts";
import { inBytes, numbered } from "./strided.ts";
import { emit, outputAddress } from "./lower.ts";

/** Most inputs of a chain; constants are not counted. */
const MOST_CHAIN_INPUTS = 4;

/** Most steps of a chain. */
const MOST_CHAIN_STEPS = 24;

const RANK = 3;
const MOST_REGISTERS = 64;
const TABLE_BYTES = 8 * MOST_REGISTERS;
const BLOCK_BYTES = 4 * 512;

/** True if WASM has a loop for the function; chains have no tests (ops/records/elementwise.ts). */
function hasChainFunction(kind: string): boolean {
  return (UNARY[kind as UnaryName] ?? BINARY[kind as BinaryName]).simd !== undefined;
}

/** Kernel of `elementwise`. */
export const chainKernel: WasmKernel = {
  name: "elementwise_f32",
  when: ({ node }) => canRunChain(node),
  lower(lowering) {
    const { node } = lowering;
    const { inputs } = node;
    const { sizes, strides } = broadcastLoop(node);
    const { code, blocks } = chainCode(inputs.length, node.attributes);
    const scratchBytes = TABLE_BYTES + blocks * BLOCK_BYTES;
    const address = (i: number) => inputs[i] ? lowering.address(inputs[i]) : 0;
    const steps = (i: number) => inBytes(strides[i] ?? [], 4);
    const rank = { rank: RANK, missing: 0 };
    emit(lowering, {
      name: "elementwise",
      operands: {
        code: lowering.words(code),
        steps: (node.attributes.kinds as readonly string[]).length,
        constants: (node.attributes.constants as readonly number[]).length,
        inputs: inputs.length,
        y: outputAddress(lowering),
        scratch: lowering.scratch(scratchBytes),
        scratch_bytes: Math.ceil(scratchBytes / 64) * 64,
        ...numbered("n", sizes, { rank: RANK, missing: 1 }),
        a: address(0),
        ...numbered("a", steps(0), rank),
        b: address(1),
        ...numbered("b", steps(1), rank),
        c: address(2),
        ...numbered("c", steps(2), rank),
        d: address(3),
        ...numbered("d", steps(3), rank),
      },
    });
  },
};

/** Whether the kernel takes a chain: its inputs, steps and the dims that are left after merging. */
function canRunChain(node: Pick<Node, "inputs" | "outputs" | "attributes">): boolean {
  const kinds = node.attributes.kinds as readonly string[];
  const constants = node.attributes.constants as readonly number[];
  const registers = node.inputs.length + constants.length + kinds.length;
  return node.inputs.length <= MOST_CHAIN_INPUTS && kinds.length <= MOST_CHAIN_STEPS &&
    registers <= MOST_REGISTERS &&
    kinds.every(hasChainFunction) && broadcastLoop(node).sizes.length <= RANK;
}

function chainCode(
  inputs: number,
  attributes: Attributes,
): { readonly code: Uint32Array; readonly blocks: number } {
  const kinds = attributes.kinds as readonly string[];
  const operands = attributes.operands as readonly number[];
  const parameters = attributes.parameters as readonly number[];
  const constants = attributes.constants as readonly number[];
  const given = inputs + constants.length;
  const code = new Uint32Array(6 * kinds.length + constants.length);
  const floats = new Float32Array(code.buffer);
  /** Block of each step's result, and those that are free. */
  const blockOf: number[] = [], free: number[] = [];
  let blocks = 0;
  const register = (operand: number) =>
    operand < given ? operand : given + blockOf[operand - given]!;
  kinds.forEach((kind, step) => {
    const [a, b] = operands.slice(2 * step, 2 * step + 2) as [number, number];
    const at = 6 * step;
    const isMap = b < 0;
    code[at] = isMap ? 0 : 1;
    code[at + 1] = isMap ? UNARY_NUMBERS[kind as UnaryName] : BINARY_NUMBERS[kind as BinaryName];
    code[at + 3] = register(a);
    if (isMap) floats.set(parameters.slice(2 * step, 2 * step + 2), at + 4);
    else code[at + 4] = register(b);
    // A result may replace an operand: functions read an element before they write it.
    for (const operand of new Set([a, b])) {
      if (operand >= given && operands.lastIndexOf(operand) < 2 * step + 2) {
        free.push(blockOf[operand - given]!);
      }
    }
    blockOf[step] = step === kinds.length - 1 ? -1 - given : free.pop() ?? blocks++;
    code[at + 2] = given + blockOf[step]!;
  });
  floats.set(constants, 6 * kinds.length);
  return { code, blocks };
}
