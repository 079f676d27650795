// Opens a model for a look at its header: the file on this machine if there is one, else the remote file by
// ranges. Models inside wheels have no ranges to read; they must be pulled first, and the error says so.

import { SourceError } from "../errors.ts";
import { pullModel } from "../formats/hub/pull.ts";
import { chooseOfRepo, locateModel } from "../formats/hub/locate.ts";
import { type ModelSource, parseModelSource } from "../formats/hub/source_name.ts";
import { openRemoteSource } from "../formats/hub/url_source.ts";
import { openModel } from "./open_model.ts";
import type { WeightFile } from "../formats/source.ts";
import type { LoadOptions } from "../decode/model.ts";

/**
 * Opens the header of a model.
 *
 * @throws {SourceError} If it is neither cached nor at an address of its own.
 */
export async function openForReading(model: string, options: LoadOptions): Promise<WeightFile> {
  const source = locateModel(model);
  const { cacheDir, endpoint, offline, signal } = options;
  const remote = remoteOf(source);
  if (!remote) return await openModel(await pullModel(source, { cacheDir, offline: true }));
  try {
    return await openModel(await pullModel(source, { cacheDir, offline: true }));
  } catch (error) {
    if (offline || !(error instanceof SourceError)) throw error;
  }
  const file = remote.kind === "repo" ? await chooseOfRepo(remote, { endpoint, signal }) : remote;
  return await openModel(await openRemoteSource(file, { endpoint, signal })!);
}

/** A source whose files have addresses of their own; of the catalogue, those that are on the hub alone. */
function remoteOf(
  source: ModelSource,
): (ModelSource & { kind: "url" | "hf" | "repo" }) | undefined {
  if (source.kind === "url" || source.kind === "hf" || source.kind === "repo") return source;
  if (source.kind !== "catalogue" || source.model.files.length > 0) return undefined;
  return remoteOf(parseModelSource(source.model.hub!));
}
