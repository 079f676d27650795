// ONNX files as a model of the other containers' kind: one file, or the files of a split model in order, with
// config.json as metadata and the texts of the folder beside them. Weights are the files' initializers.

import { type ByteSource, closing } from "../../byte_source.ts";
import { FormatError, SourceError, UnsupportedError } from "../../errors.ts";
import { isMissing, listFolder, openFile, pathKind, siblingPath } from "../../io.ts";
import type { MetadataValue, TensorInfo } from "../../formats/source.ts";
import { asObject, parseStrictJson } from "../../formats/strict_json.ts";
import type { OnnxModel } from "./model.ts";
import type { OnnxFile } from "./onnx_file.ts";
import { openOnnx } from "./open_onnx.ts";

/** Files of a split model, in the order in which they run; several decoders by their number. */
const PARTS: readonly RegExp[] = [
  /^embedd?ing\.onnx$/,
  /^decoders(?:_(\d+))?\.onnx$/,
  /^norm\.onnx$/,
  /^lm_head\.onnx$/,
];

/**
 * Optimum's file for the steps behind a first one. A first step is one behind an empty past, so the file for it,
 * which holds all weights once more, is not opened.
 */
const WITH_PAST = "decoder_with_past_model.onnx";
const WITHOUT_PAST = "decoder_model.onnx";
/** Optimum's file that reads a source. */
const ENCODER = "encoder_model.onnx";

/** Files that are a model by themselves, best first. */
const WHOLE: readonly string[] = ["model.onnx", "decoder_model_merged.onnx", WITH_PAST];

/** Most bytes of a text beside the graphs. */
const MAX_TEXT = 100_000_000;

/** Names of the ONNX files of a folder, as they run; empty if there are none. */
function findOnnx(names: readonly string[]): string[] {
  const whole = WHOLE.find((name) => names.includes(name));
  if (whole !== undefined) return [whole];
  const parts = PARTS.flatMap((pattern) =>
    names.flatMap((name) => {
      const match = pattern.exec(name);
      return match ? [{ name, number: Number(match[1] ?? 0) }] : [];
    }).sort((a, b) => a.number - b.number)
  );
  if (parts.some(({ name }) => name.startsWith("decoders"))) return parts.map(({ name }) => name);
  const all = names.filter((name) => name.endsWith(".onnx"));
  return all.length === 1 ? all : [];
}

/**
 * Opens the ONNX model of a folder.
 *
 * @returns Undefined if the folder holds none, or several of which none is the obvious one.
 */
export function openOnnxFolder(folder: string): OnnxFile | undefined {
  const names = listFolder(folder);
  const own = findOnnx(names);
  if (own.length > 0) return openFiles({ folder, names, files: own });
  // Graphs in a folder of their own, texts above it.
  const inner = siblingPath(`${folder}/`, "onnx");
  if (pathKind(inner) !== "folder") return undefined;
  const innerNames = listFolder(inner);
  const files = findOnnx(innerNames);
  if (files.length === 0) return undefined;
  return openFiles({
    folder: inner,
    names: innerNames,
    files,
    name: folder,
    texts: [folder, inner],
  });
}

/**
 * Opens an ONNX file; one that is part of a split model brings the others along.
 *
 * @throws {UnsupportedError} If the source is no file of this machine.
 */
export function openOnnxFile({ name: path, close }: ByteSource): OnnxFile {
  close();
  if (pathKind(path) !== "file") {
    throw new UnsupportedError("is an ONNX model, which is read from a file only", {
      file: path,
      remedy: "Fetch it with `troodon pull` first",
    });
  }
  const own = path.replace(/^.*[/\\]/, "");
  const folder = path.slice(0, path.length - own.length).replace(/(.)[/\\]$/, "$1") || ".";
  const names = readableNames(folder);
  return openFiles({ folder, names, files: filesOf(own, names), name: path });
}

/** The files that a file runs with. */
function filesOf(own: string, names: readonly string[]): string[] {
  if (own === WITHOUT_PAST && names.includes(WITH_PAST)) return [WITH_PAST];
  return PARTS.some((pattern) => pattern.test(own)) ? findParts(names, own) : [own];
}

function findParts(names: readonly string[], own: string): string[] {
  const parts = findOnnx(names.filter((name) => PARTS.some((pattern) => pattern.test(name))));
  return parts.includes(own) ? parts : [own];
}

