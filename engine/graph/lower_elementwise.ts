// WASM kernels of elementwise ops on float32, with any broadcasting.

import { COMBINE_KINDS, MAP_KINDS } from "../../wasm/opcodes_onnx.ts";
import type { Node, Value } from "./graph.ts";
import {
  areFloat32,
  inBytes,
  type Loop,
  mergedLoop,
  numbered,
  repeatingStrides,
} from "./lower_strided.ts";
import { countOf, emit, inputAddress, outputAddress } from "./lower_wasm.ts";
import type { WasmKernel } from "./op.ts";

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

/** Kernel of `unary` for "is_nan": what differs from itself. */
export const isNanKernel: WasmKernel = {
  name: "is_nan_f32",
  when: ({ node }) => areFloat32(node.inputs) && node.attributes.kind === "is_nan",
  lower(lowering) {
    const x = inputAddress(lowering, 0), sizes = [countOf(lowering.node.inputs[0]!)];
    const steps = inBytes([1], 4);
    emit(lowering, "combine", {
      ...{ a: x, b: x, y: outputAddress(lowering), kind: COMBINE_KINDS.differs },
      ...numbered("n", sizes, { rank: COMBINE_RANK, missing: 1 }),
      ...numbered("a", steps, { rank: COMBINE_RANK, missing: 0 }),
      ...numbered("b", steps, { rank: COMBINE_RANK, missing: 0 }),
    });
  },
};

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

/** Kernel of `where`, for elements of 4 bytes. */
export const chooseKernel: WasmKernel = {
  name: "where_4_bytes",
  when: ({ node }) => hasWords(node.outputs[0]!) && broadcastLoop(node).sizes.length <= CHOOSE_RANK,
  lower(lowering) {
    const { inputs: [c, a, b] } = lowering.node;
    const { sizes, strides } = broadcastLoop(lowering.node);
    const rank = { rank: CHOOSE_RANK, missing: 0 };
    emit(lowering, "choose", {
      c: lowering.address(c!),
      a: lowering.address(a!),
      b: lowering.address(b!),
      y: outputAddress(lowering),
      ...numbered("n", sizes, { rank: CHOOSE_RANK, missing: 1 }),
      ...numbered("c", strides[0]!, rank),
      ...numbered("a", inBytes(strides[1]!, 4), rank),
      ...numbered("b", inBytes(strides[2]!, 4), rank),
    });
  },
};

function hasWords({ dtype }: Value): boolean {
  return dtype === "f32" || dtype === "i32" || dtype === "u32";
}
