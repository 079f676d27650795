// Flags that several commands share, and what they mean for `load` and `generate`. Names are those of
// other engines where there is a custom.

import type { ChatOptions } from "../decode/chat.ts";
import type { AdapterOptions, LoadOptions } from "../decode/model.ts";
import { pathKind, readTextNow } from "../io.ts";
import type { ChatMessage } from "../text/chat_template.ts";
import type { PlacementJson } from "../place/rules.ts";
import type { PriorityOptions } from "../run/pacer.ts";
import { type Flags, type ParsedLine, UsageError } from "./args.ts";

/** Where models are kept. */
export const CACHE_FLAGS = {
  "cache-dir": { type: "string", value: "DIR", help: "folder of the model cache (TROODON_CACHE)" },
} as const satisfies Flags;

/** Where models come from. */
export const SOURCE_FLAGS = {
  ...CACHE_FLAGS,
  endpoint: { type: "string", value: "URL", help: "server behind hf: (HF_ENDPOINT)" },
  offline: { type: "boolean", help: "use only what is in the cache" },
} as const satisfies Flags;

/** Where parts of a model are computed. */
export const PLACEMENT_FLAGS = {
  placement: {
    type: "string",
    value: "P",
    help:
      "several devices: 0;1 by layers, 0&1 by heads, 0&1;2&3 both, wasm=8;gpu by name; cpu, gpu, llamaf, auto; " +
      "or JSON, or a .json file",
  },
  devices: { type: "string", value: "NAME,…", help: "what the numbers of --placement mean (GPUs)" },
  "gpu-layers": { type: "integer", value: "N", min: 0, help: "the last N layers on the GPU" },
  "max-device-bytes": {
    type: "integer",
    value: "N",
    min: 1,
    help: "most memory on each GPU; with placement auto, as many layers as fit",
  },
  "host-embeddings": { type: "boolean", help: "look up embeddings on the CPU" },
  "host-kv-percent": {
    type: "integer",
    value: "N",
    min: 0,
    max: 100,
    help: "share of a GPU's last layers whose keys and values lie on the CPU (0)",
  },
} as const satisfies Flags;

/** Options of placements from the flags given. */
export function placementOptions(flags: ParsedLine<typeof PLACEMENT_FLAGS>["flags"]): LoadOptions {
  return {
    ...flags.placement !== undefined && { placement: readPlacement(flags.placement) },
    ...flags.devices !== undefined &&
      { devices: flags.devices.split(",").map((one) => one.trim()) },
    ...flags["gpu-layers"] !== undefined && { gpuLayers: flags["gpu-layers"] },
    ...flags["max-device-bytes"] !== undefined && { maxDeviceBytes: flags["max-device-bytes"] },
    ...flags["host-embeddings"] && { hostEmbeddings: true },
    ...flags["host-kv-percent"] !== undefined && { hostKvPercent: flags["host-kv-percent"] },
  };
}

/** A placement as text, or its JSON form, or a file that holds it. */
function readPlacement(text: string): NonNullable<LoadOptions["placement"]> {
  const json = text.endsWith(".json") ? readTextNow(text) : text;
  if (!json.trimStart().startsWith("{")) return text;
  try {
    return JSON.parse(json) as PlacementJson;
  } catch (error) {
    throw new UsageError(`--placement is no JSON: ${(error as Error).message}`);
  }
}

/** How a model is made ready. */
export const LOAD_FLAGS = {
  ...SOURCE_FLAGS,
  device: {
    type: "string",
    choices: ["auto", "wasm", "gpu", "reference"],
    help: "where to compute (auto)",
  },
  gpu: {
    type: "string",
    value: "built-in|dawn|FILE",
    help: "whose WebGPU: Deno's, Dawn of npm's webgpu, or a dawn.node (built-in)",
  },
  ...PLACEMENT_FLAGS,
  threads: { type: "integer", min: 1, max: 256, help: "CPU threads (all)" },
  precision: {
    type: "string",
    choices: ["fast", "exact", "strict"],
    help:
      "fast: 8-bit activations, an encoder's float matrices in 7 bit; exact: float32 throughout; strict: " +
      "exact, but LF8 as LlamaF adds it up, and on a GPU each row as if it were alone (fast)",
  },
  context: { type: "integer", value: "N", min: 1, help: "most tokens of prompt and answer" },
  "pad-to": {
    type: "integer",
    value: "1|64|128",
    min: 1,
    max: 128,
    help: "positions to which the past of an ONNX model (64), or sizes on a GPU, are padded",
  },
  "steps-ahead": {
    type: "integer",
    value: "N",
    min: 0,
    max: 64,
    help: "greedy steps that a GPU computes before they are read (8)",
  },
  "max-submit-ms": {
    type: "number",
    value: "MS",
    min: 0.01,
    help: "compute in pieces of at most so many milliseconds, beside a user interface (e.g. 8)",
  },
  "kv-format": {
    type: "string",
    choices: ["F16", "F32", "Q8_0"],
    help: "numbers of keys and values (F16; F32 with --precision exact); Q8_0 halves their memory",
  },
  stream: {
    type: "string",
    value: "1|2",
    choices: ["1", "2"],
    help: "hold the weights of so many layers and read the others while these compute",
  },
  "max-host-bytes": {
    type: "integer",
    value: "N",
    min: 2 ** 20,
    help: "most memory for the model; streams its weights where it needs more",
  },
  "spec-file": {
    type: "string",
    value: "FILE",
    help: "spec to build the model by, ours or Inferflow's model_spec.json",
  },
  mmproj: {
    type: "string",
    value: "FILE",
    help: "of GGUF models that see: the file that looks at pictures",
  },
  lora: {
    type: "string",
    value: "PATH[:SCALE]",
    multiple: true,
    help: "adapter to apply, a GGUF file or a PEFT folder (may be repeated)",
  },
} as const satisfies Flags;

