// What a model that paints is to who uses it, and the parts behind it.

import type { SourceOptions } from "../../decode/model.ts";
import type { Network } from "../../models/networks/network.ts";
import type { DeviceName } from "../../run/backend.ts";
import type { PriorityOptions } from "../../run/pacer.ts";
import type { GpuProvider } from "../../../gpu/capabilities.ts";
import type { Autoencoder } from "./autoencoder.ts";
import type { JsonRecord } from "./diffusers_folder.ts";
import type { PipelineRule } from "./pipeline_rules.ts";
import type { PromptReaders } from "./prompts.ts";

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
export interface LoadImageModelOptions extends SourceOptions, PriorityOptions {
  /** Where it runs; default `auto`: the GPU where there is one. */
  readonly device?: DeviceName | "auto" | undefined;
  /** Who gives the adapter of device `gpu`; default: `navigator.gpu`. */
  readonly gpu?: GpuProvider | undefined;
  /** Threads of WASM; default: all processors, at most 16. */
  readonly threads?: number | undefined;
  /**
   * `fast`, the default: on a GPU with subgroup matrices what meets weights of float16, queries, keys, values and weights of attention are
   * rounded to float16 (sums are float32), where diffusers in half precision rounds all there is; `exact`: as near as float32.
   * Elsewhere, and of folders in ONNX, both are exact.
   */
  readonly precision?: "fast" | "exact" | undefined;
  /** LoRA adapters of the network. */
  readonly adapters?: readonly ImageAdapter[] | undefined;
  /** Names of kernels that must not be used, because `troodon doctor` found them wrong on this machine. */
  readonly excludeKernels?: readonly string[] | undefined;
}

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
  readonly rule: PipelineRule;
  readonly prompts: PromptReaders;
  /** Whether no negative prompt at all is zeros in place of states. */
  readonly negativeIsZeros: boolean;
  readonly denoiser: Network;
  readonly config: JsonRecord;
  readonly autoencoder: Autoencoder;
  readonly scheduler: JsonRecord;
}

const models = new WeakMap<ImageModel, ImageModelParts>();

/** The parts behind a model. @throws {TypeError} If it is none of this library. */
export function partsOf(model: ImageModel): ImageModelParts {
  const parts = models.get(model);
  if (parts) return parts;
  throw new TypeError("Cannot paint: give a model from loadImageModel()");
}

/** The model of parts, as users see it. */
export function imageModelOf(parts: ImageModelParts): ImageModel {
  const { pipeline, device, factor, size, warnings } = parts;
  const dispose = () => parts[Symbol.dispose]();
  const model: ImageModel = {
    ...{ pipeline, device, factor, size, warnings },
    [Symbol.dispose]: dispose,
  };
  models.set(model, parts);
  return model;
}
