// From a prompt to a picture: states of the prompt, noise, steps in which the network is asked and the scheduler takes some
// noise away, and the autoencoder at the end. The order in which noise is drawn is that of diffusers, so that a seed gives
// the same picture there.

import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";
import { checkPicture, type Picture } from "../../formats/media/picture.ts";
import type { Tensor } from "../../models/networks/network.ts";
import { pause } from "../../pause.ts";
import { resizePicture } from "../../pictures/resize.ts";
import { planesOf } from "./autoencoder.ts";
import { createGuided } from "./guided.ts";
import { guidanceWaves } from "./guidance_waves.ts";
import { type ImageModel, type ImageModelParts, partsOf } from "./image_model.ts";
import { type Mask, maskOf, withoutMasked } from "./masks.ts";
import type { JsonRecord } from "./diffusers_folder.ts";
import { emptyPrompt, readPrompt } from "./prompts.ts";
import { sizeInputs } from "./size_inputs.ts";
import { type SchedulerChoice, schedulerConfig } from "./scheduler_names.ts";
import { planSteps } from "./schedulers/plan_steps.ts";
import type { Mix } from "./schedulers/schedule.ts";
import { createStepper } from "./schedulers/stepper.ts";
import { type TorchNoise, torchNoise } from "./torch_noise.ts";

/**
 * How far a picture is.
 * @category Pictures from texts
 */
export interface ImageProgress {
  /** Steps that are made, from 1. */
  readonly step: number;
  /** Steps in all. */
  readonly steps: number;
  /** How much noise the network was told of. */
  readonly timestep: number;
  /** The sample behind the step: a view, valid during the call. */
  readonly latents: Float32Array;
  /** The picture that the network has in mind, decoded now: that takes as long as at the end. */
  preview(): Promise<Picture>;
}

/**
 * Options of {@linkcode generateImage}.
 * @category Pictures from texts
 */
export interface GenerateImageOptions {
  /** What the picture is led away from; default: nothing. */
  readonly negative?: string | undefined;
  /** Steps for a picture out of noise alone; default 20. */
  readonly steps?: number | undefined;
  /** How much the prompt counts; 1 and less: the network is asked once a step, as turbo models want. Default: diffusers' (7.5, SD XL 5, SD 3 7, PixArt 4.5). */
  readonly guidance?: number | undefined;
  /** Of all noise, an integer of 0 or more; default: drawn, and told with the result. */
  readonly seed?: number | undefined;
  /** Pixels a row, a multiple of the model's `factor`, at most 4096; default: `init`'s, else the model's `size`. */
  readonly width?: number | undefined;
  /** Rows, likewise. */
  readonly height?: number | undefined;
  /** Scheduler; default: the one of the model's files. */
  readonly scheduler?: SchedulerChoice | undefined;
  /** DDIM: how much noise is drawn anew in each step, 0 (default) to 1. */
  readonly eta?: number | undefined;
  /** A picture to change, or the latents of an earlier result of the same size. */
  readonly init?: Picture | Float32Array | undefined;
  /** Where `init` is painted over: its bright pixels. */
  readonly mask?: Picture | undefined;
  /** How much of `init` is made anew, above 0 to 1; default 0.8, with a mask 1. */
  readonly strength?: number | undefined;
  /** Noise to begin with, [1, channels, height, width] of latents; default: drawn by the seed as PyTorch does on a CPU. */
  readonly latents?: Float32Array | undefined;
  /** Whether prompt and negative prompt are computed one after the other; default: where one run takes too much memory. */
  readonly splitGuidance?: boolean | undefined;
  /** Whether large pictures go through the autoencoder in tiles; default: where one run takes too much memory. */
  readonly tiles?: boolean | undefined;
  /** Called behind each step, and waited for. */
  readonly onProgress?: ((progress: ImageProgress) => void | Promise<void>) | undefined;
  /** Stops between two pieces of a step, with its reason. */
  readonly signal?: AbortSignal | undefined;
}