/** How many answers a model writes at once. */
export const SESSION_FLAGS = {
  sessions: {
    type: "integer",
    min: 1,
    max: 1024,
    value: "N",
    help: "answers of a model at once (16)",
  },
  "cache-tokens": {
    type: "integer",
    min: 64,
    value: "N",
    help: "tokens that the caches of a model's answers hold together (by --sessions and --context)",
  },
} as const satisfies Flags;

/** Options for `load` from those flags. */
export function sessionOptions(flags: ParsedLine<typeof SESSION_FLAGS>["flags"]): LoadOptions {
  return {
    ...flags.sessions !== undefined && { sessions: flags.sessions },
    ...flags["cache-tokens"] !== undefined && { cacheTokens: flags["cache-tokens"] },
  };
}

/** Pictures beside a text. */
export const IMAGE_FLAGS = {
  image: {
    type: "string",
    short: "i",
    value: "FILE",
    multiple: true,
    help: "picture to look at, of models that see (may be repeated): a path or an address",
  },
} as const satisfies Flags;

/** @throws {UsageError} If a picture is a path to nothing; `name` is what gave it. */
export function checkImages(images: readonly string[] = [], name = "--image"): void {
  const missing = images.find((image) =>
    !/^(https?|data|file):/.test(image) && pathKind(image) === undefined
  );
  if (missing !== undefined) throw new UsageError(`${name} ${missing}: no such file`);
}

/** A user's content: a text, with pictures in front of it where there are some. */
export function contentWith(
  images: readonly string[],
  text: string,
): NonNullable<ChatMessage["content"]> {
  if (images.length === 0) return text;
  return [...images.map((image) => ({ type: "image", image })), { type: "text", text }];
}

/** When an answer ends. */
export const LIMIT_FLAGS = {
  "max-tokens": {
    ...{ type: "integer", value: "N", min: 0, short: "n" },
    help: "most tokens of an answer",
  },
  stop: { type: "string", multiple: true, help: "stop before this text (may be repeated)" },
  special: { type: "boolean", help: "control tokens in the prompt's text count as such" },
  "ignore-eos": { type: "boolean", help: "go on after the end-of-text token" },
  "context-full": {
    type: "string",
    choices: ["drop", "error", "stop", "slide"],
    help:
      "when the context is full: leave the oldest turns of a chat out (its default), fail (the default " +
      "without a chat), end the answer, or drop the oldest tokens",
  },
} as const satisfies Flags;

/** What is told of an answer's tokens. */
export const LOGPROBS_FLAGS = {
  logprobs: {
    ...{ type: "integer", min: 0, max: 100 },
    help: "probabilities of the answer's tokens, and the best N at each",
  },
} as const satisfies Flags;

/** Limits of an answer for `generate` from the flags given; `maxTokens` where none is given. */
export function limitOptions(
  flags: ParsedLine<typeof LIMIT_FLAGS>["flags"],
  maxTokens: number,
): ChatOptions {
  return {
    maxTokens: flags["max-tokens"] ?? maxTokens,
    ...flags.stop && { stop: flags.stop },
    ...flags.special && { special: true },
    ...flags["ignore-eos"] && { ignoreEos: true },
    ...flags["context-full"] && { onContextFull: flags["context-full"] },
  };
}

/** `path/to/adapter` or `path/to/adapter:0.5`. */
export function parseAdapter(text: string): AdapterOptions {
  const [, path, scale] = /^(.+?)(?::(-?(?:\d+\.?\d*|\.\d+)))?$/.exec(text) ?? [];
  if (path === undefined) throw new UsageError(`--lora takes PATH or PATH:SCALE: got "${text}"`);
  return { path, ...scale !== undefined && { scale: Number(scale) } };
}

/** How urgent the work is, from the flag. */
export function paceOption(
  { "max-submit-ms": maxSubmitMs }: { readonly "max-submit-ms"?: number | undefined },
): PriorityOptions {
  return maxSubmitMs === undefined ? {} : { priority: "low", maxSubmitMs };
}

/** Options for `load` from the flags given. */
export function loadOptions(flags: ParsedLine<typeof LOAD_FLAGS>["flags"]): LoadOptions {
  return {
    ...flags.device && { device: flags.device },
    ...placementOptions(flags),
    ...flags.threads && { threads: flags.threads },
    ...flags.precision && { precision: flags.precision },
    ...flags.context && { contextLength: flags.context },
    ...flags["pad-to"] && { padTo: flags["pad-to"] as 1 | 64 | 128 },
    ...flags["steps-ahead"] !== undefined && { stepsAhead: flags["steps-ahead"] },
    ...paceOption(flags),
    ...flags["kv-format"] && { kvFormat: flags["kv-format"] },
    ...flags.stream && { stream: { depth: Number(flags.stream) as 1 | 2 } },
    ...flags["max-host-bytes"] && { maxHostBytes: flags["max-host-bytes"] },
    ...flags.mmproj !== undefined && { mmproj: flags.mmproj },
    ...flags.lora && { adapters: flags.lora.map(parseAdapter) },
    ...flags["cache-dir"] && { cacheDir: flags["cache-dir"] },
    ...flags.endpoint && { endpoint: flags.endpoint },
    ...flags.offline && { offline: true },
  };
}
