// Opens whatever holds a model's weights: a GGUF file, a safetensors file, an index of shards, or a
// Hugging Face folder. The bytes decide, not the name; the name only matters where bytes cannot tell.

import { SourceError, UnsupportedError } from "../errors.ts";
import { listFolder, openFile, pathKind, siblingPath } from "../io.ts";
import { openGguf } from "./gguf.ts";
import { openSafetensors } from "./safetensors.ts";
import { findSafetensors, openSafetensorsFolder } from "./safetensors_folder.ts";
import { type ModelKind, sniffModel } from "./sniff.ts";
import type { ByteSource, WeightFile } from "./source.ts";

const openers: Readonly<Record<ModelKind, (source: ByteSource) => Promise<WeightFile>>> = {
  "gguf": openGguf,
  "safetensors": openBesideConfig,
  "safetensors-index": openIndex,
};

// Parts of a split GGUF are opened through the first one.
const LATER_PART = /-(?!00001)\d{5}-of-\d{5}\.gguf$/;

/**
 * Opens a model: a path of a file or folder, or an open source (which is closed again on errors).
 *
 * @throws {SourceError} If something is not there.
 * @throws {FormatError} If the file is no model or breaks the rules of its format.
 * @throws {UnsupportedError} If it is a model of a kind that is not read.
 */
export async function openModel(model: string | ByteSource): Promise<WeightFile> {
  if (typeof model === "string" && pathKind(model) === "folder") {
    return await openModelFolder(model);
  }
  const source = typeof model === "string" ? openFile(model) : model;
  try {
    return await openers[await sniffModel(source)](source);
  } catch (error) {
    source.close();
    throw error;
  }
}

/**
 * Opens a folder with config.json and safetensors weights, or with one GGUF file.
 *
 * @throws {SourceError} If the folder holds no weights, or several files and none is the obvious one.
 */
export async function openModelFolder(path: string): Promise<WeightFile> {
  const names = listFolder(path);
  const open = (name: string) => openFile(siblingPath(`${path}/`, name));
  const weights = findSafetensors(names);
  if (weights) return await openSafetensorsFolder(path, weights, open);
  const ggufs = names.filter((name) => name.endsWith(".gguf") && !LATER_PART.test(name));
  if (ggufs.length === 1) return await openModel(open(ggufs[0]));
  throw describeFolder(path, names);
}

function describeFolder(path: string, names: readonly string[]): Error {
  const models = names.filter((name) => /\.(gguf|safetensors)$/.test(name));
  if (models.length > 1) {
    return new SourceError(`the folder holds several models: ${models.slice(0, 8).join(", ")}`, {
      file: path,
      remedy: "Give the path of one of them",
    });
  }
  const pickle = names.find((name) => /\.(bin|pt|pth)$/.test(name));
  if (pickle) {
    return new UnsupportedError(`the folder's weights are a PyTorch pickle (${pickle})`, {
      file: path,
      remedy: "Use the model as safetensors or GGUF",
    });
  }
  return new SourceError("the folder holds no .safetensors or .gguf file", {
    file: path,
    remedy: "Give the folder that holds config.json and the weights",
  });
}

/** A single safetensors file; config.json beside it, if there is one, becomes the metadata. */
async function openBesideConfig(source: ByteSource): Promise<WeightFile> {
  if (!source.openSibling) return await openSafetensors(source);
  const own = fileName(source);
  const open = (name: string) => name === own ? source : source.openSibling!(name);
  return await openSafetensorsFolder(source.name, own, open);
}

async function openIndex(source: ByteSource): Promise<WeightFile> {
  if (!source.openSibling) {
    throw new SourceError("an index alone has no shards beside it", {
      file: source.name,
      remedy: "Give the path of the folder",
    });
  }
  const own = fileName(source);
  const open = (name: string) => name === own ? source : source.openSibling!(name);
  return await openSafetensorsFolder(source.name, own, open);
}

function fileName(source: ByteSource): string {
  return source.name.replace(/[?#].*$/, "").split(/[/\\]/).at(-1)!;
}