const OPTION_KEYS: OptionKeys<GenerateImageOptions> = {
  negative: true,
  steps: true,
  guidance: true,
  seed: true,
  width: true,
  height: true,
  scheduler: true,
  eta: true,
  init: true,
  mask: true,
  strength: true,
  latents: true,
  splitGuidance: true,
  tiles: true,
  onProgress: true,
  signal: true,
};

/**
 * A picture and how it came about.
 * @category Pictures from texts
 */
export interface GeneratedImage {
  /** Its pixels. */
  readonly picture: Picture;
  /** The seed of its noise. */
  readonly seed: number;
  /** Latents that it was decoded from, [1, channels, height, width]. */
  readonly latents: Float32Array;
  /** What became of the request otherwise than it was asked for; one sentence each. */
  readonly notes: readonly string[];
}

/** Most pixels of a side: that of the largest pictures that a pipeline here was trained for (PixArt-Σ, 4K). */
const MAX_SIDE = 4096;

/**
 * Paints a picture.
 *
 * @example
 * ```ts
 * import { generateImage, loadImageModel } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await loadImageModel("painter", { device: "wasm" });
 * const options = { steps: 2, width: 32, height: 32, scheduler: "euler", seed: 7 } as const;
 * const { picture: init } = await generateImage(model, "a red cat", options);
 * const { picture } = await generateImage(model, "a blue cat", { ...options, init, strength: 0.5 });
 * assertEquals([picture.width, picture.height], [32, 32]);
 * ```
 *
 * @throws {RangeError} If a number is out of its range, or a size no multiple of the model's factor.
 * @throws {TypeError} If options contradict each other, or `init` or `mask` is no picture.
 * @throws {UnsupportedError} If the scheduler is not known.
 * @throws {ResourceError} If it takes more memory than there is.
 * @category Pictures from texts
 */
export async function generateImage(
  model: ImageModel,
  prompt: string,
  options: GenerateImageOptions = {},
): Promise<GeneratedImage> {
  checkOptionKeys(options, { of: "generateImage()", known: OPTION_KEYS });
  const parts = partsOf(model), { signal, tiles } = options;
  checkInputs(parts, options);
  const { width, height } = sizeOf(parts, options);
  const { autoencoder: { factor, channels }, denoiser } = parts;
  const { seed = crypto.getRandomValues(new Uint32Array(1))[0]!, mask: maskPicture } = options;
  const { steps = 20, strength = maskPicture ? 1 : 0.8 } = options;
  const noise = torchNoise(seed), notes: string[] = [];
  const config = schedulerConfig(parts.scheduler, options.scheduler);
  const mu = shiftOf(parts, width / factor * (height / factor));
  const plan = (wanted: number) =>
    planSteps(config, { steps, strength: wanted, eta: options.eta ?? 0, mu });
  const schedule = plan(options.init ? strength : 1);
  if (options.eta && config._class_name !== "DDIMScheduler") {
    notes.push("eta was left out: the scheduler ddim alone draws noise by it");
  }
  const conditions = await conditionsOf(parts, prompt, {
    ...{ options, notes },
    size: { width, height },
  });
  signal?.throwIfAborted();

  const dims = [1, channels, height / factor, width / factor];
  const count = channels * dims[2]! * dims[3]!;
  // A mask's inside made anew altogether begins with noise, a whole picture with what is left of it.
  const isNoise = maskPicture !== undefined && strength === 1;
  const begun = await beginning(parts, options, { noise, dims, width, height, isNoise });
  const [onPicture, onNoise] = options.init && !isNoise
    ? schedule.begin
    : [0, schedule.initNoiseSigma];
  const sample = begun.noise.map((value, i) =>
    onPicture === 0 ? onNoise * value : onPicture * begun.picture![i]! + onNoise * value
  );
  const guided = createGuided(denoiser, { dims, conditions: { ...conditions, more: begun.more } });
  const stepper = createStepper(schedule, count);
  const { timesteps, rules } = schedule;
  for (const [i, timestep] of timesteps.entries()) {
    signal?.throwIfAborted();
    stepper.input(sample, guided.input);
    const said = await guided.ask(timestep, signal);
    const before = options.onProgress && sample.slice();
    const seen = before && new Float32Array(count);
    if (seen) stepper.preview(before, said, { target: seen });
    const fresh = rules[i]!.noise === 0 ? undefined : noise.randn(count);
    stepper.advance(sample, said, { noise: fresh });
    if (begun.kept) keepOutside(sample, begun.kept, levelBehind(plan, timesteps, { i, steps }));
    if (seen) {
      await options.onProgress!({
        ...{ step: i + 1, steps: timesteps.length, timestep, latents: sample },
        preview: () => parts.autoencoder.decode({ data: seen, dims }, { tiles, signal }),
      });
    }
    // Messages and signals are heard between steps only.
    await pause();
  }
  signal?.throwIfAborted();
  if (guided.isSplit) {
    notes.push("prompt and negative prompt were computed one after the other, for want of memory");
  }
  const picture = await parts.autoencoder.decode({ data: sample, dims }, {
    ...{ tiles, signal },
    onTiles: () => notes.push("the picture was decoded in tiles, for want of memory"),
  });
  return { picture, seed, latents: sample, notes };
}

