// The byte alphabet of GPT-2: each of the 256 bytes is written as one printable character, so that a
// vocabulary of byte strings can live in text files. 188 bytes keep their Latin-1 character, the other
// 68 (controls, blanks, soft hyphen) take U+0100 and up in order. Source: GPT-2's encoder.py.

function isPrintable(byte: number): boolean {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

function buildByteChars(): readonly string[] {
  const chars: string[] = [];
  let shifted = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    chars.push(String.fromCharCode(isPrintable(byte) ? byte : shifted++));
  }
  return chars;
}

/** The character of each byte. */
export const BYTE_CHARS: readonly string[] = buildByteChars();

// By code of the character, its byte; -1 for characters outside the alphabet.
const CHAR_BYTES: Int16Array = new Int16Array(0x200).fill(-1);
for (const [byte, char] of BYTE_CHARS.entries()) CHAR_BYTES[char.charCodeAt(0)] = byte;

const ENCODER = new TextEncoder();

/**
 * The bytes of a token written in the byte alphabet. A token with any character outside the alphabet
 * (they occur among tokens that were added to a vocabulary by hand) stands for its own UTF-8.
 */
export function bytesOfByteLevelText(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    const byte = CHAR_BYTES[text.charCodeAt(i)] ?? -1;
    if (byte < 0) return ENCODER.encode(text);
    bytes[i] = byte;
  }
  return bytes;
}
