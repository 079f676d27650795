// What must hold for any bytes given to the reader of PyTorch checkpoints: it opens them, and then every
// tensor can be read and is no larger than the file, or it throws one of our errors. Nothing is ever
// run, so nothing but time and memory can go wrong.

import type { ByteSource } from "../../engine/byte_source.ts";
import { FormatError, UnsupportedError } from "../../engine/errors.ts";
import { openTorchLegacy } from "../../engine/formats/pickle/torch_legacy.ts";
import { openTorchZip } from "../../engine/formats/pickle/torch_zip.ts";
import type { WeightFile } from "../../engine/formats/source.ts";
import { memorySource } from "../../engine/io.ts";
import {
  dict,
  int,
  pickleBytes,
  tensor,
  text,
  writeTorchLegacy,
  writeTorchZip,
} from "./write_pickle.ts";
import { writeZip } from "./write_zip.ts";

const DATA = new Uint8Array(64);

/** An archive whose pickle is the input. */
function wrap(pickle: Uint8Array): Uint8Array {
  return writeZip([
    { name: "a/data.pkl", data: pickle, stored: true },
    { name: "a/data/0", data: DATA, stored: true },
  ]);
}

/**
 * Opens `bytes` as a checkpoint: an archive, a legacy file, or the pickle in an archive.
 *
 * @throws {Error} If the reader throws anything but its own errors, or gives a tensor that cannot be read.
 */
export async function fuzzPickle(bytes: Uint8Array): Promise<void> {
  if (bytes[0] === 0x50) return await open(bytes, openTorchZip);
  await open(bytes, openTorchLegacy);
  await open(wrap(bytes), openTorchZip);
}

async function open(
  bytes: Uint8Array,
  reader: (source: ByteSource) => Promise<WeightFile>,
): Promise<void> {
  let file: WeightFile;
  try {
    file = await reader(memorySource("fuzz", bytes));
  } catch (error) {
    const isOurs = error instanceof FormatError || error instanceof UnsupportedError;
    if (!isOurs) throw error;
    if (error.message.includes("\n")) throw new Error(`Message of several lines: ${error.message}`);
    return;
  }
  for (const { name, source, offset, byteLength } of [...file.tensors.values()].slice(0, 20)) {
    if (name === "" || byteLength > bytes.length) throw new Error(`Tensor of ${byteLength} bytes`);
    await source.readInto(offset, new Uint8Array(byteLength));
  }
}

/** Good files to mutate: both containers, and pickles of their own. */
export function pickleSeeds(): Uint8Array[] {
  const root = dict({
    w: tensor({ stored: 16, size: [2, 3], stride: [1, 4] }),
    t: tensor({ stored: 16, size: [4], stride: [1], offset: 3 }),
    nested: dict({ step: int(3), name: text("x"), list: "](K\x01K\x02e" }),
  });
  return [
    writeTorchZip(root, { "0": DATA }),
    writeTorchLegacy(root, [{ key: "0", elements: 16, data: DATA }]),
    pickleBytes("\x80\x02", root, "."),
    pickleBytes("\x80\x04\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93)R\x94."),
  ];
}
