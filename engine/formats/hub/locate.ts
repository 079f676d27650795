// From the text that a person wrote to a place: what the text alone says (source_name.ts), and where that is a path to
// nothing, what it may have meant. `owner/repo` is a repository of the hub unless a file or folder is called so.

import { SourceError } from "../../errors.ts";
import { freeMemory, pathKind, pathOf } from "../../io.ts";
import { nearest } from "../../nearest.ts";
import { modelNames } from "./catalogue.ts";
import { chooseFile } from "./choose_file.ts";
import type { HfOptions } from "./hf.ts";
import type { RequestOptions } from "./http.ts";
import { type HubFile, listHubFiles } from "./hub_files.ts";
import type { RetryOptions } from "./retry.ts";
import { type ModelSource, parseModelSource } from "./source_name.ts";

const BARE_REPO = /^[\w-][\w.-]*\/[\w-][\w.-]*(:[\w.-]+)?(@[\w./-]+)?$/;
/** Endings of files that people name: a path to nothing, not a repository. */
const FILE = /\.(gguf|onnx|safetensors|bin|pth?|json|ini|txt|wav|png)$/i;

/**
 * What was chosen of a repository.
 * @category Hub
 */
export interface PullChoice {
  /** As it was asked for. */
  readonly source: string;
  /** Why, for people: `Q4_K_M, the best of 12 that fits 3.2 GB of free memory`. */
  readonly reason: string;
  /** The files of weights, with their lengths in bytes. */
  readonly files: readonly HubFile[];
}

/** How a repository is asked, and what may be taken of it. */
export interface ChoiceOptions extends HfOptions, RequestOptions, RetryOptions {
  /** Memory that a model may take; default: what the system says is free, if it may be asked. */
  readonly freeBytes?: number | undefined;
  /** Called with what was chosen before it is fetched. */
  readonly onChoice?: ((choice: PullChoice) => void) | undefined;
}

/**
 * The source behind a model's name.
 *
 * @throws {SourceError} If it is a path to nothing; the message says what may be meant.
 */
export function locateModel(model: string | URL): ModelSource {
  const source = parseModelSource(pathOf(model));
  if (source.kind !== "path" || pathKind(source.path) !== undefined) return source;
  const { path } = source;
  const isRepo = BARE_REPO.test(path) && !FILE.test(path) &&
    pathKind(path.slice(0, path.indexOf("/"))) === undefined;
  if (isRepo) return parseModelSource(`hf:${path}`);
  const isName = /^[\w.:-]+$/.test(path) && !FILE.test(path);
  const near = isName ? nearest(path, modelNames()) : undefined;
  throw new SourceError("no such file or folder", {
    file: path,
    remedy: near !== undefined
      ? `Did you mean ${near}?`
      : isName
      ? "Names of models are in `troodon list`; a repository of the hub is owner/repo"
      : "Check the path",
    cause: new Deno.errors.NotFound(path),
  });
}

/**
 * The file of a repository that stands for its model.
 *
 * @throws {SourceError} If the hub does not answer, or there is nothing to choose.
 */
export async function chooseOfRepo(
  source: ModelSource & { kind: "repo" },
  options: ChoiceOptions,
): Promise<ModelSource & { kind: "hf" }> {
  const { repo, revision, format, text } = source;
  const listed = await listHubFiles(source, options);
  const freeBytes = options.freeBytes ?? freeMemory();
  const { main, files, reason } = chooseFile(listed, { name: text, format, freeBytes });
  options.onChoice?.({ source: text, reason, files });
  return { kind: "hf", text, repo, file: main, revision };
}
