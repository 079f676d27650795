// What zip and legacy checkpoints have in common once their storages are found: views become TensorInfo,
// straight into the file where the elements lie side by side, through strided_source.ts where not.
// Several tensors may share a storage, and tied ones are the same bytes twice; neither is copied.

import type { ByteSource } from "../../byte_source.ts";
import { FormatError } from "../../errors.ts";
import type { TensorInfo, WeightFile } from "../source.ts";
import { type CheckpointParts, showKey, type TensorView } from "./checkpoint_tensors.ts";
import { createStridedSource, isContiguous } from "./strided_source.ts";
import type { TorchStorage } from "./values.ts";

/** Where the bytes of a storage lie in the file. */
export interface StoredBytes {
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Makes the weight file.
 *
 * @param locate Finds a storage's bytes; called once for each storage.
 * @throws {FormatError} If bytes of a storage are missing, or two tensors disagree on its type.
 */
export async function buildCheckpoint(
  source: ByteSource,
  { parts: { views, metadata }, locate }: {
    readonly parts: CheckpointParts;
    readonly locate: (storage: TorchStorage) => StoredBytes | Promise<StoredBytes>;
  },
): Promise<WeightFile> {
  const places = new Map<string, StoredBytes>();
  const formats = new Map<string, string>();
  const tensors = new Map<string, TensorInfo>();
  for (const view of views) {
    const { storage } = view;
    const known = formats.get(storage.key);
    if (known !== undefined && known !== storage.format) {
      throw broken(source, view, `takes its storage for ${storage.format}, another for ${known}`);
    }
    formats.set(storage.key, storage.format);
    let place = places.get(storage.key);
    if (!place) places.set(storage.key, place = await locate(storage));
    const wanted = storage.stored * storage.width;
    if (wanted > place.bytes) {
      throw broken(
        source,
        view,
        `its storage ${showKey(storage.key)} has ${place.bytes} bytes of ${wanted}`,
      );
    }
    tensors.set(view.name, toTensor(source, view, place));
  }
  return { kind: "pickle", name: source.name, metadata, tensors, close: () => source.close() };
}

function toTensor(source: ByteSource, view: TensorView, { offset }: StoredBytes): TensorInfo {
  const { name, shape, storage: { format, width }, count } = view;
  const common = { name, shape, format, byteLength: count * width };
  return isContiguous(view)
    ? { ...common, source, offset: count === 0 ? offset : offset + view.offset * width }
    : { ...common, source: createStridedSource(view, { source, offset }), offset: 0 };
}

function broken(source: ByteSource, { name }: TensorView, message: string): FormatError {
  return new FormatError(message, {
    file: source.name,
    place: `tensor ${showKey(name)}`,
    remedy: "The checkpoint is damaged or cut short: fetch it again",
  });
}
