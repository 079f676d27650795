// GraphProto, NodeProto, AttributeProto and the types: one reader a message, by field number. Bodies of
// If, Loop and Scan lie in attributes, so graphs nest; the depth is limited. Documentation, quantisation
// hints and device configurations are skipped: they change nothing that is computed.

import { ELEMENT_TYPES, type ElementType } from "./data_types.ts";
import type {
  OnnxAttribute,
  OnnxDim,
  OnnxGraph,
  OnnxNode,
  OnnxSparseTensor,
  OnnxTensor,
  OnnxType,
  OnnxValueInfo,
} from "./model.ts";
import { type OpenExternal, readSparseTensor, readTensor } from "./read_tensor.ts";
import type { WireField, WireReader } from "./wire.ts";

/** Most bodies inside one another. */
export const MOST_NESTED_GRAPHS = 64;

/** What reading needs beside the bytes. */
export interface ReadContext {
  readonly reader: WireReader;
  readonly openExternal: OpenExternal;
  /** Bodies around the present one. */
  readonly depth: number;
}

type Range = Pick<WireField, "start" | "end">;

/** A graph in `[start, end)`. */
export function readGraph(context: ReadContext, { start, end }: Range): OnnxGraph {
  const { reader, depth } = context;
  if (depth > MOST_NESTED_GRAPHS) {
    throw reader.error(`nested too deeply: more than ${MOST_NESTED_GRAPHS} graphs`, start);
  }
  let name = "";
  const nodes: OnnxNode[] = [];
  const initializers = new Map<string, OnnxTensor>();
  const sparse = new Map<string, OnnxSparseTensor>();
  const inputs: OnnxValueInfo[] = [], outputs: OnnxValueInfo[] = [];
  const values = new Map<string, OnnxValueInfo>();
  for (const field of reader.fields(start, end)) {
    if (field.number === 1) nodes.push(readNode(context, reader.message(field)));
    else if (field.number === 2) name = reader.text(field);
    else if (field.number === 5) {
      const tensor = readTensor(reader, {
        pick: reader.message(field),
        openExternal: context.openExternal,
      });
      if (initializers.has(tensor.name)) {
        throw reader.error(`initializer "${tensor.name}" occurs twice`, field.start);
      }
      initializers.set(tensor.name, tensor);
    } else if (field.number === 11) inputs.push(readValueInfo(reader, reader.message(field)));
    else if (field.number === 12) outputs.push(readValueInfo(reader, reader.message(field)));
    else if (field.number === 13) {
      const value = readValueInfo(reader, reader.message(field));
      values.set(value.name, value);
    } else if (field.number === 15) {
      const tensor = readSparseTensor(reader, {
        pick: reader.message(field),
        openExternal: context.openExternal,
      });
      sparse.set(tensor.values.name, tensor);
    }
  }
  return { name, nodes, initializers, sparse, inputs, outputs, values };
}

/** A node in `[start, end)`. */
export function readNode(context: ReadContext, { start, end }: Range): OnnxNode {
  const { reader } = context;
  const inputs: string[] = [], outputs: string[] = [];
  let name = "", opType = "", domain = "", overload = "";
  const attributes = new Map<string, OnnxAttribute>();
  for (const field of reader.fields(start, end)) {
    if (field.number === 1) inputs.push(reader.text(field));
    else if (field.number === 2) outputs.push(reader.text(field));
    else if (field.number === 3) name = reader.text(field);
    else if (field.number === 4) opType = reader.text(field);
    else if (field.number === 5) {
      const [attribute, value] = readAttribute(context, reader.message(field));
      if (attributes.has(attribute)) {
        throw reader.error(
          `node ${name || opType}: attribute "${attribute}" is given twice`,
          start,
        );
      }
      attributes.set(attribute, value);
    } else if (field.number === 7) domain = normalDomain(reader.text(field));
    else if (field.number === 8) overload = reader.text(field);
  }
  if (opType === "") throw reader.error("a node without an op", start);
  name ||= `${opType}(${outputs.find((output) => output !== "") ?? ""})`;
  return { name, opType, domain, overload, inputs, outputs, attributes };
}

/** `ai.onnx` is another name of the default domain. */
export function normalDomain(domain: string): string {
  return domain === "ai.onnx" ? "" : domain;
}

type AttributeParts = {
  -readonly [K in OnnxAttribute["kind"]]?: Extract<OnnxAttribute, { kind: K }>["value"];
};

