// Inputs of which every session knows the contents before it runs: whether there is a past, and how many keys
// there are. As contents of a tensor they would split a graph in two; a constant, and the size of an input,
// let it be derived whole.

import type { OnnxModel, OnnxNode, OnnxValueInfo } from "../file/model.ts";
import { memorySource } from "../../io.ts";
import type { DecoderPorts, Port } from "./ports.ts";

/** Name of the input that is as long as there are keys; nothing reads what is in it. */
const KEYS_INPUT = "keys of the session";

/** A file and its ports without such inputs. */
export interface KnownInputs {
  readonly model: OnnxModel;
  readonly ports: DecoderPorts;
}

/** Replaces them. */
export function replaceKnown(model: OnnxModel, ports: DecoderPorts): KnownInputs {
  const { useCache, totalLength, ...rest } = ports;
  const branched = useCache ? withBranch(model, useCache) : model;
  if (!totalLength) return { model: branched, ports: rest };
  const keys: Port = { name: KEYS_INPUT, dtype: "bool", dims: [KEYS_INPUT] };
  return { model: withTotal(branched, totalLength), ports: { ...rest, keys } };
}

// The branch with a past serves any, one token at a time.
function withBranch(model: OnnxModel, { name, dims }: Port): OnnxModel {
  const source = memorySource(name, Uint8Array.of(1));
  const shape = dims.length === 0 ? [] : [1];
  const tensor = { name, shape, format: "BOOL", source, offset: 0, byteLength: 1 };
  const constant = { name, dtype: "bool" as const, shape, tensor };
  return {
    ...model,
    graph: {
      ...model.graph,
      inputs: model.graph.inputs.filter((input) => input.name !== name),
      initializers: new Map([...model.graph.initializers, [name, constant]]),
    },
  };
}

// The number of keys is the size of an input: Cast(Shape(keys)), without its axis for a scalar.
function withTotal(model: OnnxModel, { name, dtype, dims }: Port): OnnxModel {
  const keys: OnnxValueInfo = {
    name: KEYS_INPUT,
    type: { kind: "tensor", dtype: "bool", shape: [KEYS_INPUT] },
  };
  const shape = `${name}/shape`, flat = dims.length === 0 ? `${name}/flat` : shape;
  const to = dtype === "i32" ? 6 : 7;
  const nodes: OnnxNode[] = [
    nodeOf("Shape", { inputs: [KEYS_INPUT], output: shape }),
    ...dims.length === 0 ? [nodeOf("Squeeze", { inputs: [shape], output: flat })] : [],
    nodeOf("Cast", { inputs: [flat], output: name, to }),
  ];
  const { graph } = model;
  return {
    ...model,
    graph: {
      ...graph,
      nodes: [...nodes, ...graph.nodes],
      inputs: [...graph.inputs.filter((input) => input.name !== name), keys],
    },
  };
}

function nodeOf(
  opType: string,
  { inputs, output, to }: {
    readonly inputs: string[];
    readonly output: string;
    readonly to?: number | undefined;
  },
): OnnxNode {
  return {
    name: output,
    opType,
    domain: "",
    overload: "",
    inputs,
    outputs: [output],
    attributes: new Map(
      to === undefined ? [] : [["to", { kind: "int", value: to, exact: BigInt(to) }]],
    ),
  };
}
