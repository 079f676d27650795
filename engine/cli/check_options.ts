// Options checked before a model is fetched or read: a mistyped sampler must not cost a download first. The engine checks
// them again, an answer's together with the tokenizer, which is not here yet.

import type { ChatOptions } from "../decode/chat.ts";
import { resolveGenerateOptions } from "../decode/generate_options.ts";
import { checkLoadOptions } from "../decode/load_options.ts";
import type { LoadOptions } from "../decode/model.ts";
import { resolveOptions } from "../decode/sampling/options.ts";
import { UsageError } from "./args.ts";

/** @throws {UsageError} Naming the option of an answer, its value and what is allowed. */
export function checkOptions({ thinking: _, onContextFull: rule, ...options }: ChatOptions): void {
  const onContextFull = rule === "drop" ? undefined : rule;
  asUsage(() =>
    resolveOptions(
      resolveGenerateOptions({ ...options, ...onContextFull && { onContextFull } }).sampler,
    )
  );
}

/** @throws {UsageError} The same of what is said of loading. */
export function checkLoad(options: LoadOptions): void {
  asUsage(() => checkLoadOptions(options));
}

/** What a command line alone shows to be wrong is wrong usage. */
function asUsage(check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof TypeError)) throw error;
    throw new UsageError(error.message, { cause: error });
  }
}
