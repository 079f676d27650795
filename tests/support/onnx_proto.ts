// The oracle of the ONNX reader: the same file as the npm package onnx-proto (protobufjs, generated from
// onnx.proto) decodes it, in a form in which both readers can be compared. The product does not use the
// package: it wants the whole file in memory. For tests alone, of models without external data.

import onnxProto from "onnx-proto";
import { ELEMENT_TYPES } from "../../engine/onnx/file/data_types.ts";
import type {
  OnnxAttribute,
  OnnxGraph,
  OnnxModel,
  OnnxTensor,
  OnnxType,
} from "../../engine/onnx/file/model.ts";

// deno-lint-ignore no-explicit-any
type Message = any;

const { ModelProto } = onnxProto.onnx;

/** A file as plain records, arrays, texts and bigints. */
export type Plain = string | number | bigint | boolean | undefined | readonly Plain[] | {
  readonly [key: string]: Plain;
};

/** What onnx-proto reads. */
export function plainByProto(bytes: Uint8Array): Plain {
  const model: Message = ModelProto.decode(bytes);
  return {
    irVersion: Number(model.irVersion),
    producer: model.producerName,
    opsets: sorted(model.opsetImport.map((set: Message) => [
      domainOf(set.domain),
      Number(set.version),
    ])),
    functions: sorted(model.functions.map((made: Message) => [made.name, {
      inputs: made.input,
      outputs: made.output,
      attributes: made.attribute,
      nodes: made.node.map(protoNode),
    }])),
    metadata: sorted(model.metadataProps.map((entry: Message) => [entry.key, entry.value])),
    graph: protoGraph(model.graph),
  };
}

/** What the engine's reader reads. */
export function plainByReader(model: OnnxModel): Plain {
  const { irVersion, producer, opsets, functions, metadata, graph } = model;
  return {
    irVersion,
    producer,
    opsets: sorted([...opsets]),
    functions: sorted(
      [...functions.values()].map(({ name, inputs, outputs, attributes, nodes }) => [
        name,
        { inputs, outputs, attributes, nodes: nodes.map(readerNode) },
      ]),
    ),
    metadata: sorted([...metadata]),
    graph: readerGraph(graph),
  };
}

/** A model as onnx-proto writes it: a writer that shares nothing with the reader under test. */
export function encodeByProto(model: object): Uint8Array {
  return ModelProto.encode(ModelProto.fromObject(model)).finish();
}

function protoGraph(graph: Message): Plain {
  return {
    name: graph.name,
    nodes: graph.node.map(protoNode),
    initializers: sorted(
      graph.initializer.map((tensor: Message) => [tensor.name, protoTensor(tensor)]),
    ),
    sparse: graph.sparseInitializer.map(({ values }: Message) => values.name).sort(),
    inputs: graph.input.map(protoValue),
    outputs: graph.output.map(protoValue),
    values: sorted(graph.valueInfo.map((value: Message) => [value.name, protoValue(value)])),
  };
}

function readerGraph(graph: OnnxGraph): Plain {
  const { name, nodes, initializers, sparse, inputs, outputs, values } = graph;
  const valueOf = ({ name, type }: { name: string; type?: OnnxType }): Plain => ({
    name,
    type: type && readerType(type),
  });
  return {
    name,
    nodes: nodes.map(readerNode),
    initializers: sorted([...initializers].map(([name, tensor]) => [name, readerTensor(tensor)])),
    sparse: [...sparse.keys()].sort(),
    inputs: inputs.map(valueOf),
    outputs: outputs.map(valueOf),
    values: sorted([...values].map(([name, value]) => [name, valueOf(value)])),
  };
}

// The reader gives nodes without a name one of its own.
function protoNode({ name, opType, domain, input, output, attribute }: Message): Plain {
  return {
    name: name || `${opType}(${output.find(Boolean) ?? ""})`,
    opType,
    domain: domainOf(domain),
    inputs: input,
    outputs: output,
    attributes: sorted(attribute.map((one: Message) => [one.name, protoAttribute(one)])),
  };
}

function readerNode(node: OnnxGraph["nodes"][number]): Plain {
  const { name, opType, domain, inputs, outputs, attributes } = node;
  const plain = [...attributes].map(([name, one]) => [name, readerAttribute(one)] as const);
  return { name, opType, domain, inputs, outputs, attributes: sorted(plain) };
}

