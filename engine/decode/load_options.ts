// Options of load(), checked and completed. A wrong value is a RangeError that names the option; an option
// that contradicts another is never quietly dropped.

import { SOURCE_KEYS } from "../formats/hub/source_keys.ts";
import { deviceNames, PRESETS } from "../place/device_name.ts";
import type { KvFormat } from "../run/backend.ts";
import { checkDevice, factsOf } from "../run/device_facts.ts";
import { paceOf } from "../run/pacer.ts";
import { PAGE_ROWS } from "../run/pages/groups.ts";
import type { LoadOptions, Precision, StreamingOptions } from "./model.ts";
import { checkOptionKeys, type OptionKeys } from "../option_keys.ts";

/** Options with every default filled in. */
export interface ResolvedLimits {
  readonly precision: Precision;
  readonly contextLength: number;
  readonly sessions: number;
  /** Rows of the caches of all sessions together. */
  readonly cacheTokens: number;
  readonly batch: number;
  readonly logitRows: number;
  readonly kvFormat: KvFormat;
  readonly embeddings: boolean;
}

const DEFAULT_CONTEXT = 4096;
const DEFAULT_BATCH = 256;
/** As many tokens as a draft is checked in at once (speculate/). */
const DRAFT_ROWS = 16;
const DEFAULT_SESSIONS = 16;
const ENCODER_BATCH = 512;
const ENCODER_LOGIT_ROWS = 32;

const LOAD_KEYS: OptionKeys<LoadOptions> = {
  device: true,
  gpu: true,
  stepsAhead: true,
  debug: true,
  priority: true,
  maxSubmitMs: true,
  threads: true,
  precision: true,
  contextLength: true,
  sessions: true,
  cacheTokens: true,
  batch: true,
  logitRows: true,
  padTo: true,
  kvFormat: true,
  memoryBytes: true,
  stream: true,
  maxHostBytes: true,
  adapters: true,
  kvHeads: true,
  chatTemplate: true,
  excludeKernels: true,
  selfTest: true,
  spec: true,
  pictures: true,
  mmproj: true,
  pictureRows: true,
  embeddings: true,
  words: true,
  placement: true,
  devices: true,
  gpuLayers: true,
  maxDeviceBytes: true,
  hostEmbeddings: true,
  hostKvPercent: true,
  lanes: true,
  peerKey: true,
  ...SOURCE_KEYS,
};

/**
 * Checks what can be checked before a file is opened.
 *
 * @throws {RangeError} Naming the option, its value and what is allowed, or one that there is not.
 */
export function checkLoadOptions(options: LoadOptions): void {
  checkOptionKeys(options, { of: "load()", known: LOAD_KEYS });
  checkDevice(options);
  oneOf({ precision: options.precision }, ["fast", "exact", "strict"]);
  oneOf({ kvFormat: options.kvFormat }, ["F16", "F32", "Q8_0"]);
  count("contextLength", { value: options.contextLength, max: 2 ** 24 });
  count("sessions", { value: options.sessions, max: 1024 });
  count("cacheTokens", { value: options.cacheTokens, max: 2 ** 28, min: PAGE_ROWS });
  count("batch", { value: options.batch, max: 4096 });
  count("logitRows", { value: options.logitRows, max: 4096 });
  count("memoryBytes", { value: options.memoryBytes, max: 2 ** 32, min: 2 ** 20 });
  count("maxHostBytes", { value: options.maxHostBytes, max: 2 ** 50, min: 2 ** 20 });
  checkStream(options.stream);
  count("pictureRows", { value: options.pictureRows, max: 2 ** 16 });
  count("kvHeads", { value: options.kvHeads, max: 2 ** 16 });
  if (options.padTo !== undefined && ![1, 64, 128].includes(options.padTo)) {
    throw new RangeError(`Cannot use padTo ${options.padTo}: it is one of 1, 64, 128`);
  }
  count("stepsAhead", { value: options.stepsAhead, max: 64, min: 0 });
  paceOf(options);
  count("gpuLayers", { value: options.gpuLayers, max: 2 ** 16, min: 0 });
  count("maxDeviceBytes", { value: options.maxDeviceBytes, max: 2 ** 53 });
  count("hostKvPercent", { value: options.hostKvPercent, max: 100, min: 0 });
  count("lanes", { value: options.lanes, max: 64 });
  const { placement } = options;
  if (!["undefined", "string", "object"].includes(typeof placement)) {
    throw new TypeError("Cannot use placement: it must be a text or an object");
  }
  if (placement !== undefined && options.gpuLayers !== undefined) {
    throw new RangeError("Cannot use gpuLayers beside placement: each says where layers are");
  }
  if (options.gpuLayers && ["wasm", "reference"].includes(options.device ?? "auto")) {
    throw new RangeError(
      `Cannot use gpuLayers ${options.gpuLayers} with device "${options.device}": they are on the GPU`,
    );
  }
  if (options.devices !== undefined && placement === undefined) {
    throw new RangeError("Cannot use devices without placement: they are what its numbers mean");
  }
  if (typeof placement === "string" && !PRESETS.has(placement)) deviceNames(placement, options);
  if (options.debug && !factsOf(options.device)?.debugs) {
    throw new RangeError('Cannot use debug without device "gpu": it checks the steps of a GPU');
  }
}