/** An attribute in `[start, end)`, and its name. */
export function readAttribute(
  context: ReadContext,
  { start, end }: Range,
): [string, OnnxAttribute] {
  const { reader, openExternal } = context;
  const inner = { ...context, depth: context.depth + 1 };
  let name = "", kind = 0, reference = "", integer = 0n;
  const integers: bigint[] = [];
  const parts: AttributeParts = {};
  const floats: number[] = [], strings: string[] = [];
  const tensors: OnnxTensor[] = [], graphs: OnnxGraph[] = [];
  const fail = (message: string) => reader.error(`attribute "${name}": ${message}`, start);
  const missing = (what: string): never => {
    throw fail(`no ${what}`);
  };
  for (const field of reader.fields(start, end)) {
    switch (field.number) {
      case 1:
        name = reader.text(field);
        break;
      case 2:
        parts.float = reader.float(field);
        break;
      case 3:
        integer = reader.signed(field);
        parts.int = Number(integer);
        break;
      case 4:
        parts.string = reader.text(field);
        break;
      case 5:
        parts.tensor = readTensor(reader, { pick: reader.message(field), openExternal });
        break;
      case 6:
        parts.graph = readGraph(inner, reader.message(field));
        break;
      case 7:
        reader.addFloats(field, floats);
        break;
      case 8:
        reader.addIntegers(field, integers);
        break;
      case 9:
        strings.push(reader.text(field));
        break;
      case 10:
        tensors.push(readTensor(reader, { pick: reader.message(field), openExternal }));
        break;
      case 11:
        graphs.push(readGraph(inner, reader.message(field)));
        break;
      case 14:
        parts.type = readType(reader, reader.message(field), 0) ?? missing("type");
        break;
      case 20:
        kind = Number(reader.signed(field));
        break;
      case 21:
        reference = reader.text(field);
        break;
      case 22:
        parts.sparse = readSparseTensor(reader, { pick: reader.message(field), openExternal });
        break;
    }
  }
  if (reference !== "") return [name, { kind: "reference", value: reference }];
  switch (kind || guessKind(parts, { integers, floats, strings, tensors, graphs })) {
    case 1:
      return [name, { kind: "float", value: parts.float ?? 0 }];
    case 2:
      return [name, { kind: "int", value: parts.int ?? 0, exact: integer }];
    case 3:
      return [name, { kind: "string", value: parts.string ?? "" }];
    case 4:
      return [name, { kind: "tensor", value: parts.tensor ?? missing("tensor") }];
    case 5:
      return [name, { kind: "graph", value: parts.graph ?? missing("graph") }];
    case 6:
      return [name, { kind: "floats", value: floats }];
    case 7:
      return [name, { kind: "ints", value: integers.map(Number), exact: integers }];
    case 8:
      return [name, { kind: "strings", value: strings }];
    case 9:
      return [name, { kind: "tensors", value: tensors }];
    case 10:
      return [name, { kind: "graphs", value: graphs }];
    case 11:
      return [name, { kind: "sparse", value: parts.sparse ?? missing("sparse tensor") }];
    case 13:
      return [name, { kind: "type", value: parts.type ?? missing("type") }];
    default:
      throw fail(`kind ${kind} is not supported`);
  }
}

// Files of IR version 1 do not say the kind.
function guessKind(
  parts: AttributeParts,
  lists: Readonly<Record<string, readonly unknown[]>>,
): number {
  const single = ["float", "int", "string", "tensor", "graph"] as const;
  const many = ["floats", "integers", "strings", "tensors", "graphs"];
  const one = single.findIndex((kind) => parts[kind] !== undefined);
  if (one >= 0) return one + 1;
  return many.findIndex((kind) => (lists[kind]?.length ?? 0) > 0) + 6;
}

/** An input, output or intermediate value in `[start, end)`. */
function readValueInfo(reader: WireReader, { start, end }: Range): OnnxValueInfo {
  let name = "";
  let type: OnnxType | undefined;
  for (const field of reader.fields(start, end)) {
    if (field.number === 1) name = reader.text(field);
    else if (field.number === 2) type = readType(reader, reader.message(field), 0);
  }
  return { name, ...type && { type } };
}

const MOST_NESTED_TYPES = 16;

function readType(reader: WireReader, { start, end }: Range, depth: number): OnnxType | undefined {
  if (depth > MOST_NESTED_TYPES) throw reader.error("nested too deeply: a type", start);
  let type: OnnxType | undefined;
  for (const field of reader.fields(start, end)) {
    if (field.number === 1) type = readTensorType(reader, reader.message(field));
    else if (field.number === 4 || field.number === 9) {
      const element = [...reader.fields(field.start, field.end)].find(({ number }) => number === 1);
      const inner = element && readType(reader, reader.message(element), depth + 1);
      const kind = field.number === 4 ? "sequence" : "optional";
      if (inner) type = { kind, element: inner };
    } else if (field.number === 5) type = readMapType(reader, reader.message(field), depth);
    else if (field.number === 7) type = { kind: "opaque" };
    else if (field.number === 8) type = { kind: "sparse" };
  }
  return type;
}

function readMapType(reader: WireReader, { start, end }: Range, depth: number) {
  let key: ElementType | undefined, value: OnnxType | undefined;
  for (const field of reader.fields(start, end)) {
    if (field.number === 1) key = ELEMENT_TYPES.get(Number(reader.signed(field)));
    else if (field.number === 2) value = readType(reader, reader.message(field), depth + 1);
  }
  if (!key || !value) throw reader.error("a map without types of keys and values", start);
  return { kind: "map" as const, key: key.dtype, value };
}

function readTensorType(reader: WireReader, { start, end }: Range): OnnxType | undefined {
  let number = 0;
  let shape: OnnxDim[] | undefined;
  for (const field of reader.fields(start, end)) {
    if (field.number === 1) number = Number(reader.signed(field));
    else if (field.number === 2) {
      shape = [];
      for (const dim of reader.fields(field.start, reader.message(field).end)) {
        if (dim.number === 1) shape.push(readDim(reader, reader.message(dim)));
      }
    }
  }
  // An intermediate value may be of undeclared type.
  if (number === 0) return undefined;
  const type = ELEMENT_TYPES.get(number);
  if (!type) throw reader.error(`element type ${number} is not supported`, start);
  return { kind: "tensor", dtype: type.dtype, ...shape && { shape } };
}

function readDim(reader: WireReader, { start, end }: Range): OnnxDim {
  let dim: OnnxDim;
  for (const field of reader.fields(start, end)) {
    if (field.number === 1) {
      const value = reader.signed(field);
      if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw reader.error(`a size of ${value}`, start);
      // Some exporters write -1 for "unknown".
      dim = value < 0n ? undefined : Number(value);
    } else if (field.number === 2) dim = reader.text(field) || undefined;
  }
  return dim;
}
