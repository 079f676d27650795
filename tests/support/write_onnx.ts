// Writes small ONNX files for tests: the messages of onnx.proto by field number, from plain records. It
// shares nothing with the reader, so that a mistake of one is seen by the other.

/** An attribute by the kind of its value. */
export type Attribute =
  | { readonly i: number | bigint }
  | { readonly f: number }
  | { readonly s: string }
  | { readonly ints: readonly (number | bigint)[] }
  | { readonly floats: readonly number[] }
  | { readonly strings: readonly string[] }
  | { readonly t: Tensor }
  | { readonly g: GraphParts };

/** A tensor; numbers are written as raw data unless `external` or `floats` says otherwise. */
export interface Tensor {
  readonly name?: string;
  /** Number of TensorProto.DataType: 1 float32, 7 int64, 9 bool. */
  readonly type: number;
  readonly dims: readonly (number | bigint)[];
  readonly raw?: Uint8Array;
  readonly floats?: readonly number[];
  readonly external?: Readonly<Record<string, string>>;
}

/** A node. */
export interface NodeParts {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly name?: string;
  readonly domain?: string;
  readonly attributes?: Readonly<Record<string, Attribute>>;
}

/** A graph; an input or output is `[name, type, dims]`, a name as a dim is a symbol. */
export interface GraphParts {
  readonly name?: string;
  readonly nodes: readonly NodeParts[];
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  readonly initializers?: readonly Tensor[];
}

/** Name, element type, sizes; a map has the types of its keys and values. */
export type Port = readonly [
  name: string,
  type: number | { readonly key: number; readonly value: number },
  dims: readonly (number | string)[],
];

/** A function of the file. */
export interface FunctionParts {
  readonly name: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly nodes: readonly NodeParts[];
  readonly opsets: Readonly<Record<string, number>>;
}

/** What is beside the graph. */
export interface ModelParts {
  /** Version by domain; default ai.onnx 17. */
  readonly opsets?: Readonly<Record<string, number>>;
  readonly functions?: readonly FunctionParts[];
}

/** A whole file. */
export function writeOnnx(
  graph: GraphParts,
  { opsets = { "": 17 }, functions = [] }: ModelParts = {},
): Uint8Array<ArrayBuffer> {
  return message(
    varint(1, 8),
    bytes(7, graphMessage(graph)),
    ...opsetMessages(8, opsets),
    ...functions.map((one) => bytes(25, functionMessage(one))),
  );
}

function opsetMessages(field: number, opsets: Readonly<Record<string, number>>): Uint8Array[] {
  return Object.entries(opsets).map(([domain, version]) =>
    bytes(field, message(text(1, domain), varint(2, version)))
  );
}

function graphMessage(graph: GraphParts): Uint8Array {
  return message(
    ...graph.nodes.map((node) => bytes(1, nodeMessage(node))),
    text(2, graph.name ?? "g"),
    ...(graph.initializers ?? []).map((tensor) => bytes(5, tensorMessage(tensor))),
    ...graph.inputs.map((port) => bytes(11, portMessage(port))),
    ...graph.outputs.map((port) => bytes(12, portMessage(port))),
  );
}

function functionMessage(one: FunctionParts): Uint8Array {
  return message(
    text(1, one.name),
    ...one.inputs.map((name) => text(4, name)),
    ...one.outputs.map((name) => text(5, name)),
    ...one.nodes.map((node) => bytes(7, nodeMessage(node))),
    ...opsetMessages(9, one.opsets),
    text(10, one.domain),
  );
}

function nodeMessage(
  { op, inputs, outputs, name, domain, attributes = {} }: NodeParts,
): Uint8Array {
  return message(
    ...inputs.map((input) => text(1, input)),
    ...outputs.map((output) => text(2, output)),
    ...name === undefined ? [] : [text(3, name)],
    text(4, op),
    ...Object.entries(attributes).map((entry) => bytes(5, attributeMessage(...entry))),
    ...domain === undefined ? [] : [text(7, domain)],
  );
}

function attributeMessage(name: string, value: Attribute): Uint8Array {
  const [contents, kind] = "i" in value
    ? [varint(3, value.i), 2]
    : "f" in value
    ? [fixed32(2, value.f), 1]
    : "s" in value
    ? [text(4, value.s), 3]
    : "ints" in value
    ? [message(...value.ints.map((item) => varint(8, item))), 7]
    : "floats" in value
    ? [bytes(7, new Uint8Array(Float32Array.from(value.floats).buffer)), 6]
    : "strings" in value
    ? [message(...value.strings.map((item) => text(9, item))), 8]
    : "t" in value
    ? [bytes(5, tensorMessage(value.t)), 4]
    : [bytes(6, graphMessage(value.g)), 5];
  return message(text(1, name), contents, varint(20, kind));
}

function tensorMessage({ name, type, dims, raw, floats, external }: Tensor): Uint8Array {
  return message(
    ...dims.map((dim) => varint(1, dim)),
    varint(2, type),
    ...floats ? [bytes(4, new Uint8Array(Float32Array.from(floats).buffer))] : [],
    ...name === undefined ? [] : [text(8, name)],
    ...raw ? [bytes(9, raw)] : [],
    ...Object.entries(external ?? {}).map(([key, value]) =>
      bytes(13, message(text(1, key), text(2, value)))
    ),
    ...external ? [varint(14, 1)] : [],
  );
}

function portMessage([name, type, dims]: Port): Uint8Array {
  const shape = message(
    ...dims.map((dim) => bytes(1, typeof dim === "number" ? varint(1, dim) : text(2, dim))),
  );
  const tensor = (element: number) => bytes(1, message(varint(1, element), bytes(2, shape)));
  const declared = typeof type === "number"
    ? tensor(type)
    : bytes(5, message(varint(1, type.key), bytes(2, tensor(type.value))));
  return message(text(1, name), bytes(2, declared));
}

/** Bytes of float32 numbers. */
export function floats(...values: number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}

/** Bytes of int64 numbers. */
export function longs(...values: number[]): Uint8Array {
  return new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
}

/** Fields one after another. */
export function message(...fields: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(fields.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const field of fields) {
    out.set(field, at);
    at += field.length;
  }
  return out;
}

/** A varint field. */
export function varint(field: number, value: number | bigint): Uint8Array {
  return message(digits(BigInt(field << 3)), digits(BigInt.asUintN(64, BigInt(value))));
}

/** A length-delimited field. */
export function bytes(field: number, contents: Uint8Array): Uint8Array {
  return message(digits(BigInt(field << 3 | 2)), digits(BigInt(contents.length)), contents);
}

function text(field: number, value: string): Uint8Array {
  return bytes(field, new TextEncoder().encode(value));
}

function fixed32(field: number, value: number): Uint8Array {
  return message(digits(BigInt(field << 3 | 5)), floats(value));
}

function digits(value: bigint): Uint8Array {
  const out: number[] = [];
  do {
    const low = Number(value & 0x7fn);
    value >>= 7n;
    out.push(value > 0n ? low | 0x80 : low);
  } while (value > 0n);
  return Uint8Array.from(out);
}
