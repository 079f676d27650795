// WASM kernels of elementwise ops on float32, with any broadcasting.

import { COMBINE_KINDS, MAP_KINDS } from "../../../../wasm/opcodes_onnx.ts";
import type { WasmKernel } from "../kernel.ts";
import type { Node } from "../../../graph/graph.ts";
import { areFloat32, inBytes, movableBytes, numbered } from "./strided.ts";
import { countOf, emit, inputAddress, outputAddress } from "./lower.ts";
import { type Loop, mergedLoop, repeatingStrides } from "../../../ops/strided_loop.ts";

/** The loop over an output, with the strides of the inputs. */
export function broadcastLoop(
  { inputs, outputs: [y] }: Pick<Node, "inputs" | "outputs">,
): Loop {
  return mergedLoop({
    sizes: y!.shape,
    strides: inputs.map((input) => repeatingStrides(input!.shape, y!.shape)),
  });
}

/** Kernel of `unary`. */
export const mapKernel: WasmKernel = {
  name: "unary_f32",
  when: ({ node }) =>
    areFloat32(node.inputs) && Object.hasOwn(MAP_KINDS, node.attributes.kind as string),
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    emit(lowering, "map", {
      x: lowering.address(x!),
      y: outputAddress(lowering),
      count: countOf(x!),
      kind: MAP_KINDS[attributes.kind as keyof typeof MAP_KINDS],
      alpha: attributes.alpha as number,
      beta: attributes.beta as number,
    });
  },
};

const COMBINE_RANK = 6, CHOOSE_RANK = 5;

/** A test of each element against itself or one number. */
function testKernel(
  kind: string,
  test: (attributes: Node["attributes"]) => readonly [keyof typeof COMBINE_KINDS, number?],
): WasmKernel {
  return {
    name: `${kind}_f32`,
    when: ({ node }) => areFloat32(node.inputs) && node.attributes.kind === kind,
    lower(lowering) {
      const { inputs: [value], attributes } = lowering.node;
      const [name, other] = test(attributes);
      const x = inputAddress(lowering, 0), sizes = [countOf(value!)];
      const steps = { rank: COMBINE_RANK, missing: 0 };
      emit(lowering, "combine", {
        a: x,
        b: other === undefined ? x : lowering.words(bitsOf(other)),
        y: outputAddress(lowering),
        kind: COMBINE_KINDS[name],
        ...numbered("n", sizes, { rank: COMBINE_RANK, missing: 1 }),
        ...numbered("a", [4], steps),
        ...numbered("b", [other === undefined ? 4 : 0], steps),
      });
    },
  };
}

function bitsOf(value: number): Uint32Array {
  return new Uint32Array(Float32Array.of(value).buffer);
}

/** Kernels of `unary` whose results are truth values: what differs from itself is no number. */
export const testKernels: readonly WasmKernel[] = [
  testKernel("is_nan", () => ["differs"]),
  testKernel("is_infinite", ({ alpha: negative, beta: positive }) => {
    if (negative && positive) return ["equals_size", Infinity];
    return ["equal", positive ? Infinity : negative ? -Infinity : NaN];
  }),
];

/** Kernel of `binary`, or of an op that is one of its functions. */
export function combineKernel(name: string, fixed?: keyof typeof COMBINE_KINDS): WasmKernel {
  const kindOf = ({ attributes }: Node) => fixed ?? attributes.kind as string;
  return {
    name,
    when: ({ node }) =>
      areFloat32(node.inputs) && Object.hasOwn(COMBINE_KINDS, kindOf(node)) &&
      broadcastLoop(node).sizes.length <= COMBINE_RANK,
    lower(lowering) {
      const { inputs: [a, b] } = lowering.node;
      const { sizes, strides } = broadcastLoop(lowering.node);
      emit(lowering, "combine", {
        a: lowering.address(a!),
        b: lowering.address(b!),
        y: outputAddress(lowering),
        kind: COMBINE_KINDS[kindOf(lowering.node) as keyof typeof COMBINE_KINDS],
        ...numbered("n", sizes, { rank: COMBINE_RANK, missing: 1 }),
        ...numbered("a", inBytes(strides[0]!, 4), { rank: COMBINE_RANK, missing: 0 }),
        ...numbered("b", inBytes(strides[1]!, 4), { rank: COMBINE_RANK, missing: 0 }),
      });
    },
  };
}

/** Kernel of `where`. */
export const chooseKernel: WasmKernel = {
  name: "where_elements",
  when: ({ node }) =>
    movableBytes(node.outputs[0]!) !== undefined && broadcastLoop(node).sizes.length <= CHOOSE_RANK,
  lower(lowering) {
    const { inputs: [c, a, b] } = lowering.node;
    const { sizes, strides } = broadcastLoop(lowering.node);
    const rank = { rank: CHOOSE_RANK, missing: 0 }, bytes = movableBytes(a!)!;
    emit(lowering, "choose", {
      c: lowering.address(c!),
      a: lowering.address(a!),
      b: lowering.address(b!),
      y: outputAddress(lowering),
      bytes,
      ...numbered("n", sizes, { rank: CHOOSE_RANK, missing: 1 }),
      ...numbered("c", strides[0]!, rank),
      ...numbered("a", inBytes(strides[1]!, bytes), rank),
      ...numbered("b", inBytes(strides[2]!, bytes), rank),
    });
  },
};
