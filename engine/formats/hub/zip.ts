// Reads single files out of zip archives (wheels) without unpacking the rest: APPNOTE 6.3, stored and
// deflated entries, zip64. Nothing in the directory is trusted: places must lie inside the archive, names
// must stay below its root, and an entry that turns out longer or shorter than it says, or whose CRC is
// off, is refused while it streams. Encrypted archives and other methods are not read.

import { crc32 } from "node:zlib";
import { type ByteSource, readBytes } from "../../byte_source.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";

/** A file in an archive. */
export interface ZipEntry {
  /** Path inside the archive, as written there. */
  readonly name: string;
  /** Length when unpacked. */
  readonly bytes: number;
  /** Length in the archive. */
  readonly packedBytes: number;
  /** Checksum of the unpacked bytes. */
  readonly crc32: number;
  /** 0 stored, 8 deflated. */
  readonly method: number;
  /** Whether a password is needed. */
  readonly encrypted: boolean;
  /** Offset of its local header. */
  readonly offset: number;
}

const END = 0x06054b50;
const END64_LOCATOR = 0x07064b50;
const END64 = 0x06064b50;
const CENTRAL = 0x02014b50;
const LOCAL = 0x04034b50;
const END_BYTES = 22;
const MAX_DIRECTORY = 64 << 20;
// Deflate grows data by up to 1,032 times and a piece is inflated in one go: this bounds what that takes.
const PIECE = 1 << 14;
const STORED = 0;
const DEFLATED = 8;

/**
 * Reads the directory of an archive.
 *
 * @throws {FormatError} If it is not a zip file or its directory is damaged.
 */
export async function readZipDirectory(source: ByteSource): Promise<ReadonlyMap<string, ZipEntry>> {
  const { offset, bytes, count } = await findDirectory(source);
  if (bytes > MAX_DIRECTORY || offset + bytes > source.size) {
    throw broken(source, `its directory of ${bytes} bytes at ${offset} does not fit`);
  }
  const view = await readView(source, offset, bytes);
  const entries = new Map<string, ZipEntry>();
  let pos = 0;
  for (let i = 0; i < count; i++) {
    const { entry, next } = readEntry(source, view, pos);
    if (entries.has(entry.name)) throw broken(source, `two entries are named ${entry.name}`);
    entries.set(entry.name, entry);
    pos = next;
  }
  return entries;
}

/**
 * Streams the unpacked bytes of an entry.
 *
 * @throws {FormatError} If the entry is not what the directory says.
 * @throws {UnsupportedError} If it is encrypted or packed by another method.
 */
