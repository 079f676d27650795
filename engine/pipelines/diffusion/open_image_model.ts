// The parts of a pipeline that paints: text encoder, network that tells noise from picture, autoencoder, schedule. Each is
// opened from the folder, and loaded on the device when it is first run.

import { FormatError, UnsupportedError } from "../../errors.ts";
import { type LowRankFile, openLowRank } from "../../models/networks/low_rank.ts";
import { type Network, openNetwork, readNetworkFile } from "../../models/networks/network.ts";
import { openOnnxNetwork } from "../../models/networks/onnx_network.ts";
import { type Device, openDevice } from "../../run/devices.ts";
import { type Autoencoder, createAutoencoder } from "./autoencoder.ts";
import type { DiffusersFolder, JsonRecord, Part } from "./diffusers_folder.ts";
import { type ImageModel, imageModelOf, type LoadImageModelOptions } from "./image_model.ts";
import { type PipelineRule, pipelineRule, PIPELINES } from "./pipeline_rules.ts";
import type { PromptReader, PromptReaders } from "./prompts.ts";
import { createTextEncoder, type TextEncoder } from "./text_encoder.ts";

/** `loadImageModel` of an open folder, after its options were checked. @throws As it does. */
export async function openImageModel(
  folder: DiffusersFolder,
  options: LoadImageModelOptions,
): Promise<ImageModel> {
  const rule = pipelineRule(folder.pipeline);
  if (!rule) {
    throw new UnsupportedError(`pipeline ${folder.pipeline} is not built`, {
      file: folder.path,
      remedy: `Known are ${PIPELINES.join(", ")}`,
    });
  }
  using opened = new DisposableStack();
  const device = await openDevice(options.device ?? "auto", { ...options, shared: true });
  const changes: LowRankFile[] = [];
  for (const { path, scale = 1 } of options.adapters ?? []) {
    changes.push(opened.use(await openLowRank(path, { scale })));
  }
  const warnings: string[] = device.note === undefined ? [] : [device.note];
  const at = { folder, options: { ...options, device }, opened, changes, warnings };
  const denoiser = await openPart(at, { part: rule.denoiser, network: rule.denoiser });
  const autoencoder = await openAutoencoder(at);
  const prompts = await openPromptReaders(at, rule, denoiser.config);
  const scheduler = await folder.config("scheduler", "scheduler_config.json");
  const all = opened.move();
  return imageModelOf({
    pipeline: folder.pipeline,
    device: device.backend.name,
    factor: autoencoder.factor * Number(denoiser.config.patch_size ?? 1),
    size: Number(denoiser.config.sample_size ?? 64) * autoencoder.factor,
    warnings,
    ...{ rule, prompts, autoencoder, scheduler: { ...scheduler, ...rule.scheduler } },
    negativeIsZeros: folder.index.force_zeros_for_empty_prompt === true,
    denoiser: denoiser.network,
    config: denoiser.config,
    [Symbol.dispose]: () => all.dispose(),
  });
}

interface Opening {
  readonly folder: DiffusersFolder;
  readonly options: Omit<LoadImageModelOptions, "device"> & { readonly device: Device };
  readonly opened: DisposableStack;
  readonly changes: readonly LowRankFile[];
  readonly warnings: string[];
}

interface Opened {
  readonly network: Network;
  readonly config: JsonRecord;
  readonly inputs: readonly string[];
  /** Numbers of a row of what an ONNX file gives. */
  readonly width?: number | undefined;
}

async function openPart(
  { folder, options, opened, changes, warnings }: Opening,
  { part, network, wanted }: {
    readonly part: string;
    readonly network: string;
    /** Outputs of an ONNX file. */
    readonly wanted?: (outputs: readonly string[]) => readonly string[];
  },
): Promise<Opened> {
  const found = await folder.open(part);
  const { device, precision } = options;
  if (found.kind === "onnx") {
    refuseAdapters(changes, found.path);
    const graph = await openOnnxNetwork(found.path, { ...graphOptions(options), wanted });
    const { inputs, width } = graph;
    return { network: opened.use(graph), config: found.config, inputs, width };
  }
  opened.defer(() => found.file.close());
  const file = readNetworkFile(found.file), { names } = file;
  warnings.push(...file.warnings);
  const lowRank = (path: string) => changes.flatMap((change) => change.of({ part, path, names }));
  const made = openNetwork(file, {
    ...{ device, network, precision },
    ...changes.length > 0 && { lowRank },
    onBuilt(used) {
      const unused = [...found.file.tensors.keys()].filter((name) => !used.has(name));
      if (unused.length > 0) warnings.push(unusedTensors(found.file.name, unused));
      // Text encoders are asked before it, so that all layers have been asked for now.
      if (network !== TEXT) changes.forEach((change) => change.checkUsed());
    },
  });
  const inputs = Object.keys(file.spec.networks[network]?.inputs ?? {});
  return { network: opened.use(made), config: names, inputs };
}