/** Width and height that are wanted. */
function sizeOf({ factor, size }: ImageModelParts, options: GenerateImageOptions) {
  const init = options.init instanceof Float32Array ? undefined : options.init;
  const usual = (own: number | undefined) =>
    own === undefined ? size : Math.max(factor, Math.floor(own / factor) * factor);
  const { width = usual(init?.width), height = usual(init?.height) } = options;
  for (const [name, value] of [["width", width], ["height", height]] as const) {
    if (Number.isSafeInteger(value) && value > 0 && value <= MAX_SIDE && value % factor === 0) {
      continue;
    }
    throw new RangeError(
      `${name} must be a multiple of ${factor} and at most ${MAX_SIDE}, not ${value}`,
    );
  }
  return { width, height };
}

function checkInputs({ config, autoencoder }: ImageModelParts, options: GenerateImageOptions) {
  const { init, mask, strength, guidance = 1 } = options;
  if (init !== undefined && !(init instanceof Float32Array)) checkPicture(init);
  if (mask !== undefined) checkPicture(mask);
  if (mask && (!init || init instanceof Float32Array)) {
    throw new TypeError("Cannot paint by a mask: give init, the picture that it lies on");
  }
  if (strength !== undefined && !init) {
    throw new TypeError("Cannot paint with strength: give init, what is to be changed");
  }
  if (!Number.isFinite(guidance)) {
    throw new RangeError(`guidance must be a number, not ${guidance}`);
  }
  const takes = Number(config.in_channels ?? autoencoder.channels);
  if (takes !== autoencoder.channels && !mask) {
    throw new TypeError("Cannot paint without init and mask: this model fills in");
  }
}

/** What the network sees of prompt, guidance and size. */
async function conditionsOf(
  { rule, prompts, config, negativeIsZeros }: ImageModelParts,
  prompt: string,
  { options, notes, size }: {
    readonly options: GenerateImageOptions;
    readonly notes: string[];
    readonly size: { readonly width: number; readonly height: number };
  },
) {
  const { negative, guidance = rule.guidance, signal } = options;
  const onDropped = (count: number, length: number) => {
    notes.push(`${count} tokens of a prompt were cut off: ${length} fit`);
  };
  const read = (text: string) => readPrompt(prompts, text, { onDropped, signal });
  const embedding = config.time_cond_proj_dim, isTold = typeof embedding === "number";
  const wanted = await read(prompt), isGuided = guidance > 1 && !isTold;
  if (negative && !isGuided) {
    const why = isTold ? "this model takes none" : "it counts where guidance is above 1";
    notes.push(`the negative prompt was left out: ${why}`);
  }
  const unwanted = () =>
    negative === undefined && negativeIsZeros ? emptyPrompt(wanted) : read(negative ?? "");
  return {
    sample: rule.sample,
    prompt: wanted,
    negative: isGuided ? await unwanted() : undefined,
    guidance,
    split: options.splitGuidance,
    others: {
      ...tellsSizes(config) && sizeInputs(rule.sizes, size),
      ...isTold && {
        timestep_cond: { data: guidanceWaves(guidance, embedding), dims: [embedding] },
      },
    },
  };
}