export async function* readZipEntry(
  source: ByteSource,
  entry: ZipEntry,
): AsyncGenerator<Uint8Array> {
  checkName(source, entry);
  if (entry.encrypted || (entry.method !== STORED && entry.method !== DEFLATED)) {
    throw new UnsupportedError(
      entry.encrypted ? "is encrypted" : `is packed by method ${entry.method}`,
      { file: source.name, place: entry.name, remedy: "Only stored and deflated files are read" },
    );
  }
  const start = await zipDataStart(source, entry);
  const packed = readPieces(source, start, entry.packedBytes);
  const unpacked = entry.method === STORED ? packed : inflate(packed);
  let bytes = 0;
  let crc = 0;
  try {
    for await (const chunk of unpacked) {
      bytes += chunk.length;
      if (bytes > entry.bytes) {
        throw broken(source, `is longer than the ${entry.bytes} bytes it claims`, entry.name);
      }
      crc = crc32(chunk, crc);
      yield chunk;
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw broken(source, `cannot be unpacked (${error.message})`, entry.name);
  }
  if (bytes !== entry.bytes) {
    throw broken(source, `has ${bytes} bytes, claims ${entry.bytes}`, entry.name);
  }
  if (crc !== entry.crc32) throw broken(source, "has another CRC-32 than it claims", entry.name);
}

async function findDirectory(
  source: ByteSource,
): Promise<{ offset: number; bytes: number; count: number }> {
  // The end record is followed by a comment of up to 65,535 bytes.
  const length = Math.min(source.size, END_BYTES + 0xffff);
  const base = source.size - length;
  const view = await readView(source, base, length);
  for (let pos = length - END_BYTES; pos >= 0; pos--) {
    const fits = view.getUint32(pos, true) === END &&
      pos + END_BYTES + view.getUint16(pos + 20, true) === length;
    if (!fits) continue;
    const count = view.getUint16(pos + 10, true);
    const bytes = view.getUint32(pos + 12, true);
    const offset = view.getUint32(pos + 16, true);
    const isZip64 = count === 0xffff || bytes === 0xffffffff || offset === 0xffffffff;
    if (!isZip64) return { offset, bytes, count };
    return await findDirectory64(source, base + pos - 20);
  }
  throw broken(source, "is not a zip archive: it has no end record");
}

async function findDirectory64(
  source: ByteSource,
  locatorAt: number,
): Promise<{ offset: number; bytes: number; count: number }> {
  if (locatorAt < 0) throw broken(source, "its zip64 locator is missing");
  const locator = await readView(source, locatorAt, 20);
  if (locator.getUint32(0, true) !== END64_LOCATOR) {
    throw broken(source, "its zip64 locator is missing");
  }
  const end = await readView(source, readU64(source, locator, 8), 56);
  if (end.getUint32(0, true) !== END64) throw broken(source, "its zip64 end record is missing");
  return {
    count: readU64(source, end, 32),
    bytes: readU64(source, end, 40),
    offset: readU64(source, end, 48),
  };
}

function readEntry(
  source: ByteSource,
  view: DataView,
  pos: number,
): { entry: ZipEntry; next: number } {
  const fixed = 46;
  if (pos + fixed > view.byteLength || view.getUint32(pos, true) !== CENTRAL) {
    throw broken(source, "its directory is damaged");
  }
  const nameBytes = view.getUint16(pos + 28, true);
  const extraBytes = view.getUint16(pos + 30, true);
  const next = pos + fixed + nameBytes + extraBytes + view.getUint16(pos + 32, true);
  if (next > view.byteLength) throw broken(source, "its directory is damaged");
  const name = new TextDecoder().decode(
    new Uint8Array(view.buffer, view.byteOffset + pos + fixed, nameBytes),
  );
  const [bytes, packedBytes, offset] = readSizes(source, view, pos, {
    start: pos + fixed + nameBytes,
    end: pos + fixed + nameBytes + extraBytes,
  });
  const entry: ZipEntry = {
    name,
    bytes,
    packedBytes,
    offset,
    crc32: view.getUint32(pos + 16, true),
    method: view.getUint16(pos + 10, true),
    encrypted: (view.getUint16(pos + 8, true) & 1) === 1,
  };
  return { entry, next };
}

/** Length, packed length and offset; those that do not fit 32 bits stand in the zip64 extra field. */
function readSizes(
  source: ByteSource,
  view: DataView,
  pos: number,
  extra: { start: number; end: number },
): number[] {
  const sizes = [24, 20, 42].map((at) => view.getUint32(pos + at, true));
  if (!sizes.includes(0xffffffff)) return sizes;
  for (let at = extra.start; at + 4 <= extra.end;) {
    const fieldEnd = at + 4 + view.getUint16(at + 2, true);
    if (view.getUint16(at, true) === 1) {
      let value = at + 4;
      return sizes.map((size) => {
        if (size !== 0xffffffff) return size;
        if (value + 8 > Math.min(fieldEnd, extra.end)) throw broken(source, "a zip64 field is cut");
        value += 8;
        return readU64(source, view, value - 8);
      });
    }
    at = fieldEnd;
  }
  throw broken(source, "a zip64 field is missing");
}

/**
 * Offset of the packed bytes of an entry.
 *
 * @throws {FormatError} If the local header is missing or the bytes run past the end.
 */
export async function zipDataStart(source: ByteSource, entry: ZipEntry): Promise<number> {
  const header = await readView(source, entry.offset, 30);
  if (header.getUint32(0, true) !== LOCAL) {
    throw broken(source, "its local header is missing", entry.name);
  }
  const start = entry.offset + 30 + header.getUint16(26, true) + header.getUint16(28, true);
  if (start + entry.packedBytes > source.size) {
    throw broken(source, "runs past the end of the archive", entry.name);
  }
  return start;
}

async function* readPieces(
  source: ByteSource,
  start: number,
  length: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let done = 0; done < length; done += PIECE) {
    yield await readBytes(source, { offset: start + done, length: Math.min(PIECE, length - done) });
  }
}

function inflate(packed: AsyncIterable<Uint8Array<ArrayBuffer>>): AsyncIterable<Uint8Array> {
  return ReadableStream.from(packed).pipeThrough(new DecompressionStream("deflate-raw"));
}

function checkName(source: ByteSource, { name }: ZipEntry): void {
  const unsafe = name.startsWith("/") || /[\\:\0]/.test(name) || name.split("/").includes("..");
  if (unsafe) throw broken(source, "leaves the archive's folder", name);
}

async function readView(source: ByteSource, offset: number, length: number): Promise<DataView> {
  return new DataView((await readBytes(source, { offset, length })).buffer);
}

function readU64(source: ByteSource, view: DataView, pos: number): number {
  const value = view.getBigUint64(pos, true);
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw broken(source, `it speaks of ${value} bytes`);
  return Number(value);
}

function broken(source: ByteSource, message: string, place?: string): FormatError {
  return new FormatError(message, { file: source.name, place, remedy: "Fetch the archive again" });
}
