// Lists of strings, measured, checked and hashed by a small WASM module (assembly/text/strings.ts says why). It sees a list
// through a window, because memory that is new to a process costs more than what is done with it.

import { OutOfMemoryError } from "./allocator.ts";
import strings from "./strings.gen.json" with { type: "json" };

/** Strings in a run of bytes: before each a length field. */
export interface StringRun {
  readonly bytes: Uint8Array;
  /** Where each begins in `bytes`; one more entry, as if another string followed. */
  readonly starts: Uint32Array;
  /** Bytes of a length field. */
  readonly lengthBytes: number;
}

interface StringExports {
  measure(...numbers: number[]): number;
  hash(...numbers: number[]): number;
  enter(...numbers: number[]): number;
  without(...numbers: number[]): number;
}

/** Bytes and strings that are looked at in one call. */
const WINDOW = 128 * 1024;
const MOST = 16 * 1024;
/** Addresses: of the probes that are left, of bytes, of places, and of hashes, all of them where a table is made. */
const PROBES = 0, BYTES = 64, STARTS = BYTES + WINDOW, HASHES = STARTS + 4 * (MOST + 1);
const PAGE = 65536, PAGES = Math.ceil((HASHES + 4 * MOST) / PAGE);

let known: ReturnType<typeof start> | undefined;

/** @throws {OutOfMemoryError} If the system refuses the window. */
function start() {
  const memory = reserve();
  const module = new WebAssembly.Module(Uint8Array.fromBase64(strings.module));
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  return viewsOf(memory, exports as unknown as StringExports);
}

function viewsOf(memory: WebAssembly.Memory, run: StringExports) {
  return {
    memory,
    run,
    window: new Uint8Array(memory.buffer, BYTES, WINDOW),
    places: new Uint32Array(memory.buffer, STARTS, MOST + 1),
  };
}

/** A memory with room for a window, or with room for so many bytes. @throws {OutOfMemoryError} */
function reserve(bytes = PAGES * PAGE, memory?: WebAssembly.Memory): WebAssembly.Memory {
  try {
    if (!memory) return new WebAssembly.Memory({ initial: bytes / PAGE });
    const missing = Math.ceil((bytes - memory.buffer.byteLength) / PAGE);
    if (missing > 0) memory.grow(missing);
    return memory;
  } catch (cause) {
    throw new OutOfMemoryError(
      `Cannot reserve ${bytes} bytes of WASM memory: the system refuses`,
      { cause },
    );
  }
}

/**
 * Notes where the strings of a list begin, as far as its bytes are there.
 *
 * @returns How many are whole; behind them a place is noted as if another one followed.
 * @throws {OutOfMemoryError} If the system refuses WASM memory; of all that is done with a list this is the first.
 */
export function measureStrings(
  { bytes, starts, lengthBytes }: StringRun,
  { from, base }: {
    /** Strings whose places are known; that of the next one is noted, too. */
    readonly from: number;
    /** Where the list begins in `bytes`. */
    readonly base: number;
  },
): number {
  const { run, window, places } = known ??= start();
  const count = starts.length - 1;
  for (; from < count;) {
    const at = starts[from] - lengthBytes;
    const part = bytes.subarray(base + at, base + at + WINDOW);
    window.set(part);
    const most = Math.min(MOST, count - from);
    const found = run.measure(BYTES, BYTES + part.length, STARTS, most, at, lengthBytes);
    if (found === 0) break;
    starts.set(places.subarray(0, found + 1), from);
    from += found;
  }
  return from;
}

/** The hash of `length` bytes. FNV-1a, with the high bits folded in: neighbours differ in their last byte only. */
export function hashOf(bytes: Uint8Array, length: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  return hash ^ (hash >>> 15);
}

/** Strings by their hashes: an open-addressing table of places. */
export interface HashTable {
  /** {@linkcode hashOf} of each string. */
  readonly hashes: Int32Array;
  /** A power of two of them: 0 is empty, n + 1 is string n; equal strings are there once, by the first. */
  readonly slots: Int32Array;
  /** Bytes of the longest string. */
  readonly longest: number;
}

/**
 * Enters strings into a table with two slots for each at least.
 *
 * @param most Steps from slot to slot that all together may take.
 * @param isSame Whether two strings of the list are equal; asked for those of one hash.
 * @returns Undefined if it takes more.
 */
export function tableOf(
  strings: StringRun,
  { most, isSame }: {
    readonly most: number;
    readonly isSame: (string: number, other: number) => boolean;
  },
): HashTable | undefined {
  const count = strings.starts.length - 1;
  let size = 16;
  while (size < 2 * count) size *= 2;
  const at = HASHES + 4 * count, mask = size - 1;
  known ??= start();
  const { run } = known = viewsOf(reserve(at + 4 * size, known.memory), known.run);
  const { buffer } = known.memory;
  let longest = 0;
  inWindows(strings, {
    several(first, list) {
      longest = Math.max(longest, run.hash(...list, HASHES + 4 * first));
    },
    long(i, bytes) {
      new Int32Array(buffer, HASHES, count)[i] = hashOf(bytes, bytes.length);
      longest = Math.max(longest, bytes.length);
    },
  });
  const hashes = new Int32Array(buffer, HASHES, count);
  const slots = new Int32Array(buffer, at, size).fill(0);
  const left = new Uint32Array(buffer, PROBES, 1).fill(most);
  // What has the hash of another one is looked at here.
  for (let i = 0; (i = run.enter(HASHES, i, count, at, mask, PROBES)) < count; i++) {
    let slot = hashes[i] & mask;
    for (let other = slots[slot]; other !== 0; other = slots[slot]) {
      if (hashes[other - 1] === hashes[i] && isSame(i, other - 1)) break;
      if (left[0]-- === 0) return undefined;
      slot = (slot + 1) & mask;
    }
    if (slots[slot] === 0) slots[slot] = i + 1;
  }
  return { hashes: hashes.slice(), slots: slots.slice(), longest };
}

/** Place of the first string that has no such byte behind its first one, or -1. */
export function stringWithout(strings: StringRun, byte: number): number {
  const { run } = known ??= start();
  let place = -1;
  inWindows(strings, {
    several(first, list) {
      const found = place < 0 ? run.without(...list, byte) : -1;
      if (found >= 0) place = first + found;
    },
    long: (i, bytes) => void (place < 0 && bytes.indexOf(byte, 1) < 0 && (place = i)),
  });
  return place;
}

type List = readonly [bytes: number, base: number, starts: number, count: number, length: number];

/** Shows all strings in order: as many as a window holds, by what the module's functions take, or a long one. */
function inWindows(
  { bytes, starts, lengthBytes }: StringRun,
  { several, long }: {
    readonly several: (first: number, list: List) => void;
    readonly long: (i: number, bytes: Uint8Array) => void;
  },
): void {
  const { window, places } = known ??= start();
  const count = starts.length - 1;
  for (let first = 0; first < count;) {
    const base = starts[first], most = Math.min(count, first + MOST);
    let end = first;
    for (let step = MOST; step > 0; step >>= 1) {
      if (end + step <= most && starts[end + step] - lengthBytes - base <= WINDOW) end += step;
    }
    if (end === first) long(first, bytes.subarray(base, starts[++end] - lengthBytes));
    else {
      window.set(bytes.subarray(base, starts[end] - lengthBytes));
      places.set(starts.subarray(first, end + 1));
      several(first, [BYTES, base, STARTS, end - first, lengthBytes]);
    }
    first = end;
  }
}
