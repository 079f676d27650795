// Opens an ONNX file: structure at once, weights when they are asked for. Nothing is compiled or run, and
// no op is looked at; that is engine/onnx/derivation. External data is read only from the model's own folder.

import { type ByteSource, closing } from "../../byte_source.ts";
import { FormatError } from "../../errors.ts";
import { type ModelKind, sniffModel } from "../../formats/sniff.ts";
import { openFile, openInside, pathKind, siblingPath } from "../../io.ts";
import {
  functionKey,
  type OnnxAttribute,
  type OnnxFunction,
  type OnnxGraph,
  type OnnxModel,
  type OnnxNode,
} from "./model.ts";
import {
  normalDomain,
  readAttribute,
  type ReadContext,
  readGraph,
  readNode,
} from "./read_graph.ts";
import { type OpenExternal, readEntry } from "./read_tensor.ts";
import { type WireField, WireReader } from "./wire.ts";

/**
 * Opens a model file.
 *
 * @throws {SourceError} If it, or external data, cannot be opened.
 * @throws {FormatError} If it is no well-formed ONNX model.
 */
export function openOnnx(path: string): OnnxModel {
  return openWith(path, (name) => openInside(path, name));
}

/**
 * Opens a graph that somebody named, by {@linkcode openOnnx} or {@linkcode openStructure}. What cannot be read because it
 * is a whole file of another kind is called that, not damaged.
 *
 * @throws {SourceError} If it cannot be opened.
 * @throws {FormatError | UnsupportedError} If it is no well-formed ONNX model; the message says what it is.
 */
export async function openNamed(
  path: string,
  open: (path: string) => OnnxModel,
): Promise<OnnxModel> {
  try {
    return open(path);
  } catch (error) {
    if (error instanceof FormatError) await refuseOtherKind(path);
    throw error;
  }
}

async function refuseOtherKind(path: string): Promise<void> {
  const source = openFile(path);
  using _source = closing(source);
  const kind = await sniffModel(source);
  if (kind === "onnx") return;
  throw new FormatError(`is ${KINDS[kind]}, not an ONNX graph`, {
    file: path,
    remedy: "Open it with load(), plan it with troodon plan --device gpu or --placement",
  });
}

/** What has weights of a language model, and no graph. */
const KINDS: Readonly<Record<Exclude<ModelKind, "onnx">, string>> = {
  "gguf": "a GGUF file",
  "safetensors": "a safetensors file",
  "safetensors-index": "an index of safetensors files",
  "torch-zip": "a checkpoint of PyTorch",
  "torch-legacy": "a checkpoint of PyTorch",
  "torch-index": "an index of checkpoints of PyTorch",
  "llama2c": "a checkpoint of llama2.c",
};

/** Opens a model file for its structure: external data that does not exist is left out. */
export function openStructure(path: string): OnnxModel {
  return openWith(path, (name) => {
    const isThere = pathKind(siblingPath(path, name)) !== undefined;
    return isThere ? openInside(path, name) : absentSource(name);
  });
}

function openWith(path: string, openExternal: OpenExternal): OnnxModel {
  const source = openFile(path);
  const opened = new Map<string, ByteSource>();
  const close = () => [source, ...opened.values()].forEach((file) => file.close());
  try {
    const model = readOnnx(source, (name) => {
      const known = opened.get(name) ?? openExternal(name);
      opened.set(name, known);
      return known;
    });
    return { ...model, close };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * Reads a model from any source that answers at once.
 *
 * @param openExternal Absent: external data is refused.
 * @throws {FormatError} If it is no well-formed ONNX model.
 */
export function readOnnx(source: ByteSource, openExternal: OpenExternal = refuse): OnnxModel {
  const reader = new WireReader(source);
  const context = { reader, openExternal, depth: 0 };
  let irVersion = 0, producer = "";
  let graph: OnnxGraph | undefined;
  const opsets = new Map<string, number>();
  const functions = new Map<string, OnnxFunction>();
  const metadata = new Map<string, string>();
  for (const field of reader.fields(0, source.size)) {
    if (field.number === 1) irVersion = Number(reader.signed(field));
    else if (field.number === 2) producer = reader.text(field);
    else if (field.number === 7) {
      if (graph) throw reader.error("a second graph", field.start);
      graph = readGraph(context, reader.message(field));
    } else if (field.number === 8) readOpset(reader, reader.message(field), opsets);
    else if (field.number === 14) readEntry(reader, { entry: field, into: metadata });
    else if (field.number === 25) {
      const made = readFunction(context, reader.message(field));
      functions.set(functionKey(made.domain, { name: made.name, overload: made.overload }), made);
    }
  }
  if (!graph) {
    throw new FormatError("no graph: this is not an ONNX model", {
      file: source.name,
      remedy: "Give the path of a .onnx file",
    });
  }
  const { name: file } = source;
  const close = () => source.close();
  return { file, irVersion, opsets, producer, graph, functions, metadata, close };
}

function refuse(name: string): never {
  throw new FormatError(`refers to ${JSON.stringify(name)}, but has no folder`, {
    remedy: "Load the model from a file",
  });
}

function readOpset(
  reader: WireReader,
  { start, end }: WireField,
  opsets: Map<string, number>,
): void {
  let domain = "", version = 0n;
  for (const field of reader.fields(start, end)) {
    if (field.number === 1) domain = normalDomain(reader.text(field));
    else if (field.number === 2) version = reader.signed(field);
  }
  if (version < 1n || version > 0x7fffffffn) {
    throw reader.error(`operator set "${domain || "ai.onnx"}" of version ${version}`, start);
  }
  const known = opsets.get(domain);
  if (known !== undefined && known !== Number(version)) {
    throw reader.error(
      `operator set "${domain || "ai.onnx"}" is imported as ${known} and as ${version}`,
      start,
    );
  }
  opsets.set(domain, Number(version));
}

function readFunction(context: ReadContext, { start, end }: WireField): OnnxFunction {
  const { reader } = context;
  let name = "", domain = "", overload = "";
  const inputs: string[] = [], outputs: string[] = [], attributes: string[] = [];
  const defaults = new Map<string, OnnxAttribute>();
  const nodes: OnnxNode[] = [];
  const opsets = new Map<string, number>();
  for (const field of reader.fields(start, end)) {
    if (field.number === 1) name = reader.text(field);
    else if (field.number === 4) inputs.push(reader.text(field));
    else if (field.number === 5) outputs.push(reader.text(field));
    else if (field.number === 6) attributes.push(reader.text(field));
    else if (field.number === 7) nodes.push(readNode(context, reader.message(field)));
    else if (field.number === 9) readOpset(reader, reader.message(field), opsets);
    else if (field.number === 10) domain = normalDomain(reader.text(field));
    else if (field.number === 11) defaults.set(...readAttribute(context, reader.message(field)));
    else if (field.number === 13) overload = reader.text(field);
  }
  return { name, domain, overload, inputs, outputs, attributes, defaults, nodes, opsets };
}

/** External data that is not there: shapes can be derived and planned, nothing can be read. */
export function absentSource(name: string): ByteSource {
  return {
    name,
    size: ABSENT_SIZE,
    readInto() {
      throw new FormatError("was left out when the model was opened", { file: name });
    },
    close() {},
  };
}

/** True for {@linkcode absentSource}. */
export function isAbsent({ size }: ByteSource): boolean {
  return size === ABSENT_SIZE;
}

const ABSENT_SIZE = Number.MAX_SAFE_INTEGER;
