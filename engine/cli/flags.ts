// Flags that several commands share, and what they mean for `load` and `generate`. Names are those of
// other engines where there is a custom.

import type { Flags } from "./args.ts";

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

/** How a model is made ready. */
export const LOAD_FLAGS = {
  ...SOURCE_FLAGS,
  device: {
    type: "string",
    choices: ["auto", "wasm", "gpu", "reference"],
    help: "where to compute (auto)",
  },
  threads: { type: "integer", min: 1, max: 256, help: "CPU threads (all)" },
  precision: {
    type: "string",
    choices: ["fast", "exact"],
    help: "fast: 8-bit activations where a kernel has them; exact: float32 throughout (fast)",
  },
  context: { type: "integer", value: "N", min: 1, help: "most tokens of prompt and answer" },
} as const satisfies Flags;

/** How tokens are chosen. */
export const SAMPLER_FLAGS = {
  greedy: { type: "boolean", help: "always the most probable token" },
  temperature: { type: "number", min: 0, help: "flattens (>1) or sharpens (<1); 0 is greedy" },
  "top-k": { type: "integer", min: 0, help: "only the K most probable tokens (0: all)" },
  "top-p": { type: "number", min: 0, max: 1, help: "only the most probable tokens up to this sum" },
  "min-p": {
    type: "number",
    min: 0,
    max: 1,
    help: "only tokens this part of the best one's probability",
  },
  "repeat-penalty": { type: "number", min: 0, help: "makes tokens of the recent text less likely" },
  "frequency-penalty": { type: "number", help: "lowers tokens by how often they were generated" },
  "presence-penalty": { type: "number", help: "lowers tokens that were generated at all" },
  samplers: {
    type: "string",
    value: "JSON",
    help: "the whole chain: a JSON array of steps, or an object of sampler parameters",
  },
  seed: { type: "integer", min: 0, help: "same seed, same answer" },
} as const satisfies Flags;

/** When an answer ends. */
export const LIMIT_FLAGS = {
  "max-tokens": { type: "integer", value: "N", min: 0, help: "most tokens of an answer" },
  stop: { type: "string", multiple: true, help: "stop before this text (may be repeated)" },
  "ignore-eos": { type: "boolean", help: "go on after the end-of-text token" },
  slide: {
    type: "boolean",
    help: "when the context is full drop the oldest tokens instead of failing",
  },
} as const satisfies Flags;
