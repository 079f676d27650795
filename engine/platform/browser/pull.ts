// engine/formats/hub/pull.ts for browsers: a model is a file that was mounted. What is to be fetched is fetched before, by
// fetch_file.ts.

import { SourceError } from "../../errors.ts";
import { pathKind } from "../../io.ts";

/** The path of a mounted file or folder. @throws {SourceError} If it is none. */
export async function pullModel(model: string): Promise<string> {
  if (await pathKind(model) !== undefined) return model;
  throw new SourceError("no file is mounted by that name", {
    file: model,
    remedy: "Call fetchFile() first and give the path that it returns",
  });
}
