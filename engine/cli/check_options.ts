// Options of an answer, checked before a model is fetched or read: a mistyped sampler must not cost a
// download first. The generation checks them again together with the tokenizer, which is not here yet.

import type { ChatOptions } from "../decode/chat.ts";
import { resolveGenerateOptions } from "../decode/generate_options.ts";
import { resolveOptions } from "../decode/sampling/options.ts";

/** @throws {RangeError | TypeError} Naming the option, its value and what is allowed. */
export function checkOptions({ thinking: _, onContextFull: rule, ...options }: ChatOptions): void {
  const onContextFull = rule === "drop" ? undefined : rule;
  resolveOptions(
    resolveGenerateOptions({ ...options, ...onContextFull && { onContextFull } }).sampler,
  );
}