/** How far flow matching shifts its steps to noise, by the patches of a picture (diffusers' `calculate_shift`). */
function shiftOf({ scheduler, config }: ImageModelParts, latents: number): number {
  const number = (name: string, otherwise: number) => Number(scheduler[name] ?? otherwise);
  const few = number("base_image_seq_len", 256), many = number("max_image_seq_len", 4096);
  const least = number("base_shift", 0.5), most = number("max_shift", 1.15);
  const patches = latents / Number(config.patch_size ?? 1) ** 2;
  return least + (patches - few) * (most - least) / (many - few);
}

/** PixArt's networks are not all told the size of the picture. */
function tellsSizes({ is_told_sizes: told }: JsonRecord): boolean {
  return told !== false;
}

/** What lies outside of a mask. */
interface Kept {
  readonly mask: Mask;
  readonly picture: Float32Array;
  readonly noise: Float32Array;
}

interface Beginning {
  readonly noise: Float32Array;
  /** Latents of the picture to change. */
  readonly picture: Float32Array | undefined;
  readonly kept: Kept | undefined;
  /** Further channels of networks that fill in. */
  readonly more: Float32Array | undefined;
}

async function beginning(
  { autoencoder, config }: ImageModelParts,
  { init, mask: maskPicture, latents, tiles, signal }: GenerateImageOptions,
  { noise, dims, width, height, isNoise }: {
    readonly noise: TorchNoise;
    readonly dims: readonly number[];
    readonly width: number;
    readonly height: number;
    /** Whether nothing of `init` is in the first sample. */
    readonly isNoise: boolean;
  },
): Promise<Beginning> {
  const count = dims.reduce((a, b) => a * b, 1);
  for (const [name, given] of Object.entries({ latents, init })) {
    if (!(given instanceof Float32Array) || given.length === count) continue;
    throw new RangeError(`${name} has ${given.length} numbers where [${dims}] is needed`);
  }
  const draw = (length: number) => noise.randn(length);
  const planes = init instanceof Float32Array ? undefined : init && planesOf(
    init.width === width && init.height === height
      ? init
      : resizePicture(init, { width, height, filter: "lanczos" }),
  );
  const mask = maskPicture && maskOf(maskPicture, { width, height, factor: autoencoder.factor });
  const fillsIn = mask && Number(config.in_channels) !== autoencoder.channels;
  const encode = async (tensor: Tensor) =>
    (await autoencoder.encode(tensor, draw, { tiles, signal })).data;
  const seen = fillsIn && isNoise ? undefined : planes;
  const picture = init instanceof Float32Array ? init : seen && await encode(seen);
  const first = latents ?? draw(count);
  const more = fillsIn
    ? Float32Array.of(...mask.latents, ...await encode(withoutMasked(planes!, mask)))
    : undefined;
  // diffusers encodes what lies outside of the mask for networks that do not see it, too.
  if (mask && !fillsIn) draw(count);
  const kept = mask && !fillsIn ? { mask, picture: picture!, noise: first } : undefined;
  return { noise: first, picture, kept, more };
}

/** How much of picture and noise a sample has behind a step. */
function levelBehind(
  plan: (strength: number) => { readonly timesteps: Float32Array; readonly begin: Mix },
  timesteps: Float32Array,
  { i, steps }: { readonly i: number; readonly steps: number },
): Mix {
  const next = timesteps[i + 1];
  if (next === undefined) return [1, 0];
  // Of a run that begins there; a timestep that is made twice begins once.
  for (let quarters = 4 * steps; quarters > 0; quarters -= 2) {
    // Pipelines cut parts of a step off, or leave them on.
    const { timesteps: [first], begin } = plan(Math.min(1, (quarters + 1) / (4 * steps)));
    if (first === next) return begin;
  }
  return [1, 0];
}

function keepOutside(sample: Float32Array, { mask, picture, noise }: Kept, [a, b]: Mix): void {
  const places = mask.latents.length;
  for (let i = 0; i < sample.length; i++) {
    const inside = mask.latents[i % places]!;
    sample[i] = inside * sample[i]! + (1 - inside) * (a * picture[i]! + b * noise[i]!);
  }
}
