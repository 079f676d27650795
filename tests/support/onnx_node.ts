// A model of one ONNX node, made of plain records and run on the reference: what a record of the op table
// makes of a node, without a file.

import type { OnnxAttribute, OnnxModel, OnnxTensor } from "../../engine/onnx/file/model.ts";
import { ELEMENT_TYPE_OF } from "../../engine/onnx/file/data_types.ts";
import type { HostTensor } from "../../engine/ops/host_tensor.ts";
import { isHostTensor } from "../../engine/onnx/derivation/tensor.ts";
import { openGraph } from "../../engine/onnx/running/open_graph.ts";
import { tensorInMemory } from "../../engine/run/case_graph.ts";
import { openDevice } from "../../engine/run/devices.ts";
import { createReferenceBackend } from "../../engine/run/reference/reference_backend.ts";
import { hostTensor, type Vector } from "./run_op.ts";

/** An attribute as a test writes it: numbers with a point are floats only where `f` says so. */
export type GivenAttribute = number | string | readonly number[] | { readonly f: number };

/** One node. */
export interface NodeCase {
  readonly op: string;
  /** Version of ai.onnx. */
  readonly opset: number;
  readonly attributes?: Readonly<Record<string, GivenAttribute>>;
  /** In order; `undefined` leaves one out. */
  readonly inputs: readonly (Vector | undefined)[];
  /** Inputs from this one on are constants of the model; default: none. */
  readonly constantsFrom?: number;
  /** Default 1. */
  readonly outputs?: number;
}

/** Runs the node. */
export async function runNode(given: NodeCase): Promise<HostTensor[]> {
  const { inputs, constantsFrom = inputs.length, outputs: count = 1 } = given;
  const outputs = Array.from({ length: count }, (_, i) => `output${i}`);
  const graph = openGraph(modelOf(given, outputs), {
    device: await openDevice("reference", {}),
    reference: createReferenceBackend(),
    limits: {},
    maxBytes: 2 ** 24,
  });
  try {
    const data = inputs.slice(0, constantsFrom).flatMap((input, i) =>
      input ? [[`input${i}`, hostTensor(input)] as const] : []
    );
    const results = await graph.run(new Map(data));
    return outputs.map((name) => {
      const value = results.get(name);
      if (isHostTensor(value)) return value;
      throw new TypeError(`${name} is no tensor`);
    });
  } finally {
    graph.dispose();
  }
}

function modelOf(given: NodeCase, outputs: readonly string[]): OnnxModel {
  const { op, opset, attributes = {}, inputs, constantsFrom = inputs.length } = given;
  const constants = inputs.flatMap((input, i) =>
    input && i >= constantsFrom ? [[`input${i}`, fileTensor(`input${i}`, input)] as const] : []
  );
  return {
    file: "memory",
    irVersion: 10,
    opsets: new Map([["", opset]]),
    producer: "test",
    functions: new Map(),
    metadata: new Map(),
    close() {},
    graph: {
      name: op,
      nodes: [{
        name: op,
        opType: op,
        domain: "",
        overload: "",
        inputs: inputs.map((input, i) => input ? `input${i}` : ""),
        outputs,
        attributes: new Map(
          Object.entries(attributes).map(([name, value]) => [name, attributeOf(value)]),
        ),
      }],
      initializers: new Map(constants),
      sparse: new Map(),
      inputs: inputs.slice(0, constantsFrom).flatMap((input, i) =>
        input
          ? [{
            name: `input${i}`,
            type: { kind: "tensor" as const, dtype: input[0], shape: input[1] },
          }]
          : []
      ),
      outputs: outputs.map((name) => ({ name })),
      values: new Map(),
    },
  };
}

function fileTensor(name: string, vector: Vector): OnnxTensor {
  const { dtype, shape, data } = hostTensor(vector);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const { format } = ELEMENT_TYPE_OF.get(dtype)!;
  return { name, dtype, shape, tensor: tensorInMemory(name, { format, shape, bytes }) };
}

function attributeOf(value: GivenAttribute): OnnxAttribute {
  if (typeof value === "string") return { kind: "string", value };
  if (typeof value === "number") return { kind: "int", value, exact: BigInt(value) };
  if ("f" in value) return { kind: "float", value: value.f };
  return { kind: "ints", value, exact: value.map(BigInt) };
}
