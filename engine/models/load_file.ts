// What load() does: find the file, plan the model, check memory, read text side and weights, and put the
// parts together. The file is closed when its weights are in memory.

import { closing } from "../byte_source.ts";
import { createRuntime, type Pooling, type Runtime } from "../decode/runtime.ts";
import { fetchModel } from "../formats/hub/pull.ts";
import { openModel } from "./open_model.ts";
import { isOnnxFile } from "../onnx/file/onnx_file.ts";
import type { PictureTower } from "../decode/pictures/tower.ts";
import type { WeightFile } from "../formats/source.ts";
import { elementCount } from "../ops/host_tensor.ts";
import { DeviceError, ResourceError, UnsupportedError } from "../errors.ts";
import { type Executable, prepareExecutable } from "../run/executable.ts";
import type { Backend, DeviceName } from "../run/backend.ts";
import { pagesFor, type StateSizes } from "../run/pages/groups.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import type { Adapter, OpenAdapters } from "./adapters/adapter.ts";
import { openDeviceFor } from "../place/device_for.ts";
import type { Device } from "../run/devices.ts";
import { fingerprintOf } from "../decode/fingerprint.ts";
import { LoadedModel } from "../decode/loaded_model.ts";
import type { Sight } from "../decode/pictures/sight.ts";
import type { OpenedSight } from "./sight/open_sight.ts";
import { checkMemory, type ModelMemory, totalMemory } from "../decode/memory.ts";
import type {
  LoadOptions,
  ModelDescription,
  ModelProgress,
  SourceOptions,
} from "../decode/model.ts";
import { WrongKernelsError } from "../run/wrong_kernels.ts";
import { modelOf, type PreparedNetwork, prepareModel } from "./prepare.ts";
import { readTextParts, type TextParts } from "../text/text_parts.ts";

/** `load`, after its options were checked and its device was opened and, if there is such a thing, warmed. */
export async function loadModel(
  name: string,
  { options, device }: { readonly options: LoadOptions; readonly device: Device },
): Promise<LoadedModel> {
  const path = await fetchModel(name, options);
  const start = performance.now();
  const file = await openModel(path);
  using opened = new DisposableStack();
  opened.use(closing(file));
  const model = await loadOn(file, { name, options, device, start });
  // Streamed weights are read as long as the model is there.
  if (model.memory.streamed) model.use(opened.move());
  return model;
}

/** `inspectModel`, after its options were checked. */
export async function describeModelFile(
  name: string,
  options: LoadOptions,
): Promise<ModelDescription> {
  const device = await openDeviceFor(options);
  const { openForReading } = await import("./open_source.ts");
  const file = await openForReading(name, options);
  using _file = closing(file);
  return await describeFile(file, { options, device });
}

/** What is known of an open model before its weights are read. */
export async function describeFile(
  file: WeightFile,
  { options, device }: { readonly options: LoadOptions; readonly device: Device },
): Promise<ModelDescription> {
  refuseStreaming(options, { file, device });
  if (isOnnxFile(file)) {
    const { prepareDecoder } = await import("../onnx/decoder/prepare.ts");
    const { info, memory, plan } = await prepareDecoder(file, { options, device });
    return { info, memory, plan };
  }
  if (!device.padsSteps) refusePadding(options, file.name);
  const { text, sight } = await seenApart(file, options);
  using _tower = closing(sight?.tower ?? { close: () => {} });
  using adapters = await openAdapters(options.adapters);
  return overMemories(
    await prepareNetwork(text, {
      ...{ options, kernels: device, adapters: adapters.all, sight: sight?.rules },
    }),
    device,
  );
}

async function openAdapters(given: LoadOptions["adapters"] = []): Promise<OpenAdapters> {
  if (given.length === 0) return { all: [], [Symbol.dispose]: () => {} };
  return await (await import("./adapters/adapter.ts")).openAdapters(given);
}

/**
 * The description with the memories that the device would take. What does not fit is told, not thrown, with the least that
 * the model takes.
 */
function overMemories(
  { info, memory, plan }: PreparedNetwork,
  { backend }: Device,
): ModelDescription {
  try {
    const streamed = streamedMemory({ memory, plan }, backend);
    if (streamed) return { info, memory: streamed, plan };
    const memories = backend.memories?.(plan, sizesOf({ memory, plan })) ?? [];
    if (memories.length < 2) return { info, memory, plan };
    const total = memories.reduce((sum, bytes) => sum + bytes, 0);
    return { info, memory: { ...memory, memories, total }, plan };
  } catch (error) {
    if (!(error instanceof ResourceError)) throw error;
    const least = streamedMemory({ memory, plan }, backend, { least: true }) ?? memory;
    return { info: { ...info, warnings: [...info.warnings, error.message] }, memory: least, plan };
  }
}

