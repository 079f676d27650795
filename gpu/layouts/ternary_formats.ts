// Layout of TQ1_0, five digits of base 3 a byte: two bits a column would be a fifth more. The planes keep the
// arrangement of the file, in which the digits of a byte are columns far from each other: digit n of bytes 0..31 is
// column 32 n + byte, of bytes 32..47 column 160 + 16 n + byte, of bytes 48..51 column 240 + 4 n + byte. So a group
// of 32 columns is one digit of 32 bytes, two of 16, or one of 16 and four of 4.

import { type CodeLayout, defineCodeLayout, type VectorReader } from "./code_layout.ts";
import { copyBytes } from "./quads.ts";

const DIGITS: VectorReader = {
  bytes: 54,
  columns: 256,
  planes: (file, at, [digits], block) => copyBytes(file, at, digits!, 52 * block, 52),
  scales: (file, at, plane, to) => copyBytes(file, at + 52, plane, to, 2),
};

/** By name of the format. */
export const TERNARY_LAYOUTS: Readonly<Record<string, CodeLayout>> = {
  TQ1_0: defineCodeLayout({ codes: "t5", scales: "d", span: 256, offset: 1 }, DIGITS),
};
