// The bytes of streamed weights: other threads open their files by themselves (engine/io.ts), this one reads what they could
// not, and says why. Sources stay open as long as the model.

import type { FileBytes } from "../../../wasm/pack_files.ts";
import { DeviceError, FormatError } from "../../errors.ts";
import type { Value } from "../../graph/graph.ts";

/** The bytes of a weight in a file as threads read them. */
export function fileBytesOf({ tensor }: Value): FileBytes {
  const { source, offset } = tensor!;
  return {
    ...{ file: source.file!, offset },
    readInto: (at, target) => void source.readInto(at, target),
  };
}

/** What is said of a weight that could not be loaded: its file has changed, or it holds no numbers. */
export function unreadable({ tensor }: Value): Error {
  const { name, source, offset, byteLength } = tensor!,
    details = { file: source.name, place: name };
  try {
    for (const at of [offset, offset + byteLength - 1]) source.readInto(at, new Uint8Array(1));
  } catch (cause) {
    return new DeviceError("a streamed weight cannot be read any more", {
      ...{ ...details, cause },
      remedy: "Leave the file as it was when the model was loaded, and load the model again",
    });
  }
  return new FormatError("a streamed weight holds numbers that are not finite", details);
}
