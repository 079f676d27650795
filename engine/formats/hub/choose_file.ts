// Which file of a repository is the model. Repositories of GGUF files hold the same model in a dozen number formats;
// those of checkpoints hold it in several containers. What is chosen is said, with the reason.

import { SourceError } from "../../errors.ts";
import type { HubFile } from "./hub_files.ts";
import { isPipelineWeights, PIPELINE_INDEX } from "./pipeline_files.ts";

/** A model of a repository: a file to open and what belongs to it. */
export interface ChosenFile {
  /** The file to open. */
  readonly main: string;
  /** All files of weights, the main one included. */
  readonly files: readonly HubFile[];
  /** Why this one, for people. */
  readonly reason: string;
}

interface Variant {
  readonly main: string;
  readonly format: string;
  readonly files: HubFile[];
  bytes: number;
}

/** Loading lays weights out anew, at up to an eighth more; caches, activations and the engine come on top. */
const LAYOUT_SHARE = 1.125;
const OTHER_BYTES = 256 << 20;

// Beside the file's stem, behind a dash or a dot; unsloth's dynamic mixtures begin with UD.
const FORMAT =
  /[.-]((?:UD-)?(?:I?Q\d+_(?:K_XXL|K_XL|K_[SML]|K|XXS|XS|NL|[SML]|\d)|TQ[12]_0|MXFP4(?:_MOE)?|NVFP4|BF16|F16|FP16|F32))(?=\.gguf$|-\d{5}-of-\d{5}\.gguf$)/i;
const PART = /-(\d{5})-of-\d{5}(?=\.gguf$)/;
const FLOATS = /^(BF16|F16|FP16|F32)$/i;
/** Not models: projectors of pictures, matrices of importance; and rows interleaved for one kind of processor. */
const OTHER_GGUF = /(^|\/)(mmproj|imatrix)|Q4_0_\d+_\d+|ggml-vocab/i;
/** Where free memory is not known. */
const USUAL = ["Q4_K_M", "UD-Q4_K_XL", "Q4_K_S", "Q4_0", "Q4_1", "Q5_K_M", "Q8_0"];
/** Checkpoints of one precision, best first: index files name their shards. */
const CHECKPOINTS = [
  "model.safetensors.index.json",
  "model.safetensors",
  "pytorch_model.bin.index.json",
  "pytorch_model.bin",
];

/**
 * Chooses a model among the files of a repository.
 *
 * @param format Number format that is wanted, as in file names; undefined: the most precise of at most 8 bits that
 * fits into `freeBytes`, since floats take twice the time for no better answers.
 * @param freeBytes Memory that a model may take; undefined: not known.
 * @throws {SourceError} If it holds no model, or none of that format; the message lists those it has.
 */
export function chooseFile(
  files: readonly HubFile[],
  { name, format, freeBytes }: {
    readonly name: string;
    readonly format?: string | undefined;
    readonly freeBytes?: number | undefined;
  },
): ChosenFile {
  const variants = [...ggufVariants(files), ...onnxVariants(files)];
  if (format !== undefined) return chooseNamed(variants, { name, format });
  const ggufs = variants.filter(({ main }) => main.endsWith(".gguf"));
  if (ggufs.length > 0) return chooseBest(ggufs, freeBytes);
  if (files.some(({ path }) => path === PIPELINE_INDEX)) {
    const weights = files.filter(({ path }) => isPipelineWeights(path));
    return { main: PIPELINE_INDEX, files: weights, reason: "the pipeline of the repository" };
  }
  for (const main of CHECKPOINTS) {
    if (!files.some(({ path }) => path === main)) continue;
    return { main, files: weightsOf(files, main), reason: "the checkpoint of the repository" };
  }
  const plain = variants.find(({ format }) => format === "onnx") ?? variants[0];
  if (plain) return { ...plain, reason: "the ONNX graph of the repository" };
  const single = files.filter(({ path }) => /^[^/]+\.safetensors$/.test(path));
  if (single.length === 1) {
    return { main: single[0]!.path, files: single, reason: "the only file of weights" };
  }
  throw new SourceError("holds no model that is read (GGUF, safetensors, PyTorch, ONNX)", {
    file: name,
    remedy: single.length > 1
      ? `Name one of its files: ${single.map(({ path }) => path).slice(0, 6).join(", ")}`
      : "Look for a repository of the same model in another format, often called …-GGUF",
  });
}