const STREAM_KEYS: OptionKeys<StreamingOptions> = {
  depth: true,
  loaders: true,
  bytesPerSecond: true,
  expertCacheBytes: true,
};

function checkStream(stream: LoadOptions["stream"]): void {
  if (stream === undefined || typeof stream === "boolean") return;
  checkOptionKeys(stream, { of: "stream", known: STREAM_KEYS });
  count("stream.depth", { value: stream.depth, max: 2 });
  count("stream.loaders", { value: stream.loaders, max: 16, min: 0 });
  count("stream.bytesPerSecond", { value: stream.bytesPerSecond, max: 2 ** 40 });
  count("stream.expertCacheBytes", { value: stream.expertCacheBytes, max: 2 ** 50, min: 0 });
}

/**
 * Completes options for a model.
 *
 * @throws {RangeError} If the context is longer than the model was trained for.
 */
export function resolveLimits(
  options: LoadOptions,
  params: { readonly context: number },
): ResolvedLimits {
  const { precision = "fast", sessions = 1, embeddings = false } = options;
  const contextLength = options.contextLength ?? Math.min(params.context, DEFAULT_CONTEXT);
  if (contextLength > params.context) {
    throw new RangeError(
      `Cannot use contextLength ${contextLength}: the model was trained for ${params.context}`,
    );
  }
  const batch = Math.min(options.batch ?? DEFAULT_BATCH, contextLength);
  return {
    precision,
    contextLength,
    sessions,
    cacheTokens: options.cacheTokens ?? wholePages(contextLength) * (options.sessions ?? 1),
    batch,
    logitRows: Math.min(options.logitRows ?? Math.max(sessions, DRAFT_ROWS), batch),
    kvFormat: options.kvFormat ?? (precision === "fast" ? "F16" : "F32"),
    embeddings,
  };
}

/**
 * Completes options for a decoder: its sessions share one pool of pages, so places for more cost nothing.
 *
 * @throws {RangeError} As `resolveLimits`.
 */
export function resolveDecoderLimits(
  options: LoadOptions,
  params: { readonly context: number },
): ResolvedLimits {
  const limits = resolveLimits(options, params);
  if (options.sessions !== undefined) return limits;
  // Short contexts are for many queries, long ones for one that is long.
  const all = DEFAULT_SESSIONS * limits.cacheTokens;
  const cacheTokens = Math.max(limits.cacheTokens, Math.min(all, DEFAULT_CONTEXT));
  return { ...limits, sessions: DEFAULT_SESSIONS, cacheTokens: options.cacheTokens ?? cacheTokens };
}

/**
 * Completes options for an encoder, which takes whole sequences, as many as fit, in a step.
 *
 * @throws {RangeError} As `resolveLimits`, and if a step cannot hold a sequence.
 */
export function resolveEncoderLimits(
  options: LoadOptions,
  params: { readonly context: number },
): ResolvedLimits {
  const limits = resolveLimits(options, params);
  const batch = options.batch ?? Math.max(ENCODER_BATCH, limits.contextLength);
  if (batch < limits.contextLength) {
    throw new RangeError(
      `Cannot use batch ${batch}: an encoder takes whole sequences, of up to contextLength ${limits.contextLength}`,
    );
  }
  return { ...limits, batch, logitRows: options.logitRows ?? ENCODER_LOGIT_ROWS, embeddings: true };
}

/** Rows of pictures that a step takes, if those are small. */
const PICTURE_BATCH = 512;

/** Completes options for an encoder of pictures: as many whole ones as `batch` holds, at least one. */
export function resolvePictureLimits(
  options: LoadOptions,
  { context }: { readonly context: number },
): ResolvedLimits {
  const pictures = Math.max(1, Math.floor((options.batch ?? PICTURE_BATCH) / context));
  const { precision = "fast" } = options;
  const batch = pictures * context;
  return {
    ...{ precision, contextLength: context, sessions: 1, cacheTokens: PAGE_ROWS, batch },
    ...{ logitRows: pictures, kvFormat: "F16", embeddings: true },
  };
}

/** A session's rows, rounded up to whole pages. */
function wholePages(rows: number): number {
  return Math.ceil(rows / PAGE_ROWS) * PAGE_ROWS;
}

/** @throws {RangeError} If an option that is given is none of what is allowed. */
export function oneOf(
  options: Readonly<Record<string, string | undefined>>,
  allowed: readonly string[],
): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || allowed.includes(value)) continue;
    throw new RangeError(`Cannot use ${name} "${value}": it is one of ${allowed.join(", ")}`);
  }
}

function count(
  name: string,
  { value, max, min = 1 }: {
    readonly value: number | undefined;
    readonly max: number;
    readonly min?: number | undefined;
  },
): void {
  if (value === undefined || (Number.isInteger(value) && value >= min && value <= max)) return;
  throw new RangeError(`Cannot use ${name} ${value}: it is an integer from ${min} to ${max}`);
}
