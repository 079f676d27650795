// Opens a GGUF model, of one file or of several parts. The work is done elsewhere: header.ts reads
// and checks one file, split.ts finds and joins the parts.

import type { ByteSource } from "../../byte_source.ts";
import { readGgufHeader } from "./header.ts";
import { openParts } from "./split.ts";
import type { WeightFile } from "../source.ts";

/**
 * Opens a GGUF model; of a split one, `source` must be the first part. The file owns the source: closing
 * it closes all parts.
 *
 * @throws {FormatError} If a rule of the format is broken.
 * @throws {UnsupportedError} If the version, byte order or a tensor type is not one we read.
 * @throws {SourceError} If parts of a split model are missing.
 */
export async function openGguf(source: ByteSource): Promise<WeightFile> {
  const first = await readGgufHeader(source);
  const { tensors, sources } = await openParts(source, first);
  return {
    kind: "gguf",
    name: source.name,
    metadata: first.metadata,
    tensors,
    close: () => sources.forEach((part) => part.close()),
  };
}
