// The strings of a GGUF array as they lie in the file. Vocabularies have up to 262,144 of them and 49,000 merges,
// and who loads a model asks for a few hundred: decoding them all took a tenth of the time to load one, and
// the strings were most of what the garbage collector had to move meanwhile. So they are decoded when asked for.
//
// All at once they are decoded in one call, length fields included: a length field is eight ASCII characters
// (one of 128 or more is blanked first), which also keeps strings apart: what is not valid alone cannot become
// valid with its neighbour. Pieces are then cut by counting.
//
// Vocabularies hold parts of characters: bytes that are not UTF-8 survive as U+DC80…U+DCFF, the way
// Python's "surrogateescape" (PEP 383) does it; `stringBytes` gives the exact bytes back.

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** A list of strings that are decoded when asked for. */
export class StringTable {
  /** The run in the file: for each string a length field, then its bytes. */
  readonly bytes: Uint8Array;
  /** Where each string begins in `bytes`; one more entry, as if another string followed. */
  readonly starts: Uint32Array;
  /** Bytes of a length field. */
  readonly lengthBytes: number;
  #all: readonly string[] | undefined;

  constructor(bytes: Uint8Array, starts: Uint32Array, lengthBytes: number) {
    this.bytes = bytes;
    this.starts = starts;
    this.lengthBytes = lengthBytes;
  }

  /** Number of strings. */
  get length(): number {
    return this.starts.length - 1;
  }

  /** A string; undefined where there is none. */
  get(index: number): string | undefined {
    if (this.#all) return this.#all[index];
    if (!(index >= 0 && index < this.length)) return undefined;
    return decodeText(this.bytes.subarray(this.starts[index], this.endOf(index)));
  }

  /** Where a string ends in `bytes`. */
  endOf(index: number): number {
    return this.starts[index + 1] - this.lengthBytes;
  }

  /** All strings. */
  all(): readonly string[] {
    return this.#all ??= this.#decode();
  }

  #decode(): string[] {
    const { bytes, starts, lengthBytes, length } = this;
    for (let i = 0; i < length; i++) {
      if (this.endOf(i) - starts[i] < 0x80) continue;
      bytes.fill(0, starts[i] - lengthBytes, starts[i]);
    }
    const text = tryDecode(bytes);
    if (text === undefined) {
      return Array.from({ length }, (_, i) => decodeText(bytes.subarray(starts[i], this.endOf(i))));
    }
    const strings = new Array<string>(length);
    let at = 0;
    for (let i = 0; i < length; i++) {
      at += lengthBytes;
      const end = this.endOf(i);
      let units = 0;
      for (let j = starts[i]; j < end; j++) {
        const byte = bytes[j];
        if ((byte & 0xc0) !== 0x80) units += byte >= 0xf0 ? 2 : 1;
      }
      strings[i] = text.slice(at, at + units);
      at += units;
    }
    return strings;
  }
}

/** Decodes UTF-8; undefined if it is not valid. */
export function tryDecode(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Bytes of a string up to which a loop over them is faster than a call of the decoder. */
const SHORT = 24;

/** Decodes valid UTF-8 as it is and every other byte `b` as U+DC00 + b. */
export function decodeText(bytes: Uint8Array): string {
  if (bytes.length <= SHORT) {
    let bits = 0;
    for (let i = 0; i < bytes.length; i++) bits |= bytes[i];
    if (bits < 0x80) return String.fromCharCode.apply(null, bytes as unknown as number[]);
  }
  const whole = tryDecode(bytes);
  if (whole !== undefined) return whole;
  let text = "";
  for (let i = 0; i < bytes.length;) {
    const length = sequenceLength(bytes[i]);
    const piece = length > 0 ? tryDecode(bytes.subarray(i, i + length)) : undefined;
    text += piece ?? String.fromCharCode(0xdc00 + bytes[i]);
    i += piece === undefined ? 1 : length;
  }
  return text;
}

// Bytes of the sequence that a lead byte opens; 0 for bytes that cannot lead.
function sequenceLength(lead: number): number {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

/** The exact bytes of a GGUF string, stray bytes included. */
export function stringBytes(text: string): Uint8Array {
  if (text.isWellFormed()) return encoder.encode(text);
  const bytes: number[] = [];
  for (const character of text) {
    const code = character.codePointAt(0)!;
    if (code >= 0xdc80 && code <= 0xdcff) bytes.push(code - 0xdc00);
    else bytes.push(...encoder.encode(character));
  }
  return Uint8Array.from(bytes);
}
