// Strings through ops that move elements and look at none: each string becomes a number, the node runs on numbers as
// it always does, and what comes out are strings again. So such an op has one definition for all elements.

import type { OnnxGraph, OnnxNode } from "../file/model.ts";
import { type HostValue, isHostTensor } from "./tensor.ts";

/** A node with its values; part of `HostCall`. */
interface Moving {
  readonly node: OnnxNode;
  readonly inputs: readonly (HostValue | undefined)[];
  run(body: OnnxGraph, inputs: readonly HostValue[]): Promise<HostValue[]>;
}

/** The node alone, as a body. */
const bodies = new WeakMap<OnnxNode, OnnxGraph>();

/** Results of a node some of whose inputs are strings. @throws {TypeError} If one is neither that nor numbers. */
export async function moveStrings(moving: Moving): Promise<HostValue[]> {
  const { node, inputs } = moving;
  const texts: string[] = [], codes = new Map<string, number>();
  const codeOf = (text: string) => {
    const code = codes.get(text) ?? texts.push(text) - 1;
    codes.set(text, code);
    return code;
  };
  const names: string[] = [], given: HostValue[] = [];
  inputs.forEach((value, i) => {
    if (value === undefined) return;
    if (value.dtype === "string") {
      names.push(node.inputs[i]!);
      given.push({ dtype: "i32", shape: value.shape, data: Int32Array.from(value.data, codeOf) });
    } else if (!isHostTensor(value)) {
      throw new TypeError(`input ${i} of ${node.name} must be a tensor: it is a ${value.dtype}`);
    }
  });
  const results = await moving.run(bodyOf(node, names), given);
  return results.map((value) => {
    if (!isHostTensor(value)) return value;
    const data = Array.from(value.data as Int32Array, (code) => texts[code]!);
    return { dtype: "string", shape: value.shape, data };
  });
}

// The inputs that are no strings are values around the body.
function bodyOf(node: OnnxNode, strings: readonly string[]): OnnxGraph {
  const known = bodies.get(node);
  if (known) return known;
  const none = new Map();
  const body: OnnxGraph = {
    name: node.name,
    nodes: [node],
    inputs: strings.map((name) => ({ name })),
    outputs: node.outputs.filter((name) => name !== "").map((name) => ({ name })),
    ...{ initializers: none, sparse: none, values: none },
  };
  bodies.set(node, body);
  return body;
}
