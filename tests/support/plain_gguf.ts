// The header of a GGUF file read straight through, as the format's own page has it (ggml/docs/gguf.md), in BigInt and
// on the whole file: an independent judge of which files are valid and where tensors lie. Shares nothing with the
// reader. Where the page is silent, ggml's own reader decides: an alignment is a power of two, a bool is 0 or 1, a
// name stands once, rows are whole blocks, tensors do not overlap.

/** A tensor of a valid file. */
export interface PlainTensor {
  readonly name: string;
  /** As in the file, innermost first. */
  readonly dims: readonly bigint[];
  readonly type: number;
  readonly offset: bigint;
  readonly bytes: bigint;
}

/** What a valid file holds. */
export interface PlainGguf {
  readonly keys: readonly string[];
  readonly tensors: readonly PlainTensor[];
}

/** Thrown for a file whose types are not in the table: nobody can say whether it is valid. */
export class Undecided extends Error {}

/** [elements, bytes] of a block, by ggml's number (ggml.h). */
const BLOCKS: Readonly<Record<number, readonly [bigint, bigint]>> = {
  0: [1n, 4n],
  1: [1n, 2n],
  2: [32n, 18n],
  3: [32n, 20n],
  6: [32n, 22n],
  7: [32n, 24n],
  8: [32n, 34n],
  10: [256n, 84n],
  11: [256n, 110n],
  12: [256n, 144n],
  13: [256n, 176n],
  14: [256n, 210n],
  20: [32n, 18n],
  23: [256n, 136n],
  24: [1n, 1n],
  25: [1n, 2n],
  26: [1n, 4n],
  27: [1n, 8n],
  28: [1n, 8n],
  30: [1n, 2n],
};

/** Bytes of a value of fixed width, by its number. */
const WIDTHS: Readonly<Record<number, number>> = {
  ...{ 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 10: 8, 11: 8, 12: 8 },
};

class Invalid extends Error {}

function check(isRight: boolean, message: string): asserts isRight {
  if (!isRight) throw new Invalid(message);
}

/**
 * Reads a file; a text says why it is invalid.
 *
 * @throws {Undecided} If it has a type that stands in no table.
 */
export function readPlainGguf(file: Uint8Array): PlainGguf | string {
  try {
    return read(file);
  } catch (error) {
    if (error instanceof Invalid) return error.message;
    throw error;
  }
}

function read(file: Uint8Array): PlainGguf {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  let at = 0;
  const take = (count: number): number => {
    check(count <= file.length - at, "cut short");
    at += count;
    return at - count;
  };
  const u32 = (): number => view.getUint32(take(4), true);
  const u64 = (): bigint => view.getBigUint64(take(8), true);
  check(new TextDecoder().decode(file.subarray(take(4), at)) === "GGUF", "no magic");
  const version = u32();
  check(version >= 1 && version <= 3, "an unknown version");
  const length = (): bigint => version === 1 ? BigInt(u32()) : u64();
  const bytes = (): Uint8Array => {
    const count = length();
    check(count <= BigInt(file.length - at), "a text beyond the end");
    return file.subarray(take(Number(count)), at);
  };
  const text = (): string => {
    const raw = bytes();
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw);
    } catch {
      throw new Invalid("a name that is not UTF-8");
    }
  };

  function value(type: number, depth: number): void {
    if (type === 8) return void bytes();
    if (type === 7) return check(file[take(1)]! <= 1, "a bool beyond 1");
    if (type !== 9) {
      const width = WIDTHS[type];
      check(width !== undefined, "an unknown type of value");
      return void take(width);
    }
    if (depth === 4) throw new Undecided("arrays in arrays in arrays");
    const inner = u32(), count = length();
    check(count <= BigInt(file.length - at), "an array beyond the end");
    check(inner <= 12, "an unknown type of elements");
    for (let i = 0n; i < count; i++) value(inner, depth + 1);
  }

  const tensorCount = length(), keyCount = length();
  const keys: string[] = [];
  let alignment = 32n;
  for (let i = 0n; i < keyCount; i++) {
    const key = text();
    check(key !== "" && !keys.includes(key), "a key without name, or twice");
    keys.push(key);
    const type = u32(), from = at;
    value(type, 0);
    if (key !== "general.alignment") continue;
    check(type in WIDTHS, "an alignment that is no number");
    if (type !== 4) throw new Undecided("an alignment of another type than the page names");
    alignment = BigInt(view.getUint32(from, true));
    const isPower = alignment > 0n && (alignment & (alignment - 1n)) === 0n;
    check(isPower && alignment % 8n === 0n, "an alignment that is none");
  }
  const table: PlainTensor[] = [];
  for (let i = 0n; i < tensorCount; i++) {
    const name = text();
    check(name !== "" && table.every((other) => other.name !== name), "a tensor's name");
    const rank = u32();
    check(rank <= 4, "too many dims");
    const dims = Array.from({ length: rank }, () => version === 1 ? BigInt(u32()) : u64());
    const type = u32(), offset = u64(), block = BLOCKS[type];
    if (!block) throw new Undecided(`type ${type}`);
    check((dims[0] ?? 1n) % block[0] === 0n, "rows that are no whole blocks");
    const count = dims.reduce((product, dim) => product * dim, 1n);
    const largest = dims.reduce((product, dim) => product * (dim || 1n), 1n);
    check(largest < 2n ** 53n, "a shape beyond all files");
    table.push({ name, dims, type, offset, bytes: count / block[0] * block[1] });
  }
  const start = (BigInt(at) + alignment - 1n) / alignment * alignment;
  const tensors = table.map((tensor) => ({ ...tensor, offset: start + tensor.offset }));
  for (const { offset, bytes } of tensors) {
    check((offset - start) % alignment === 0n, "an offset between places");
    check(offset + bytes <= BigInt(file.length), "a tensor beyond the end");
  }
  const filled = tensors.filter(({ bytes }) => bytes > 0n);
  for (const a of filled) {
    const overlaps = filled.some((b) =>
      a !== b && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
    );
    check(!overlaps, "tensors that overlap");
  }
  return { keys, tensors };
}
