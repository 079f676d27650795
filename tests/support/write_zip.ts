// Writes zip archives for tests, also broken ones: every field of an entry can be set to something else
// than the truth.

import { crc32, deflateRawSync } from "node:zlib";
import { joinBytes } from "./write_gguf.ts";

/** A file to put into an archive. */
export interface ZipFile {
  readonly name: string;
  readonly data: Uint8Array;
  readonly stored?: boolean;
  /** What the directory claims instead of the truth. */
  readonly claim?: Partial<
    Record<"bytes" | "packed" | "crc" | "offset" | "method" | "flags", number>
  >;
}

/** An archive of these files; with `zip64` lengths and offsets stand in the zip64 fields. */
export function writeZip(
  files: readonly ZipFile[],
  options: { readonly zip64?: boolean; readonly comment?: string } = {},
): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let position = 0;
  for (const { name, data, stored, claim = {} } of files) {
    const encoded = new TextEncoder().encode(name);
    const packed = stored ? data : new Uint8Array(deflateRawSync(data));
    const method = claim.method ?? (stored ? 0 : 8);
    const crc = claim.crc ?? crc32(data);
    const sizes = [claim.bytes ?? data.length, claim.packed ?? packed.length];
    const offset = claim.offset ?? position;
    const common = [
      u16(claim.flags ?? 0),
      u16(method),
      u32(0),
      u32(crc),
      u32(options.zip64 ? 0xffffffff : sizes[1]),
      u32(options.zip64 ? 0xffffffff : sizes[0]),
      u16(encoded.length),
    ];
    const extra = options.zip64
      ? joinBytes([u16(0xaaaa), u16(2), u16(7), u16(1), u16(24), ...[...sizes, offset].map(u64)])
      : new Uint8Array(0);
    const local = joinBytes([u32(0x04034b50), u16(20), ...common, u16(0), encoded, packed]);
    directory.push(
      u32(0x02014b50),
      u16(20),
      u16(20),
      ...common,
      u16(extra.length),
      u16(0),
      u16(0),
      u16(0),
      u32(0),
      u32(options.zip64 ? 0xffffffff : offset),
      encoded,
      extra,
    );
    parts.push(local);
    position += local.length;
  }
  const central = joinBytes(directory);
  const comment = new TextEncoder().encode(options.comment ?? "");
  const end64 = options.zip64
    ? [
      u32(0x06064b50),
      u64(44),
      u16(45),
      u16(45),
      u32(0),
      u32(0),
      u64(files.length),
      u64(files.length),
      u64(central.length),
      u64(position),
      u32(0x07064b50),
      u32(0),
      u64(position + central.length),
      u32(1),
    ]
    : [];
  const count = options.zip64 ? 0xffff : files.length;
  return joinBytes([
    ...parts,
    central,
    ...end64,
    u32(0x06054b50),
    u16(0),
    u16(0),
    u16(count),
    u16(count),
    u32(options.zip64 ? 0xffffffff : central.length),
    u32(options.zip64 ? 0xffffffff : position),
    u16(comment.length),
    comment,
  ]);
}

function u16(value: number): Uint8Array {
  return Uint8Array.of(value & 255, value >>> 8);
}

function u32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

function u64(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}