const KINDS: Readonly<Record<number, (attribute: Message) => Plain>> = {
  1: ({ f }) => f,
  2: ({ i }) => exact(i),
  3: ({ s }) => textOf(s),
  4: ({ t }) => protoTensor(t),
  5: ({ g }) => protoGraph(g),
  6: ({ floats }) => [...floats],
  7: ({ ints }) => ints.map(exact),
  8: ({ strings }) => strings.map(textOf),
  9: ({ tensors }) => tensors.map(protoTensor),
  10: ({ graphs }) => graphs.map(protoGraph),
  11: ({ sparseTensor }) => sparseTensor.dims.map(Number),
  13: ({ tp }) => protoType(tp),
};

function protoAttribute(attribute: Message): Plain {
  if (attribute.refAttrName) return attribute.refAttrName;
  return KINDS[attribute.type]!(attribute);
}

function readerAttribute(attribute: OnnxAttribute): Plain {
  switch (attribute.kind) {
    case "int":
    case "ints":
      return attribute.exact;
    case "tensor":
      return readerTensor(attribute.value);
    case "tensors":
      return attribute.value.map(readerTensor);
    case "graph":
      return readerGraph(attribute.value);
    case "graphs":
      return attribute.value.map(readerGraph);
    case "sparse":
      return attribute.value.shape;
    case "type":
      return readerType(attribute.value);
    default:
      return attribute.value;
  }
}

const TYPED_BYTES: Readonly<Record<string, number>> = { 8: 1, 16: 2, 32: 4, 64: 8 };

// Elements by their bytes, wherever the file has them.
function protoTensor(tensor: Message): Plain {
  const { dims, dataType, rawData, stringData } = tensor;
  const type = ELEMENT_TYPES.get(dataType)!;
  const shape = dims.map(Number);
  const head = { dtype: type.dtype, shape };
  if (type.field === "string") return { ...head, strings: stringData.map(textOf) };
  if (rawData.length > 0) return { ...head, bytes: hexOf(rawData) };
  const items = tensor[`${type.field}Data`];
  const size = type.bits < 8 ? 1 : TYPED_BYTES[type.bits]!;
  const view = new DataView(new ArrayBuffer(size * items.length));
  items.forEach((item: Message, i: number) => {
    if (type.dtype === "f32") view.setFloat32(4 * i, item, true);
    else if (type.dtype === "f64") view.setFloat64(8 * i, item, true);
    else if (size === 8) view.setBigInt64(8 * i, BigInt.asIntN(64, exact(item)), true);
    else if (size === 4) view.setInt32(4 * i, Number(item), true);
    else if (size === 2) view.setInt16(2 * i, Number(item), true);
    else view.setInt8(i, Number(item));
  });
  return { ...head, bytes: hexOf(new Uint8Array(view.buffer)) };
}

function readerTensor({ dtype, shape, tensor, strings }: OnnxTensor): Plain {
  if (!tensor) return { dtype, shape, strings: strings! };
  const { source, offset, byteLength } = tensor;
  const bytes = new Uint8Array(byteLength);
  source.readInto(offset, bytes);
  return { dtype, shape, bytes: hexOf(bytes) };
}

function protoValue({ name, type }: Message): Plain {
  return { name, type: type ? protoType(type) : undefined };
}

function protoType(type: Message): Plain {
  const { tensorType, sequenceType, optionalType } = type;
  if (sequenceType) return { kind: "sequence", element: protoType(sequenceType.elemType) };
  if (optionalType) return { kind: "optional", element: protoType(optionalType.elemType) };
  const dims = tensorType.shape?.dim.map((dim: Message) => {
    if (Object.hasOwn(dim, "dimValue")) return Number(dim.dimValue);
    return dim.dimParam || "?";
  });
  return { kind: "tensor", dtype: ELEMENT_TYPES.get(tensorType.elemType)!.dtype, dims };
}

function readerType(type: OnnxType): Plain {
  if (type.kind === "tensor") {
    return { kind: type.kind, dtype: type.dtype, dims: type.shape?.map((dim) => dim ?? "?") };
  }
  if ("element" in type) return { kind: type.kind, element: readerType(type.element) };
  return { kind: type.kind };
}

function sorted(entries: readonly (readonly [string, Plain])[]): Plain {
  return [...entries].sort(([a], [b]) => a < b ? -1 : 1);
}

function domainOf(domain: string): string {
  return domain === "ai.onnx" ? "" : domain;
}

function exact(value: Message): bigint {
  return BigInt(value.toString());
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

function hexOf(bytes: Uint8Array): string {
  return bytes.toHex();
}