/** Name of the one network of a text encoder. */
const TEXT = "text";

function unusedTensors(file: string, names: readonly string[]): string {
  return `${file}: ${names.length} tensors are not used: ${names.slice(0, 3).join(", ")}`;
}

function refuseAdapters(adapters: readonly unknown[], file: string): void {
  if (adapters.length === 0) return;
  throw new UnsupportedError("adapters are added to weights, not to an ONNX graph", {
    file,
    remedy: "Use the pipeline's safetensors",
  });
}

async function openAutoencoder(at: Opening): Promise<Autoencoder> {
  const { folder, options, opened, warnings } = at;
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
  const file = readNetworkFile(found.file), { device, precision } = options;
  warnings.push(...file.warnings);
  const network = (name: string) =>
    opened.use(openNetwork(file, { device, precision, network: name }));
  return createAutoencoder(file.names, {
    decoder: network("decoder"),
    encoder: network("encoder"),
  });
}

function graphOptions({ device, ...options }: Opening["options"]) {
  const { gpu, threads, excludeKernels, priority, maxSubmitMs } = options;
  return { device: device.backend.name, gpu, threads, excludeKernels, priority, maxSubmitMs };
}

/** Encoders and tokenizers of a rule. @throws {FormatError} If they are not those of the network. */
async function openPromptReaders(
  at: Opening,
  { texts: rule }: PipelineRule,
  config: JsonRecord,
): Promise<PromptReaders> {
  const { folder } = at, { beside, behind } = rule;
  const readers: PromptReader[] = [];
  for (const part of [...beside, ...behind ? [behind.part] : []]) {
    // model_index.json says null of what a folder leaves out.
    const isLeftOut = part === behind?.part && [folder.index[part] ?? null].flat()[0] === null;
    if (isLeftOut) continue;
    const { tokenizer, config: stated } = await folder.texts(
      part.replace("text_encoder", "tokenizer"),
    );
    const length = part === behind?.part ? behind.length : rule.length ?? lengthOf(stated);
    readers.push({ part, tokenizer, length, encoder: await openTextEncoder(at, part) });
  }
  const stated = config.cross_attention_dim ?? config.joint_attention_dim;
  const width = Number(config.caption_channels ?? stated);
  const widths = readers.filter(({ part }) => part !== behind?.part)
    .map(({ encoder }) => encoder?.width);
  const states = widths.reduce<number | undefined>(
    (sum, one) => sum === undefined || one === undefined ? undefined : sum + one,
    0,
  );
  const fits = states === undefined || Number.isNaN(width) ||
    (behind ? states <= width : states === width);
  if (!fits) {
    throw new FormatError(
      `the text encoder gives states of ${states} numbers, and the network takes ${width}`,
      { file: folder.path, remedy: "Its parts are of different models: fetch the folder again" },
    );
  }
  return { rule, readers, width: behind && !Number.isNaN(width) ? width : undefined };
}

function lengthOf({ model_max_length: stated }: JsonRecord): number {
  return typeof stated === "number" && stated < 1e6 ? stated : 77;
}

async function openTextEncoder(at: Opening, part: string): Promise<TextEncoder> {
  let outputs: readonly string[] = [];
  const { network, config, inputs, ...graph } = await openPart(at, {
    ...{ part, network: TEXT },
    wanted: (names) => outputs = names,
  });
  // Optimum counts states through, the one behind the embedding first.
  const states = outputs.filter((name) => name.startsWith("hidden_states."));
  const width = Number(config.hidden_size ?? config.d_model ?? graph.width),
    endId = Number(config.eos_token_id);
  return createTextEncoder(network, {
    ...{ width: Number.isNaN(width) ? undefined : width, inputs },
    endId: Number.isNaN(endId) ? undefined : endId,
    ...states.length > 1 && { before: `hidden_states.${states.length - 2}` },
  });
}