function sizesOf({ memory, plan }: Pick<PreparedNetwork, "memory" | "plan">): StateSizes {
  const { sessions: slots, cacheTokens: tokens } = memory;
  return { slots, pages: pagesFor(plan, { slots, tokens }) };
}

/** The memory of a model whose weights are streamed; undefined if they are held whole. */
function streamedMemory(
  planned: Pick<PreparedNetwork, "memory" | "plan">,
  { streams }: Backend,
  how = { least: false },
): ModelMemory | undefined {
  const stream = streams?.(planned.plan, sizesOf(planned), how);
  return stream && totalMemory({ ...planned.memory, ...stream });
}

/** @throws {UnsupportedError} If streaming is asked for and not to be had. */
function refuseStreaming(
  { stream, placement }: LoadOptions,
  { file, device: { backend } }: { readonly file: WeightFile; readonly device: Device },
): void {
  if (!stream || backend.streams && !isOnnxFile(file)) return;
  const where = placement === undefined ? `on device ${backend.name}` : "with a placement";
  const what = backend.streams ? "of ONNX models" : where;
  throw new UnsupportedError(`weights ${what} are not streamed`, {
    file: file.name,
    remedy: "Leave option stream out",
  });
}

/** `loadTokenizer`. */
export async function loadModelTokenizer(name: string, options: SourceOptions): Promise<Tokenizer> {
  const file = await openModel(await fetchModel(name, options));
  using _file = closing(file);
  return (await readTextParts(file, { template: null })).tokenizer();
}

/** What a device says of a model that another may well run. */
const CANNOT_RUN = [DeviceError, ResourceError, UnsupportedError];

/** Loads on the device that was chosen, or on the one behind it. */
async function loadOn(file: WeightFile, input: LoadInput): Promise<LoadedModel> {
  try {
    return await loadFile(file, input);
  } catch (error) {
    if (error instanceof WrongKernelsError) return await loadWithout(file, { input, error });
    const { fallback } = input.device;
    if (!fallback || !CANNOT_RUN.some((kind) => error instanceof kind)) throw error;
    const device = await fallback((error as Error).message);
    return await loadFile(file, { ...input, device });
  }
}

/** Loads with a graph that needs none of some kernels, or where there are others. */
async function loadWithout(
  file: WeightFile,
  { input, error }: { readonly input: LoadInput; readonly error: WrongKernelsError },
): Promise<LoadedModel> {
  const known = input.options.excludeKernels ?? [];
  const options = { ...input.options, excludeKernels: [...known, ...error.kernels] };
  const note = `${error.message.split(".")[0]}: `;
  const { openDevice } = await import("../run/devices.ts");
  try {
    const device = { ...await openDevice("gpu", options), note: `${note}others are used` };
    return await loadFile(file, { ...input, options, device });
  } catch (again) {
    if (!CANNOT_RUN.some((kind) => again instanceof kind)) throw again;
    const device = await openDevice("wasm", input.options);
    const own = { ...device, note: `${note}the model is computed on the CPU` };
    return await loadFile(file, { ...input, device: own });
  }
}

interface LoadInput {
  readonly name: string;
  readonly options: LoadOptions;
  readonly device: Device;
  readonly start: number;
}

async function loadFile(file: WeightFile, input: LoadInput): Promise<LoadedModel> {
  const { options, device } = input;
  refuseStreaming(options, { file, device });
  if (isOnnxFile(file)) {
    const { loadDecoder } = await import("../onnx/decoder/load.ts");
    const onProgress = options.onProgress && loadProgress(file.name, options.onProgress);
    return await loadDecoder(file, { ...input, onProgress });
  }
  if (!device.padsSteps) refusePadding(options, file.name);
  const { text, sight } = await seenApart(file, options);
  return await loadTokens(text, { ...input, sight });
}

/** The file of the language model, and of one that sees what looks at pictures. */
async function seenApart(
  file: WeightFile,
  options: LoadOptions,
): Promise<{ readonly text: WeightFile; readonly sight?: OpenedSight | undefined }> {
  if (!file.metadata.has("vision_config") && options.mmproj === undefined) return { text: file };
  const { openSight } = await import("./sight/open_sight.ts");
  return await openSight(file, options);
}

