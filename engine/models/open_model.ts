// Opens whatever holds a model's weights: a GGUF file, a safetensors file, an ONNX file, a checkpoint of
// PyTorch or of llama2.c, an index of shards, or a Hugging Face folder. The bytes decide, not the name; the
// name only matters where bytes cannot tell.

import type { ByteSource } from "../byte_source.ts";
import { SourceError, UnsupportedError } from "../errors.ts";
import { listFolder, openFile, pathKind, siblingPath } from "../io.ts";
import { openGguf } from "../formats/gguf/gguf.ts";
import {
  findSafetensors,
  openSafetensorsFolder,
  type WeightsReader,
} from "../formats/safetensors/folder.ts";
import { type ModelKind, sniffModel } from "../formats/sniff.ts";
import type { WeightFile } from "../formats/source.ts";

// Readers of rarer kinds are imported when there is something for them: a file is of one kind.
const SAFETENSORS: WeightsReader = {
  kind: "safetensors",
  open: async (source) =>
    await (await import("../formats/safetensors/safetensors.ts")).openSafetensors(source),
};
const TORCH: WeightsReader = {
  kind: "pickle",
  open: async (source) =>
    await sniffModel(source) === "torch-legacy"
      ? await (await import("../formats/pickle/torch_legacy.ts")).openTorchLegacy(source)
      : await (await import("../formats/pickle/torch_zip.ts")).openTorchZip(source),
};
const LLAMA2C: WeightsReader = {
  kind: "llama2c",
  open: async (source) => await (await import("../formats/llama2c/llama2c.ts")).openLlama2c(source),
};

const onnxReader = () => import("../onnx/file/open_onnx_model.ts");

const openers: Readonly<Record<ModelKind, (source: ByteSource) => Promise<WeightFile>>> = {
  "gguf": openGguf,
  "safetensors": (source) => openBesideConfig(source, SAFETENSORS),
  "safetensors-index": (source) => openIndex(source, SAFETENSORS),
  "torch-zip": (source) => openBesideConfig(source, TORCH),
  "torch-legacy": (source) => openBesideConfig(source, TORCH),
  "torch-index": (source) => openIndex(source, TORCH),
  "llama2c": (source) => openBesideTexts(source, LLAMA2C),
  "onnx": async (source) => (await onnxReader()).openOnnxFile(source),
};

// What looks at pictures for the model beside it (load's option mmproj).
const PROJECTOR = /^mmproj/i;
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
 * Opens a folder with config.json and safetensors weights, with one GGUF file, with a checkpoint of PyTorch
 * or llama2.c, or with ONNX files; the first of these that is there.
 *
 * @throws {SourceError} If the folder holds no weights, or several files and none is the obvious one.
 */
export async function openModelFolder(path: string): Promise<WeightFile> {
  const names = listFolder(path);
  // Names are ours or were checked to be plain; a few files of ours lie in folders of the folder.
  const open = (name: string) =>
    openFile(name.split("/").reduce((folder, part) => siblingPath(`${folder}/`, part), path));
  const weights = findSafetensors(names);
  if (weights) return await openSafetensorsFolder(path, { weights, open });
  const ggufs = names.filter((name) =>
    name.endsWith(".gguf") && !LATER_PART.test(name) && !PROJECTOR.test(name)
  );
  if (ggufs.length === 1) return await openModel(open(ggufs[0]));
  const torch = findTorch(names);
  if (torch && ggufs.length === 0) return await openModel(open(torch));
  const onnx = ggufs.length === 0 && !torch ? (await onnxReader()).openOnnxFolder(path) : undefined;
  if (onnx) return onnx;
  throw describeFolder(path, names);
}

/** Name of the index or the one file of a PyTorch folder. */
function findTorch(names: readonly string[]): string | undefined {
  const usual = ["pytorch_model.bin.index.json", "pytorch_model.bin"];
  const preferred = usual.find((name) => names.includes(name));
  if (preferred) return preferred;
  const notWeights = /^(training_args|optimizer|scheduler|tokenizer|rng_state)/;
  const all = names.filter((name) => /\.(bin|pt|pth)$/.test(name) && !notWeights.test(name));
  return all.length === 1 ? all[0] : undefined;
}

function describeFolder(path: string, names: readonly string[]): Error {
  if (names.includes("model_index.json")) {
    return new UnsupportedError("the folder holds a pipeline of several models, which paints", {
      file: path,
      remedy: "Open it with loadImageModel(), or troodon image",
    });
  }
  const models = names.filter((name) => /\.(gguf|safetensors|bin|pt|pth|onnx)$/.test(name));
  if (models.length > 1) {
    return new SourceError(`the folder holds several models: ${models.slice(0, 8).join(", ")}`, {
      file: path,
      remedy: "Give the path of one of them",
    });
  }
  return new SourceError("the folder holds no .safetensors, .gguf, .bin, .pt or .onnx file", {
    file: path,
    remedy: "Give the folder that holds config.json and the weights",
  });
}

/** A single file of weights; config.json beside it, if there is one, becomes the metadata. */
async function openBesideConfig(source: ByteSource, reader: WeightsReader): Promise<WeightFile> {
  if (!source.openSibling) return await reader.open(source);
  const own = fileName(source);
  const open = (name: string) => name === own ? source : source.openSibling!(name);
  return await openSafetensorsFolder(source.name, { weights: own, open, reader });
}

/** A file that describes itself: only its companions come from the folder, never config.json. */
async function openBesideTexts(source: ByteSource, reader: WeightsReader): Promise<WeightFile> {
  const { metadata } = await reader.open(source);
  return { ...await openBesideConfig(source, reader), metadata };
}

async function openIndex(source: ByteSource, reader: WeightsReader): Promise<WeightFile> {
  if (!source.openSibling) {
    throw new SourceError("an index alone has no shards beside it", {
      file: source.name,
      remedy: "Give the path of the folder",
    });
  }
  const own = fileName(source);
  const open = (name: string) => name === own ? source : source.openSibling!(name);
  return await openSafetensorsFolder(source.name, { weights: own, open, reader });
}

function fileName(source: ByteSource): string {
  return source.name.replace(/[?#].*$/, "").split(/[/\\]/).at(-1)!;
}
