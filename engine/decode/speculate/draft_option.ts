// The option `draft`: who proposes tokens, and how many. Everything that can be wrong with it is said before anything
// runs.

import { UnsupportedError } from "../../errors.ts";
import type { DraftOptions, DraftSource } from "../generate_options.ts";
import { LoadedModel } from "../loaded_model.ts";
import type { Runtime } from "../runtime.ts";
import { vocabularyDifference } from "./same_vocabulary.ts";

/** A checked option. */
export interface ResolvedDraft {
  readonly from: "lookup" | "history" | LoadedModel;
  /** Undefined: by measurement. */
  readonly k: number | undefined;
}

const OPTIONS = ["from", "k"];
const NAMED = ["lookup", "history"];

/**
 * Checks the option for a model.
 *
 * @throws {TypeError} If it is no source, or a model that is disposed.
 * @throws {RangeError} If `k` is no number of tokens that the model checks at once.
 * @throws {UnsupportedError} If one of the models is no decoder, their vocabularies differ, or steps have logits of one
 * token only.
 */
export function resolveDraft(
  draft: DraftSource | DraftOptions,
  runtime: Runtime,
): ResolvedDraft {
  const { network, name } = runtime;
  const { from, k } = isOptions(draft) ? draft : { from: draft, k: undefined };
  const unknown = isOptions(draft) && Object.keys(draft).find((key) => !OPTIONS.includes(key));
  if (unknown) {
    throw new TypeError(`Cannot use draft option "${unknown}": there are ${OPTIONS.join(" and ")}`);
  }
  if (!isNamed(from) && !(from instanceof LoadedModel)) {
    throw new TypeError(
      `Cannot use draft ${
        shown(from)
      }: it is a model from load(), "lookup" or "history", or { from, k } with one of them`,
    );
  }
  if (network !== "decoder") {
    throw new UnsupportedError(`is an ${network}, and drafts are for models that continue texts`, {
      file: name,
      remedy: "Leave draft out",
    });
  }
  const most = runtime.logitRows - 1;
  if (most < 1) {
    throw new UnsupportedError(
      "gives the logits of one token a step, and a draft is checked in one",
      {
        file: name,
        remedy: "Load it with logitRows: 16, if its graph gives those of every token",
      },
    );
  }
  if (k !== undefined && !(Number.isInteger(k) && k >= 0 && k <= most)) {
    throw new RangeError(
      `Cannot use draft.k ${
        shown(k)
      }: it is an integer from 0 to ${most}, one less than the model's logitRows`,
    );
  }
  if (from instanceof LoadedModel) checkModel(from, runtime);
  return { from, k };
}

function isOptions(draft: DraftSource | DraftOptions): draft is DraftOptions {
  return typeof draft === "object" && draft !== null && !(draft instanceof LoadedModel) &&
    "from" in draft;
}

function isNamed(from: DraftSource): from is "lookup" | "history" {
  return typeof from === "string" && NAMED.includes(from);
}

function checkModel(draft: LoadedModel, runtime: Runtime): void {
  draft.checkUsable();
  if (draft.runtime.network !== "decoder") {
    throw new UnsupportedError(`is an ${draft.runtime.network}, which cannot draft`, {
      file: draft.name,
      remedy: "Draft with a model that continues texts",
    });
  }
  if (draft.runtime === runtime) {
    throw new TypeError(`Cannot use draft ${draft.name}: a model is not its own draft`);
  }
  const difference = vocabularyDifference(runtime.tokenizer(), draft.runtime.tokenizer());
  if (difference === undefined) return;
  throw new UnsupportedError(
    `cannot draft for ${runtime.name}: its vocabulary is another one, ${difference}`,
    { file: draft.name, remedy: "Draft with a model of the same family" },
  );
}

function shown(value: unknown): string {
  return typeof value === "string" || typeof value === "number"
    ? JSON.stringify(value)
    : typeof value;
}
