// Checkpoints of torch.save before 1.6 (and with `_use_new_zipfile_serialization=False`): five pickles in
// a row (a magic number, the protocol, facts about the machine, the object, the keys of storages), then
// for each key a 64-bit count of elements and the elements. Lengths of pickles stand nowhere, so the head
// of the file is read in growing pieces until the fifth ends. A first pickle in front of a tar archive,
// torch's format before 0.1.10, is not read.

import type { ByteSource } from "../../byte_source.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";
import type { WeightFile } from "../source.ts";
import { buildCheckpoint, type StoredBytes } from "./checkpoint.ts";
import { collectTensors, showKey } from "./checkpoint_tensors.ts";
import { runPickle } from "./machine.ts";
import { createReader, PickleEndError, type PickleReader } from "./reader.ts";
import { storageOfId, TORCH_GLOBALS } from "./torch_globals.ts";
import { asKind, type PickleValue, type TorchStorage } from "./values.ts";

const MAGIC = 0x1950a86a20f9469cfc6cn;
const PROTOCOL = 1001;
const FIRST_READ = 1 << 20;
const MAX_HEAD = 1 << 26;

interface LegacyHead {
  readonly root: PickleValue;
  readonly keys: readonly string[];
  readonly storages: ReadonlyMap<string, TorchStorage>;
  /** Offset of the first storage. */
  readonly end: number;
}

/**
 * Opens a legacy checkpoint. Nothing in it is run.
 *
 * @throws {FormatError} If a pickle, a storage or a tensor breaks its rules.
 * @throws {UnsupportedError} If it holds Python objects or is big-endian.
 */
export async function openTorchLegacy(source: ByteSource): Promise<WeightFile> {
  const head = await readHead(source);
  const places = await locateStorages(source, head);
  const parts = collectTensors(head.root, {
    file: source.name,
    pickleBytes: head.end,
    fileBytes: source.size,
  });
  return await buildCheckpoint(source, {
    parts,
    locate: ({ key }) => {
      const place = places.get(key);
      if (place) return place;
      throw broken(source, `the file does not hold storage ${showKey(key)}`);
    },
  });
}

async function readHead(source: ByteSource): Promise<LegacyHead> {
  let bytes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  for (;;) {
    const length = Math.min(source.size, MAX_HEAD, Math.max(FIRST_READ, 2 * bytes.length));
    const larger = new Uint8Array(length);
    larger.set(bytes);
    await source.readInto(bytes.length, larger.subarray(bytes.length));
    bytes = larger;
    try {
      return parseHead(source, createReader(bytes, source.name));
    } catch (error) {
      const canGrow = bytes.length < Math.min(source.size, MAX_HEAD);
      if (!(error instanceof PickleEndError) || !canGrow) throw error;
    }
  }
}

function parseHead(source: ByteSource, reader: PickleReader): LegacyHead {
  const plain = { globals: new Map() };
  if (runPickle(reader, plain) !== MAGIC) throw broken(source, "does not begin with torch's magic");
  const protocol = runPickle(reader, plain);
  if (protocol !== PROTOCOL) throw broken(source, `is of torch protocol ${String(protocol)}`);
  const facts = asKind(runPickle(reader, plain), "dict");
  if (facts?.entries.get("little_endian") !== true) {
    throw new UnsupportedError("was written on a big-endian machine", {
      file: source.name,
      remedy: "Save it again on a little-endian machine",
    });
  }
  const storages = new Map<string, TorchStorage>();
  const root = runPickle(reader, {
    globals: TORCH_GLOBALS,
    persistent(id) {
      const storage = storageOfId(id);
      if (storage) storages.set(storage.key, storage);
      return storage;
    },
  });
  const keys = asKind(runPickle(reader, plain), "list")?.items;
  if (!keys?.every((key) => typeof key === "string")) {
    throw broken(source, "its list of storages is none");
  }
  return { root, keys, storages, end: reader.pos };
}

async function locateStorages(
  source: ByteSource,
  { keys, storages, end }: LegacyHead,
): Promise<ReadonlyMap<string, StoredBytes>> {
  const places = new Map<string, StoredBytes>();
  const count = new Uint8Array(8);
  let at = end;
  for (const key of keys) {
    const storage = storages.get(key);
    if (!storage || places.has(key)) {
      throw broken(source, `storage ${showKey(key)} is listed ${storage ? "twice" : "but unused"}`);
    }
    await source.readInto(at, count);
    const elements = new DataView(count.buffer).getBigUint64(0, true);
    if (elements !== BigInt(storage.stored)) {
      throw broken(source, `storage ${showKey(key)} has ${elements} elements of ${storage.stored}`);
    }
    const bytes = storage.stored * storage.width;
    if (bytes > source.size - at - 8) {
      throw broken(source, `storage ${showKey(key)} of ${bytes} bytes runs past the end`);
    }
    places.set(key, { offset: at + 8, bytes });
    at += 8 + bytes;
  }
  if (at !== source.size) throw broken(source, `${source.size - at} bytes follow the last storage`);
  return places;
}

function broken(source: ByteSource, message: string): FormatError {
  return new FormatError(message, {
    file: source.name,
    remedy: "The checkpoint is damaged or cut short: fetch it again",
  });
}
