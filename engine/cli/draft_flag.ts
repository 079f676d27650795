// The flag `--draft`: who proposes tokens of an answer. A model is opened beside the other one, on the same device.

import type { DraftSource } from "../decode/generate_options.ts";
import type { LoadOptions } from "../decode/model.ts";
import { modelNames } from "../formats/hub/catalogue.ts";
import { parseModelSource } from "../formats/hub/source_name.ts";
import { pathKind } from "../io.ts";
import { nearest } from "../nearest.ts";
import { type Flags, UsageError } from "./args.ts";
import type { Context } from "./command.ts";
import type { SourceFlags } from "./fetch.ts";
import type { GpuFlag } from "./gpu_flag.ts";

/** The flag. */
export const DRAFT_FLAGS = {
  draft: {
    type: "string",
    value: "MODEL|lookup|history",
    help:
      "check several tokens at once: a smaller model's, those that followed earlier in the text, " +
      "or also in earlier answers; the answer stays what it is",
  },
} as const satisfies Flags;

/** Words that are no models. */
const NAMED: readonly string[] = ["lookup", "history"];

/** An option of a generation, and what is closed behind it. */
export interface OpenedDraft extends Disposable {
  readonly options: { readonly draft?: DraftSource };
}

/**
 * Makes the option, and opens a model where the flag names one.
 *
 * @throws {UsageError} On a word that is neither a model nor a way to propose.
 */
export async function openDraft(
  { draft, ...flags }: SourceFlags & GpuFlag & { readonly draft?: string | undefined },
  { options, context }: {
    /** Of the other model; what belongs to that one alone is left out. */
    readonly options: LoadOptions;
    readonly context: Pick<Context, "terminal" | "signal">;
  },
): Promise<OpenedDraft> {
  if (draft === undefined) return { options: {}, [Symbol.dispose]() {} };
  if (NAMED.includes(draft)) {
    return { options: { draft: draft as "lookup" | "history" }, [Symbol.dispose]() {} };
  }
  const isPath = /\W/.test(draft) || parseModelSource(draft).kind !== "path";
  if (!isPath && pathKind(draft) === undefined) {
    const near = nearest(draft, [...NAMED, ...modelNames()]);
    const hint = near === undefined ? "" : `. Did you mean ${near}?`;
    throw new UsageError(`--draft takes a model, ${NAMED.join(" or ")}: got "${draft}"${hint}`);
  }
  const { adapters: _, chatTemplate: __, ...load } = options;
  const { openModel } = await import("./open_model.ts");
  const opened = await openModel(draft, { flags, options: load, context });
  return { options: { draft: opened.model }, [Symbol.dispose]: () => opened[Symbol.dispose]() };
}
