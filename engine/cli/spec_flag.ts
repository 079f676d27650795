// The flag `--spec-file`, for `load`: apart from the other flags because a file has to be read for it.

import type { LoadOptions } from "../decode/model.ts";

/** The flag, parsed. */
export interface SpecFlag {
  readonly "spec-file"?: string | undefined;
}

/**
 * Option for `load` from the flag.
 *
 * @throws {FormatError | SourceError} If the file cannot be read.
 */
export async function specOption(flags: SpecFlag): Promise<Pick<LoadOptions, "spec">> {
  const path = flags["spec-file"];
  if (path === undefined) return {};
  const { readSpecFile } = await import("../models/spec_file.ts");
  return { spec: await readSpecFile(path) };
}
