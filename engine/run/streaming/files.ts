// The files of streamed weights, which stay open as long as a model: other threads open them by themselves (engine/io.ts),
// this one reads what they could not, and says why.

import type { FileBytes } from "../../../wasm/pack_files.ts";
import type { ByteSource } from "../../byte_source.ts";
import { DeviceError, FormatError } from "../../errors.ts";
import type { Value } from "../../graph/graph.ts";
import { reopenFile } from "../../io.ts";

/** Open files. */
export interface StreamedFiles {
  /** The bytes of a weight as threads read them. @throws {SourceError} If its file is not what it was. */
  bytesOf(value: Value): FileBytes;
  /** What is said of a weight that could not be loaded. */
  unreadable(value: Value): Error;
  close(): void;
}

/** Opens files when their first weight is asked for. */
export function createStreamedFiles(): StreamedFiles {
  const open = new Map<string, ByteSource>();

  function sourceOf({ tensor }: Value): ByteSource {
    const file = tensor!.source.file!;
    let source = open.get(file);
    if (!source) open.set(file, source = reopenFile(file));
    return source;
  }

  return {
    bytesOf(value) {
      const source = sourceOf(value);
      return {
        ...{ file: source.file!, offset: value.tensor!.offset },
        readInto: (at, target) => void source.readInto(at, target),
      };
    },
    unreadable(value) {
      const { name, offset, byteLength } = value.tensor!, source = sourceOf(value);
      const details = { file: source.name, place: name };
      try {
        for (const at of [offset, offset + byteLength - 1]) source.readInto(at, new Uint8Array(1));
      } catch (cause) {
        return new DeviceError("a streamed weight cannot be read any more", {
          ...{ ...details, cause },
          remedy: "Leave the file as it was when the model was loaded, and load the model again",
        });
      }
      return new FormatError("a streamed weight holds numbers that are not finite", details);
    },
    close() {
      for (const source of open.values()) source.close();
      open.clear();
    },
  };
}