/** Loads what reads and writes tokens, and what looks at pictures for it. */
async function loadTokens(
  file: WeightFile,
  input: LoadInput & { readonly sight: OpenedSight | undefined },
): Promise<LoadedModel> {
  const { options, device, sight: opened } = input;
  using files = new DisposableStack();
  if (opened) files.use(closing(opened.tower));
  const { backend } = device;
  // Not from the length of the file, before it is opened: that loads more slowly.
  await backend.expect?.(leastWeightBytes(file));
  const adapters = files.use(await openAdapters(options.adapters));
  const prepared = await prepareNetwork(file, {
    options,
    kernels: device,
    adapters: adapters.all,
    onGraph: async (graph) => await backend.preload?.(graph),
    sight: opened?.rules,
  });
  const seeing = opened && await planSeeing(opened, prepared, options);
  // What a GPU has is not known before it is asked for.
  if (device.inHostMemory) {
    checkMemory(streamedMemory(prepared, backend) ?? prepared.memory, { file: file.name });
  }
  let reading: Promise<TextParts> | undefined;
  const readText = () =>
    reading ??= readTextParts(file, {
      template: options.chatTemplate,
      tokenization: modelOf(prepared)?.tokenization,
    });
  // Before weights are read where that is this thread's work, while others read them where it is not.
  if (!device.loadsAside) await readText();
  const { signal, onProgress } = options;
  const executable = await prepareExecutable(device.backend, {
    plan: prepared.plan,
    slots: prepared.limits.sessions,
    cacheTokens: prepared.limits.cacheTokens,
    pictures: seeing?.table,
    ...prepared.limits.precision === "strict" && { rowByRow: true },
    ...signal && { signal },
    ...onProgress && { onProgress: loadProgress(file.name, onProgress) },
    meanwhile: async () => void await readText(),
  });
  using unfinished = new DisposableStack();
  unfinished.defer(() => executable.dispose());
  const text = await readText();
  const sight = seeing && await seeing.load(text.tokenizer(), device.backend.name);
  if (sight) unfinished.defer(() => sight.dispose());
  const parts = { ...input, file, prepared, text, executable, adapters: adapters.all };
  const pictures = await loadPictures(file, { input, prepared });
  if (pictures) unfinished.use(pictures);
  const model = await finish({
    ...{ ...parts, pictures, sight },
    warnings: seeing?.planned.warnings,
  });
  if (pictures) model.use(pictures);
  if (model.memory.streamed) model.use(files.move());
  unfinished.move();
  return model;
}

/** The encoder of pictures that lies in the file of an encoder of texts. */
async function loadPictures(
  file: WeightFile,
  { input, prepared }: { readonly input: LoadInput; readonly prepared: PreparedNetwork },
): Promise<LoadedModel | undefined> {
  const { spec: { pictures } = {}, parts } = modelOf(prepared) ?? {};
  if (!pictures || !parts || !file.metadata.has(pictures.section)) return undefined;
  const { sectionOf } = await import("./section.ts");
  const { adapters: _of, spec: _texts, ...options } = input.options;
  const model = await loadFile(sectionOf(file, pictures), { ...input, options });
  const { matchRule } = await import("./load_pictures.ts");
  const match = pictures.match && await matchRule(parts, pictures.match);
  const tower = { ...model.runtime.tower!, match };
  return new LoadedModel({ ...model.runtime, tower }, model);
}

/** The tower of a language model, and the pictures that it has looked at. */
async function planSeeing(
  opened: OpenedSight,
  { params: { hidden }, limits: { batch } }: PreparedNetwork,
  options: LoadOptions,
) {
  const { checkMarks, createSight, loadTower, planSight } = await import("./sight/open_sight.ts");
  const { PictureTable } = await import("../decode/pictures/picture_table.ts");
  const planned = planSight(opened, { hidden, batch, options }), table = new PictureTable(hidden);
  return {
    ...{ table, planned },
    async load(tokenizer: Tokenizer, device: DeviceName): Promise<Sight> {
      checkMarks(planned, tokenizer);
      const tower = await loadTower(planned, { device, options });
      return createSight(planned, { tower, table, tokenizer });
    },
  };
}

/** Plans what a file holds: a model of a spec, or a network of convolutions. */
async function prepareNetwork(
  file: WeightFile,
  given: Parameters<typeof prepareModel>[1],
): Promise<PreparedNetwork> {
  if (given.options.spec === undefined && isConvolutional(file)) {
    const { convSpecOf } = await import("./convolutions/specs/mod.ts");
    const { prepareConvolutions } = await import("./convolutions/prepare_convolutions.ts");
    const spec = convSpecOf(file);
    if (spec) return await prepareConvolutions(file, { ...given, spec });
  }
  return await prepareModel(file, given);
}

