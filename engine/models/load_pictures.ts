// What files say of an encoder of pictures beside its graph, and how one that lies in the file of an encoder of texts
// (CLIP, SigLIP) is loaded with that.

import { type MatchRule, type PictureTower, rowTower } from "../decode/pictures/tower.ts";
import type { Runtime } from "../decode/runtime.ts";
import { CacheRoom } from "../decode/cache_room.ts";
import type { LoadOptions } from "../decode/model.ts";
import { createStepQueue, type StepRunner } from "../decode/step_queue.ts";
import { FormatError } from "../errors.ts";
import type { WeightFile } from "../formats/source.ts";
import type { Device } from "../run/devices.ts";
import { type Executable, prepareExecutable } from "../run/executable.ts";
import { createStep } from "../run/step.ts";
import { pictureGrid, type PictureSize } from "./blocks/patches.ts";
import type { ModelParts } from "./build.ts";
import { readConstant } from "./constants.ts";
import { prepareConvolutions } from "./convolutions/prepare_convolutions.ts";
import { convSpecOf } from "./convolutions/specs/mod.ts";
import { labelsOf } from "./network_facts.ts";
import { readProcessor } from "./picture_processor.ts";
import type { EncoderOutputs } from "./encoder_outputs.ts";
import { modelOf, type PreparedModel, prepareModel } from "./prepare.ts";

/** A loaded encoder of pictures as pipelines use it. */
export async function towerOf(
  { parts, plan, pictures: size }: PreparedModel,
  { queue, logitRows }: Pick<Runtime, "queue" | "logitRows">,
): Promise<PictureTower> {
  const { file, params, tensors, resolved: { spec } } = parts;
  const grid = pictureGrid({ spec, params, tensors, file: file.name }, size);
  const { width, height } = size ?? { width: params.imageSize!, height: params.imageSize! };
  const widthOf = (name: string) =>
    Number(plan.graph.outputs.find((output) => output.name === name)?.shape.at(-1) ?? 0);
  return rowTower({
    name: file.name,
    processor: await readProcessor(file),
    pixels: [grid.channels, height, width],
    ...labelsOf(file, widthOf("scores")),
    hasVectors: widthOf("vectors") > 0,
  }, {
    ...{ queue, pictures: logitRows },
    grid: { ...grid, patch: { width: grid.patch, height: grid.patch } },
  });
}

/** An encoder of pictures by itself, for what is built on its states. */
export interface OpenedTower extends Disposable {
  readonly tower: PictureTower;
  readonly executable: Executable;
}

/**
 * Loads an encoder of pictures alone.
 *
 * @param file Seen through the section that speaks of it (section.ts).
 * @param outputs What is wanted of it; default: its vectors and scores.
 */
export async function openTower(
  file: WeightFile,
  { options, device, outputs, pictures }: {
    readonly options: LoadOptions;
    readonly device: Device;
    readonly outputs?: EncoderOutputs;
    readonly pictures?: PictureSize;
  },
): Promise<OpenedTower> {
  const spec = convSpecOf(file), rows = outputs !== undefined;
  const prepared = spec
    ? await prepareConvolutions(file, { spec, options, kernels: device, rows })
    : await prepareModel(file, { options, kernels: device, outputs, pictures });
  const { plan, limits, limits: { sessions: slots, cacheTokens, logitRows } } = prepared;
  const { signal } = options;
  const executable = await prepareExecutable(device.backend, {
    ...{ plan, slots, cacheTokens },
    ...signal && { signal },
  });
  const queue = queueOf(executable, { name: file.name, limits });
  const model = modelOf(prepared);
  const tower = model
    ? await towerOf(model, { queue, logitRows })
    : await prepared.tower!({ queue, logitRows });
  return { tower, executable, [Symbol.dispose]: () => executable.dispose() };
}

/** The queue of an encoder. */
export function queueOf(
  executable: Executable,
  { name, limits: { batch, logitRows } }: {
    /** For messages. */
    readonly name: string;
    readonly limits: Pick<PreparedModel["limits"], "batch" | "logitRows">;
  },
): StepRunner {
  return createStepQueue({
    ...{ executable, batch, logitRows, caches: new CacheRoom(executable, name) },
    createStep: ({ patches }) => createStep(batch, 0, { patches }),
  });
}

/**
 * How a model compares texts with pictures: factor and summand that it has learnt.
 *
 * @throws {FormatError} If the file has no factor.
 */
export async function matchRule(
  { tensors, file }: ModelParts,
  kind: MatchRule["kind"],
): Promise<MatchRule> {
  const number = async (role: string) => {
    const tensor = tensors.stored(role)?.tensors[0];
    return tensor && (await readConstant(tensor))[0];
  };
  const scale = await number("match_scale");
  if (scale === undefined) {
    throw new FormatError("is missing, and without it texts and pictures cannot be compared", {
      ...{ file: file.name, place: "tensor logit_scale" },
    });
  }
  return { kind, scale: Math.exp(scale), bias: await number("match_bias") ?? 0 };
}
