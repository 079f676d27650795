// The parts of a pipeline that paints: text encoder, network that tells noise from picture, autoencoder, schedule. Each is
// opened from the folder, and loaded on the device when it is first run.

import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { pathOf } from "../../io.ts";
import { load } from "../../models/load.ts";
import { type LowRankFile, openLowRank } from "../../models/networks/low_rank.ts";
import { type Network, openNetwork, readNetworkFile } from "../../models/networks/network.ts";
import { openOnnxNetwork } from "../../models/networks/onnx_network.ts";
import type { DeviceName } from "../../run/backend.ts";
import { type Device, openDevice } from "../../run/devices.ts";
import type { Tokenizer } from "../../text/tokenizer_types.ts";
import type { GpuProvider } from "../../../gpu/capabilities.ts";
import { type Autoencoder, createAutoencoder } from "./autoencoder.ts";
import {
  type DiffusersFolder,
  type JsonRecord,
  openDiffusersFolder,
  type Part,
} from "./diffusers_folder.ts";
import { modelTextEncoder, onnxTextEncoder, type TextEncoder } from "./prompts.ts";

/**
 * An adapter of a model that paints.
 * @category Pictures from texts
 */
export interface ImageAdapter {
  /** A .safetensors file of diffusers, PEFT or kohya, or the folder of one. */
  readonly path: string;
  /** How much it counts; default 1. */
  readonly scale?: number | undefined;
}

/**
 * Options of {@linkcode loadImageModel}.
 * @category Pictures from texts
 */
export interface LoadImageModelOptions {
  /** Where it runs; default `auto`: the GPU where there is one. */
  readonly device?: DeviceName | "auto" | undefined;
  /** Who gives the adapter of device `gpu`; default: `navigator.gpu`. */
  readonly gpu?: GpuProvider | undefined;
  /** Threads of WASM; default: all processors, at most 16. */
  readonly threads?: number | undefined;
  /** LoRA adapters of the network. */
  readonly adapters?: readonly ImageAdapter[] | undefined;
  /** Names of kernels that must not be used, because `troodon doctor` found them wrong on this machine. */
  readonly excludeKernels?: readonly string[] | undefined;
}

const OPTION_KEYS: OptionKeys<LoadImageModelOptions> = {
  device: true,
  gpu: true,
  threads: true,
  adapters: true,
  excludeKernels: true,
};

/**
 * A model that paints, as {@linkcode loadImageModel} gives it.
 * @category Pictures from texts
 */
export interface ImageModel extends Disposable {
  /** Class of its pipeline, as model_index.json has it. */
  readonly pipeline: string;
  /** Where it runs. */
  readonly device: DeviceName;
  /** Sizes of pictures are multiples of this. */
  readonly factor: number;
  /** Width and height that it was trained for. */
  readonly size: number;
  /** What of its files does not happen; one sentence each. */
  readonly warnings: readonly string[];
}

/** The parts of a model. */
export interface ImageModelParts extends ImageModel {
  readonly tokenizer: Tokenizer;
  /** Tokens of a prompt. */
  readonly promptLength: number;
  readonly textEncoder: TextEncoder;
  readonly denoiser: Network;
  readonly config: JsonRecord;
  readonly autoencoder: Autoencoder;
  readonly scheduler: JsonRecord;
}

const PIPELINES: readonly string[] = [
  ...[
    "StableDiffusionPipeline",
    "StableDiffusionImg2ImgPipeline",
    "StableDiffusionInpaintPipeline",
  ],
  ...["LatentConsistencyModelPipeline", "LatentConsistencyModelImg2ImgPipeline"],
  ...["OnnxStableDiffusionPipeline", "ORTStableDiffusionPipeline"],
];

const models = new WeakMap<ImageModel, ImageModelParts>();

/** The parts behind a model. @throws {TypeError} If it is none of this library. */
export function partsOf(model: ImageModel): ImageModelParts {
  const parts = models.get(model);
  if (parts) return parts;
  throw new TypeError("Cannot paint: give a model from loadImageModel()");
}

/**
 * Loads a model that paints: the folder of a diffusers pipeline (Stable Diffusion 1 and 2, turbo and LCM models of theirs),
 * with weights in safetensors, or as Optimum exports it to ONNX.
 *
 * @example
 * ```ts
 * import { generateImage, loadImageModel, writePng } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await loadImageModel("painter", { device: "wasm" });
 * const { picture } = await generateImage(model, "a red cat", { steps: 2, width: 32, height: 24, seed: 1 });
 * assertEquals([picture.width, picture.height], [32, 24]);
 * writePng(picture); // bytes of a file
 * ```
 *
 * @param path A path or a `file://` URL of the folder.
 * @throws {SourceError} If a part is not there.
 * @throws {FormatError} If parts do not fit each other, or a file is damaged.
 * @throws {UnsupportedError} If the pipeline, or a part of it, is not built.
 * @category Pictures from texts
 */
export async function loadImageModel(
  path: string | URL,
  options: LoadImageModelOptions = {},
): Promise<ImageModel> {
  checkOptionKeys(options, { of: "loadImageModel()", known: OPTION_KEYS });
  return await openImageModel(await openDiffusersFolder(pathOf(path)), options);
}

