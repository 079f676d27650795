// A folder of diffusers: model_index.json names the parts, each of which is a folder with a config and weights
// (safetensors), or, as Optimum exports them, with model.onnx.

import { closing, readBytes } from "../../byte_source.ts";
import { FormatError, SourceError, UnsupportedError } from "../../errors.ts";
import { PART_WEIGHTS } from "../../formats/hub/pipeline_files.ts";
import { openSafetensorsFolder, readConfig } from "../../formats/safetensors/folder.ts";
import type { WeightFile } from "../../formats/source.ts";
import type { Tokenizer } from "../../text/tokenizer_types.ts";
import { readFolderText } from "../../text/folder_text.ts";
import { listFolder, openFile, pathKind, siblingPath } from "../../io.ts";

/** What a part of a pipeline lies in. */
export type Part =
  | { readonly kind: "weights"; readonly file: WeightFile }
  | { readonly kind: "onnx"; readonly path: string; readonly config: JsonRecord };

/** A JSON object. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** A pipeline's folder. */
export interface DiffusersFolder {
  readonly path: string;
  /** What `_class_name` of model_index.json says. */
  readonly pipeline: string;
  /** All that model_index.json says. */
  readonly index: JsonRecord;
  /** The tokenizer in a part's folder, and its config. @throws {UnsupportedError} If there is none. */
  texts(part: string): Promise<{ readonly tokenizer: Tokenizer; readonly config: JsonRecord }>;
  /** A JSON file of a part. @throws {SourceError} If it is not there. */
  config(part: string, name: string): Promise<JsonRecord>;
  /**
   * Opens the weights of a part; `otherwise` is what its folder is called beside ONNX files.
   *
   * @throws {SourceError} If it has none.
   */
  open(part: string, otherwise?: string): Promise<Part>;
}

const INDEX = "model_index.json", TOKENIZER_CONFIG = "tokenizer_config.json";

/**
 * Opens the folder of a pipeline.
 *
 * @throws {SourceError} If it has no model_index.json.
 * @throws {FormatError} If that names no pipeline.
 */
export async function openDiffusersFolder(path: string): Promise<DiffusersFolder> {
  if (pathKind(path) !== "folder" || !listFolder(path).includes(INDEX)) {
    throw new SourceError(`is no folder with ${INDEX}`, {
      file: path,
      remedy:
        "Give the folder of a diffusers pipeline, with unet, vae, text_encoder and others in it",
    });
  }
  return diffusersFolder(path, await jsonIn(path, INDEX));
}

/** The folder of a pipeline whose index is known. @throws {FormatError} If that names no pipeline. */
export function diffusersFolder(path: string, index: JsonRecord): DiffusersFolder {
  const pipeline = index._class_name;
  if (typeof pipeline !== "string") {
    throw new FormatError("names no pipeline", { file: `${path}/${INDEX}`, place: "_class_name" });
  }
  const pathOf = (part: string) => siblingPath(`${path}/`, part);
  return {
    path,
    pipeline,
    index,
    config: (part, name) => jsonIn(pathOf(part), name),
    texts: (part) => textsIn(pathOf(part)),
    async open(part, otherwise = part) {
      const folder = [part, otherwise].map(pathOf).find((one) => pathKind(one) === "folder");
      if (folder) return await openPart(folder);
      throw new SourceError(`has no folder ${part}`, {
        file: path,
        remedy: "Fetch the pipeline with all its parts",
      });
    },
  };
}

async function openPart(folder: string): Promise<Part> {
  const names = listFolder(folder);
  const weights = PART_WEIGHTS.find((name) => names.includes(name));
  const open = (name: string) => openFile(siblingPath(`${folder}/`, name));
  if (weights) {
    const file = await openSafetensorsFolder(folder, { weights, open });
    return { kind: "weights", file };
  }
  if (names.includes("model.onnx")) {
    return {
      kind: "onnx",
      path: `${folder}/model.onnx`,
      config: names.includes("config.json") ? await jsonIn(folder, "config.json") : {},
    };
  }
  const pickled = names.find((name) => name.endsWith(".bin"));
  if (pickled) {
    throw new UnsupportedError(`of a diffusion model only safetensors and ONNX are read`, {
      file: `${folder}/${pickled}`,
      remedy: "Fetch its .safetensors files",
    });
  }
  throw new SourceError(`holds none of ${PART_WEIGHTS.join(", ")}, model.onnx`, { file: folder });
}

/** The tokenizer of a folder, and its config. @throws {SourceError} If there is none. */
export async function textsIn(
  folder: string,
): Promise<{ readonly tokenizer: Tokenizer; readonly config: JsonRecord }> {
  const names = pathKind(folder) === "folder" ? listFolder(folder) : [];
  const bytesOf = async (name: string) => {
    if (!names.includes(name)) return undefined;
    const source = openFile(siblingPath(`${folder}/`, name));
    using _source = closing(source);
    return await readBytes(source, { length: source.size });
  };
  const textOf = async (name: string) => {
    const bytes = await bytesOf(name);
    return bytes && new TextDecoder().decode(bytes);
  };
  const beside = { kind: "safetensors", name: folder, metadata: new Map(), tensors: new Map() };
  const { tokenizer } = await readFolderText({
    ...beside,
    readText: textOf,
    readBytes: bytesOf,
    close: () => {},
  });
  if (!tokenizer) throw new SourceError("holds no tokenizer", { file: folder });
  const config = names.includes(TOKENIZER_CONFIG) ? await jsonIn(folder, TOKENIZER_CONFIG) : {};
  return { tokenizer, config };
}

async function jsonIn(folder: string, name: string): Promise<JsonRecord> {
  const config = await readConfig(() => openFile(siblingPath(`${folder}/`, name)), name);
  if (!config) throw new SourceError("is not there", { file: `${folder}/${name}` });
  return Object.fromEntries(config);
}