/** Whether the weights of a folder may be those of convolutions: without it, no code of these is read. */
function isConvolutional({ metadata }: WeightFile): boolean {
  return metadata.has("hidden_sizes") || metadata.has("depths");
}

/** Bytes that weights take at least: a device may round floats to 8 bit. */
function leastWeightBytes({ tensors }: WeightFile): number {
  let bytes = 0;
  for (const { byteLength, shape } of tensors.values()) {
    bytes += Math.min(byteLength, elementCount(shape));
  }
  return bytes;
}

/** How a decoder that gives out vectors makes one of a text. */
async function decoderPooling(file: WeightFile): Promise<Pooling> {
  // The last row of a decoder has seen all of the text.
  return await (await import("./network_facts.ts")).poolingOf(file, "last");
}

/** @throws {UnsupportedError} If `padTo` is given for a model that has no use for it. */
function refusePadding({ padTo }: LoadOptions, file: string): void {
  if (padTo === undefined) return;
  throw new UnsupportedError("option padTo is for ONNX models and for device gpu", {
    file,
    remedy: "Leave it out",
  });
}

async function finish(
  { name, device, start, file, prepared, text, executable, adapters, ...seen }: LoadInput & {
    readonly file: WeightFile;
    readonly prepared: PreparedNetwork;
    readonly text: TextParts;
    readonly executable: Executable;
    readonly adapters: readonly Adapter[];
    /** What lies in the same file. */
    readonly pictures: LoadedModel | undefined;
    /** How it looks at pictures, and what is to be said of that. */
    readonly sight: Sight | undefined;
    readonly warnings: readonly string[] | undefined;
  },
): Promise<LoadedModel> {
  const { info, limits, params, plan } = prepared, built = modelOf(prepared);
  const { network } = info, { pictures, sight } = seen;
  const facts = network === "decoder" ? undefined : await import("./network_facts.ts");
  const runtime = createRuntime({
    name,
    network,
    encoder: network === "encoder" ? await facts?.encoderFacts(file, built!) : undefined,
    source: network === "encoder-decoder" ? await facts?.sourceMemory(file, built!) : undefined,
    pooling: network === "decoder" && limits.embeddings ? await decoderPooling(file) : undefined,
    executable,
    sight,
    limits,
    start,
    vocabulary: params.vocabulary,
    hidden: limits.embeddings ? params.hidden : 0,
    adapters: adapters.map(({ name, scale, pairs }) => ({ name, scale, matrices: pairs.size })),
    fingerprint: await fingerprintOf(
      plan.graph,
      [file, ...adapters.map((adapter) => adapter.file)].flatMap(({ tensors }) => [
        ...tensors.values(),
      ]),
      limits,
    ),
    tokenizer: text.tokenizer,
    chatTemplate: text.chatTemplate,
  });
  const looking = pictures
    ? withTower(runtime, pictures)
    : network === "picture"
    ? { ...runtime, tower: await openedTower(prepared, runtime) }
    : runtime;
  const notes = [
    ...executable.notes ?? [],
    ...device.note ? [device.note] : [],
    ...info.rounded > 0 ? [roundingNote(info.rounded)] : [],
  ];
  const warnings = [...info.warnings, ...text.warnings, ...seen.warnings ?? []];
  return new LoadedModel(looking, {
    info: { ...info, warnings },
    device: device.backend.name,
    notes,
  });
}

async function openedTower(prepared: PreparedNetwork, runtime: Runtime): Promise<PictureTower> {
  if (prepared.tower) return await prepared.tower(runtime);
  return await (await import("./load_pictures.ts")).towerOf(modelOf(prepared)!, runtime);
}

/** An encoder of texts with that of pictures, in whose memory both are. */
function withTower(runtime: Runtime, { runtime: { tower }, memory }: LoadedModel): Runtime {
  const { weights, activations, other } = runtime.memory;
  return {
    ...runtime,
    tower,
    memory: totalMemory({
      ...runtime.memory,
      weights: weights + memory.weights,
      activations: activations + memory.activations,
      other: other + memory.other,
    }),
  };
}

function roundingNote(count: number): string {
  const what = count === 1 ? "one float matrix was" : `${count} float matrices were`;
  return `${what} rounded to 7 bit; load with precision "exact" to keep the floats`;
}

function loadProgress(file: string, report: (progress: ModelProgress) => void) {
  const start = performance.now();
  return ({ loadedBytes, totalBytes }: { loadedBytes: number; totalBytes: number }) => {
    const seconds = (performance.now() - start) / 1000;
    const bytesPerSecond = seconds > 0 ? loadedBytes / seconds : 0;
    report({ phase: "load", file, received: loadedBytes, total: totalBytes, bytesPerSecond });
  };
}