/** The same, of an open folder. */
export async function openImageModel(
  folder: DiffusersFolder,
  options: LoadImageModelOptions,
): Promise<ImageModel> {
  if (!PIPELINES.includes(folder.pipeline)) {
    throw new UnsupportedError(`pipeline ${folder.pipeline} is not built`, {
      file: folder.path,
      remedy: `Known are ${PIPELINES.join(", ")}`,
    });
  }
  using opened = new DisposableStack();
  const device = await openDevice(options.device ?? "auto", { ...options, shared: true });
  const at = { folder, options: { ...options, device }, opened };
  const warnings: string[] = device.note === undefined ? [] : [device.note];
  const unet = await openPart(at, { part: "unet", network: "unet", warnings });
  const autoencoder = await openAutoencoder(at, warnings);
  const { tokenizer, length } = await readTokenizer(folder);
  const textEncoder = opened.use(await openTextEncoder(at));
  const width = Number(unet.config.cross_attention_dim);
  if (textEncoder.width !== undefined && textEncoder.width !== width && !Number.isNaN(width)) {
    throw new FormatError(
      `the text encoder gives states of ${textEncoder.width} numbers, and the network takes ${width}`,
      { file: folder.path, remedy: "Its parts are of different models: fetch the folder again" },
    );
  }
  const scheduler = await folder.config("scheduler", "scheduler_config.json");
  const all = opened.move();
  const model: ImageModel = {
    pipeline: folder.pipeline,
    device: device.backend.name,
    factor: autoencoder.factor,
    size: Number(unet.config.sample_size ?? 64) * autoencoder.factor,
    warnings,
    [Symbol.dispose]: () => all.dispose(),
  };
  models.set(model, {
    ...model,
    ...{ tokenizer, promptLength: length, textEncoder, autoencoder, scheduler },
    denoiser: unet.network,
    config: unet.config,
  });
  return model;
}

interface Opening {
  readonly folder: DiffusersFolder;
  readonly options: Omit<LoadImageModelOptions, "device"> & { readonly device: Device };
  readonly opened: DisposableStack;
}

interface Opened {
  readonly network: Network;
  readonly config: JsonRecord;
}

async function openPart(
  { folder, options, opened }: Opening,
  { part, network, warnings }: {
    readonly part: string;
    readonly network: string;
    readonly warnings: string[];
  },
): Promise<Opened> {
  const found = await folder.open(part);
  const { device, adapters = [] } = options;
  if (found.kind === "onnx") {
    refuseAdapters(adapters, found.path);
    const graph = await openOnnxNetwork(found.path, graphOptions(options));
    return { network: opened.use(graph), config: found.config };
  }
  opened.defer(() => found.file.close());
  const file = readNetworkFile(found.file);
  warnings.push(...file.warnings);
  const changes: LowRankFile[] = [];
  for (const { path, scale = 1 } of adapters) {
    changes.push(opened.use(await openLowRank(path, { part, scale })));
  }
  const lowRank = (place: string) => changes.flatMap((change) => change.of(place));
  const made = openNetwork(file, {
    ...{ device, network },
    ...changes.length > 0 && { lowRank },
    onBuilt(used) {
      const unused = [...found.file.tensors.keys()].filter((name) => !used.has(name));
      if (unused.length > 0) warnings.push(unusedTensors(found.file.name, unused));
      changes.forEach((change) => change.checkUsed());
    },
  });
  return { network: opened.use(made), config: file.names };
}

function unusedTensors(file: string, names: readonly string[]): string {
  return `${file}: ${names.length} tensors are not used: ${names.slice(0, 3).join(", ")}`;
}

function refuseAdapters(adapters: readonly ImageAdapter[], file: string): void {
  if (adapters.length === 0) return;
  throw new UnsupportedError("adapters are added to weights, not to an ONNX graph", {
    file,
    remedy: "Use the pipeline's safetensors",
  });
}

async function openAutoencoder(at: Opening, warnings: string[]): Promise<Autoencoder> {
  const { folder, options, opened } = at;
  const found = await folder.open("vae", "vae_decoder");
  if (found.kind === "onnx") {
    const network = async (part: Part) => {
      if (part.kind !== "onnx") throw new FormatError("is half ONNX", { file: folder.path });
      return opened.use(await openOnnxNetwork(part.path, graphOptions(options)));
    };
    const decoder = await network(found);
    const encoder = await network(await folder.open("vae_encoder"));
    return createAutoencoder(found.config, { decoder, encoder });
  }
  opened.defer(() => found.file.close());
  const file = readNetworkFile(found.file), { device } = options;
  warnings.push(...file.warnings);
  const network = (name: string) => opened.use(openNetwork(file, { device, network: name }));
  return createAutoencoder(file.names, {
    decoder: network("decoder"),
    encoder: network("encoder"),
  });
}

function graphOptions({ device, ...options }: Opening["options"]) {
  const { gpu, threads, excludeKernels } = options;
  return { device: device.backend.name, gpu, threads, excludeKernels };
}

async function readTokenizer(
  folder: DiffusersFolder,
): Promise<{ readonly tokenizer: Tokenizer; readonly length: number }> {
  const { tokenizer, config } = await folder.texts("tokenizer");
  const stated = config.model_max_length;
  return { tokenizer, length: typeof stated === "number" && stated < 1e6 ? stated : 77 };
}

async function openTextEncoder({ folder, options }: Opening): Promise<TextEncoder> {
  const found = await folder.open("text_encoder");
  if (found.kind === "onnx") return await onnxTextEncoder(found.path, graphOptions(options));
  found.file.close();
  const { device, gpu, threads, excludeKernels } = options;
  const model = await load(folder.pathOf("text_encoder"), {
    ...{ device: device.backend.name, precision: "exact" },
    ...gpu && { gpu },
    ...threads !== undefined && { threads },
    ...excludeKernels && { excludeKernels },
  });
  return modelTextEncoder(model);
}