function ggufVariants(files: readonly HubFile[]): Variant[] {
  const variants = new Map<string, Variant>();
  const sorted = files.filter(({ path }) => path.endsWith(".gguf") && !OTHER_GGUF.test(path))
    .sort((a, b) => a.path < b.path ? -1 : 1);
  for (const file of sorted) {
    const stem = file.path.replace(PART, "");
    const known = variants.get(stem);
    if (known) {
      known.files.push(file);
      known.bytes += file.bytes;
    } else {
      const format = (FORMAT.exec(file.path.split("/").at(-1)!)?.[1] ?? "").toUpperCase();
      variants.set(stem, { main: file.path, format, files: [file], bytes: file.bytes });
    }
  }
  return [...variants.values()];
}

/** `model.onnx`, `model_q4.onnx`, … of a repository's root or its folder onnx, each with its external data. */
function onnxVariants(files: readonly HubFile[]): Variant[] {
  return files.flatMap(({ path }) => {
    const match = /^(?:onnx\/)?model(?:_(\w+))?\.onnx$/.exec(path);
    if (!match) return [];
    const own = files.filter((file) =>
      file.path === path || file.path.startsWith(`${path}_data`) || file.path === `${path}.data`
    );
    const bytes = own.reduce((sum, file) => sum + file.bytes, 0);
    return [{ main: path, format: match[1] ?? "onnx", files: own, bytes }];
  });
}

function chooseNamed(
  variants: readonly Variant[],
  { name, format }: { readonly name: string; readonly format: string },
): ChosenFile {
  const wanted = format.toUpperCase();
  const found = variants.find((one) => one.format.toUpperCase() === wanted) ??
    variants.find((one) => one.format.toUpperCase() === `UD-${wanted}`);
  if (found) return { ...found, reason: "as asked for" };
  const formats = [...new Set(variants.map((one) => one.format).filter(Boolean))];
  throw new SourceError(`holds nothing in ${format}`, {
    file: name,
    remedy: formats.length > 0
      ? `It has ${formats.join(", ")}`
      : "Its files name no formats: leave the colon and what is behind it out",
  });
}

function chooseBest(variants: readonly Variant[], freeBytes: number | undefined): ChosenFile {
  // Bytes are the measure of precision: they are the same weights.
  const bySize = [...variants].sort((a, b) => b.bytes - a.bytes);
  const quantized = bySize.filter(({ format }) => !FLOATS.test(format));
  const candidates = quantized.length > 0 ? quantized : bySize;
  const smallest = candidates.at(-1)!;
  const label = ({ format }: Variant): string => format || "the file";
  if (candidates.length === 1) return { ...smallest, reason: `${label(smallest)}, the only one` };
  if (freeBytes === undefined) {
    const usual = USUAL.map((format) => candidates.find((one) => one.format === format))
      .find((one) => one !== undefined) ?? smallest;
    const why = "free memory is not known (--allow-sys=systemMemoryInfo)";
    return { ...usual, reason: `${label(usual)}, the usual of ${candidates.length}: ${why}` };
  }
  const fits = candidates.find(({ bytes }) => bytes * LAYOUT_SHARE + OTHER_BYTES <= freeBytes);
  const memory = `${(freeBytes / 1e9).toFixed(1)} GB of free memory`;
  return fits
    ? { ...fits, reason: `${label(fits)}, the best of ${candidates.length} that fits ${memory}` }
    : { ...smallest, reason: `${label(smallest)}, the smallest: none fits ${memory}` };
}

/** The shards of an index are told apart from other checkpoints by their names alone; the index itself is read later. */
function weightsOf(files: readonly HubFile[], main: string): readonly HubFile[] {
  if (!main.endsWith(".index.json")) return files.filter(({ path }) => path === main);
  const shard = main.startsWith("pytorch") ? /^pytorch_model-.*\.bin$/ : /^model-.*\.safetensors$/;
  return files.filter(({ path }) => path === main || shard.test(path));
}
