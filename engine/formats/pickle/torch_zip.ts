// Checkpoints of torch.save since 1.6: a zip archive with the folder of one name that holds `data.pkl`,
// the bytes of each storage in `data/KEY`, and `byteorder`. The archive's directory says where members
// lie (a search for signatures would find those inside weights, too). Members are stored, not deflated, so
// a tensor is a range of the file. The pickle's CRC is checked; those of storages are not, since tensors
// are read in parts and out of order.

import type { ByteSource } from "../../byte_source.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { readZipDirectory, readZipEntry, zipDataStart, type ZipEntry } from "../hub/zip.ts";
import type { WeightFile } from "../source.ts";
import { buildCheckpoint, type StoredBytes } from "./checkpoint.ts";
import { collectTensors, showKey } from "./checkpoint_tensors.ts";
import { runPickle } from "./machine.ts";
import { createReader } from "./reader.ts";
import { storageOfId, TORCH_GLOBALS } from "./torch_globals.ts";
import type { TorchStorage } from "./values.ts";

/** A state dict of 100,000 tensors takes 15 MB. */
const MAX_PICKLE = 1 << 26;

/**
 * Opens a zip checkpoint. Nothing in it is run.
 *
 * @throws {FormatError} If the archive, the pickle or a tensor breaks its rules.
 * @throws {UnsupportedError} If it holds Python objects, is big-endian, compressed or encrypted.
 */
export async function openTorchZip(source: ByteSource): Promise<WeightFile> {
  const entries = await readZipDirectory(source);
  const root = findRoot(source, entries);
  await checkByteOrder(source, entries.get(`${root}byteorder`));
  const pickle = await readMember(source, entries.get(`${root}data.pkl`)!, MAX_PICKLE);
  const file = `${source.name}, ${root}data.pkl`;
  const reader = createReader(pickle, file);
  const value = runPickle(reader, { globals: TORCH_GLOBALS, persistent: storageOfId });
  if (reader.pos !== pickle.length) {
    throw new FormatError(`${pickle.length - reader.pos} bytes follow its end`, { file });
  }
  const parts = collectTensors(value, {
    file: source.name,
    pickleBytes: pickle.length,
    fileBytes: source.size,
  });
  return await buildCheckpoint(
    source,
    { parts, locate: (storage) => locateStorage(source, entries, `${root}data/`, storage) },
  );
}

/** Name of the one folder with a data.pkl, with its slash. */
function findRoot(source: ByteSource, entries: ReadonlyMap<string, ZipEntry>): string {
  const found = [...entries.keys()].filter((name) => /^([^/]+\/)?data\.pkl$/.test(name));
  if (found.length === 1) return found[0].slice(0, -"data.pkl".length);
  throw new FormatError(
    found.length === 0
      ? "is a zip archive without data.pkl: no checkpoint of PyTorch"
      : `holds ${found.length} checkpoints: ${found.slice(0, 4).join(", ")}`,
    { file: source.name, remedy: "Give a file that torch.save wrote, or use safetensors" },
  );
}

async function checkByteOrder(source: ByteSource, entry: ZipEntry | undefined): Promise<void> {
  if (!entry) return;
  const order = new TextDecoder().decode(await readMember(source, entry, 16));
  if (order === "little") return;
  throw new UnsupportedError(`its byte order is ${showKey(order)}; only "little" is read`, {
    file: source.name,
    place: entry.name,
    remedy: "Save it again on a little-endian machine",
  });
}

async function readMember(source: ByteSource, entry: ZipEntry, limit: number): Promise<Uint8Array> {
  if (entry.bytes > limit) {
    throw new FormatError(`has ${entry.bytes} bytes, the limit is ${limit}`, {
      file: source.name,
      place: entry.name,
    });
  }
  const bytes = new Uint8Array(entry.bytes);
  let at = 0;
  for await (const chunk of readZipEntry(source, entry)) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

async function locateStorage(
  source: ByteSource,
  entries: ReadonlyMap<string, ZipEntry>,
  folder: string,
  { key }: TorchStorage,
): Promise<StoredBytes> {
  const entry = /^\w+$/.test(key) ? entries.get(folder + key) : undefined;
  if (!entry) {
    throw new FormatError(`the archive has no storage ${showKey(key)}`, {
      file: source.name,
      remedy: "The checkpoint is damaged: fetch it again",
    });
  }
  const isPacked = entry.method !== 0 || entry.packedBytes !== entry.bytes;
  if (isPacked || entry.encrypted) {
    throw new UnsupportedError(`is ${entry.encrypted ? "encrypted" : "compressed"}`, {
      file: source.name,
      place: entry.name,
      remedy: "torch.save stores its members plainly: unpack the archive and zip it with `zip -0`",
    });
  }
  return { offset: await zipDataStart(source, entry), bytes: entry.bytes };
}