// A permission for single files does not list their folder.
function readableNames(folder: string): string[] {
  try {
    return listFolder(folder);
  } catch (error) {
    if (error instanceof SourceError) return [];
    throw error;
  }
}

interface Place {
  readonly folder: string;
  /** What is in it. */
  readonly names: readonly string[];
  /** Graphs in the order in which they run. */
  readonly files: readonly string[];
  /** For messages; default: the folder. */
  readonly name?: string;
  /** Folders of texts, best first; default: the folder. */
  readonly texts?: readonly string[];
}

function openFiles({ folder, names, files, name = folder, texts = [folder] }: Place): OnnxFile {
  const models: OnnxModel[] = [];
  let source: OnnxFile["source"];
  const close = () => {
    for (const model of models) model.close();
    source?.encoder.close();
    if (source && !models.includes(source.first)) source.first.close();
  };
  try {
    for (const file of files) models.push(openOnnx(siblingPath(`${folder}/`, file)));
    if (readsSource(models[0]!)) source = openSource({ folder, names, name }, models[0]!);
    const embedding = names.find((file) => PARTS[0]!.test(file));
    if (embedding !== undefined && takesHidden(models[0]!)) {
      models.unshift(openOnnx(siblingPath(`${folder}/`, embedding)));
    }
    const read = (file: string) => readBeside(texts.map((text) => siblingPath(`${text}/`, file)));
    return {
      kind: "onnx",
      name,
      models,
      source,
      oneTokenSteps: files.includes(WITH_PAST),
      metadata: configOf(read("config.json"), folder),
      tensors: tensorsOf(models),
      readText: (file) => {
        const bytes = read(file);
        return Promise.resolve(bytes && new TextDecoder().decode(bytes));
      },
      readBytes: (file) => Promise.resolve(read(file)),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

function takesHidden({ graph }: OnnxModel): boolean {
  return graph.inputs.some(({ name }) => name === "hidden_in" || name === "inputs_embeds");
}

function readsSource({ graph }: OnnxModel): boolean {
  return graph.inputs.some(({ name }) => /^past_key_values\.\d+\.encoder\.key$/.test(name));
}

/** @throws {UnsupportedError} If a file is not there. */
function openSource(
  { folder, names, name }: Pick<Place, "folder" | "names" | "name">,
  decoder: OnnxModel,
): OnnxFile["source"] {
  const open = (file: string) => {
    if (names.includes(file)) return openOnnx(siblingPath(`${folder}/`, file));
    throw new UnsupportedError(`is a decoder behind an encoder, and ${file} is not beside it`, {
      ...{ file: name, remedy: "Put both of Optimum's files into one folder" },
    });
  };
  const encoder = open(ENCODER);
  const isMerged = decoder.graph.inputs.some((input) => input.name === "use_cache_branch");
  try {
    return { encoder, first: isMerged ? decoder : open(WITHOUT_PAST) };
  } catch (error) {
    encoder.close();
    throw error;
  }
}

/** The first of these files that exists. */
function readBeside(paths: readonly string[]): Uint8Array | undefined {
  for (const path of paths) {
    let source: ByteSource;
    try {
      source = openFile(path);
    } catch (error) {
      if (isMissing(error)) continue;
      throw error;
    }
    using _source = closing(source);
    if (source.size > MAX_TEXT) {
      throw new FormatError(`has ${source.size} bytes, the limit for a text is ${MAX_TEXT}`, {
        file: path,
      });
    }
    const bytes = new Uint8Array(source.size);
    source.readInto(0, bytes);
    return bytes;
  }
  return undefined;
}

function configOf(
  bytes: Uint8Array | undefined,
  folder: string,
): ReadonlyMap<string, MetadataValue> {
  if (!bytes) return new Map();
  const file = `${folder}/config.json`;
  const json = asObject(parseStrictJson(bytes, file));
  if (!json) throw new FormatError("is not a JSON object", { file });
  return new Map(Object.entries(json));
}

// Names may come again in every file of a split model.
function tensorsOf(models: readonly OnnxModel[]): Map<string, TensorInfo> {
  return new Map(
    models.flatMap(({ graph }, part) =>
      [...graph.initializers.values()].flatMap(({ name, tensor }): [string, TensorInfo][] =>
        tensor ? [[models.length > 1 ? `${part}.${name}` : name, tensor]] : []
      )
    ),
  );
}
