// Layouts of the formats of Transformer-Lite (E0M4, INT4), LlamaF (LF8) and ML Drift (I8PC, I4PC), of Inferflow's
// format of a tensor (Q8_GL), and of the 4 bits of ONNX graphs (NB4).

import { type BlockReader, type CodeLayout, defineCodeLayout, type Span } from "./code_layout.ts";
import { byteQuads, copyBytes, nibbleQuads, splitNibbleQuads, wordAt } from "./quads.ts";

/** Bytes of scales, then nibbles in sequence. */
function nibbleBlocks(columns: number): BlockReader {
  return {
    bytes: 4 + columns / 2,
    columns,
    codes: (file, at, group, quads) => nibbleQuads(file, at + 4 + 16 * group, quads),
    scales: (file, at, plane, to) => copyBytes(file, at, plane, to, 4),
  };
}

/** A float32 scale, then signed bytes. */
function byteBlocks(columns: number): BlockReader {
  return {
    bytes: 4 + columns,
    columns,
    codes: (file, at, group, quads) => byteQuads(file, at + 4 + 32 * group, quads),
    scales: (file, at, plane, to) => copyBytes(file, at, plane, to, 4),
  };
}

/** Q8_GL: scales of both sides, then codes whose highest bit is a sign; they become signed bytes. */
function sidedRows(columns: number): BlockReader {
  return {
    bytes: 8 + columns,
    columns,
    codes(file, at, group, quads) {
      for (let q = 0; q < 8; q++) {
        const word = wordAt(file, at + 8 + 32 * group + 4 * q);
        let quad = 0;
        for (let i = 0; i < 4; i++) {
          const code = (word >>> (8 * i)) & 255;
          quad |= (code < 128 ? code : (128 - code) & 255) << (8 * i);
        }
        quads[q] = quad;
      }
    },
    scales: (file, at, plane, to) => copyBytes(file, at, plane, to, 8),
  };
}

/** NB4: float32 scale and minimum, then nibbles of columns j and j + 16. */
const NB4: BlockReader = {
  bytes: 24,
  columns: 32,
  codes: (file, at, _group, quads) => splitNibbleQuads(file, at + 8, quads),
  scales: (file, at, plane, to) => copyBytes(file, at, plane, to, 8),
};

function perGroup(span: Exclude<Span, "row">): [string, CodeLayout][] {
  const block = nibbleBlocks(span);
  return [
    [`E0M4_G${span}`, defineCodeLayout({ codes: "u4", scales: "e1", span }, block)],
    [`E0M4_G${span}_N2`, defineCodeLayout({ codes: "u4", scales: "e2", span }, block)],
    [`INT4_G${span}`, defineCodeLayout({ codes: "u4", scales: "dz", span }, block)],
  ];
}

/** By name of the format. */
export const PAPER_LAYOUTS: Readonly<Record<string, CodeLayout>> = {
  ...Object.fromEntries(([32, 64, 128, 256] as const).flatMap(perGroup)),
  LF8: defineCodeLayout({ codes: "i8", scales: "f", span: 256 }, byteBlocks(256)),
  NB4: defineCodeLayout({ codes: "u4", scales: "fm" }, NB4),
};

/** By name without the columns, for formats whose block is a row. */
export const ROW_LAYOUTS: Readonly<Record<string, CodeLayout>> = {
  I8PC: defineCodeLayout({ codes: "i8", scales: "f", span: "row" }, byteBlocks),
  I4PC: defineCodeLayout({ codes: "u4", scales: "f", span: "row", offset: 8 }, nibbleBlocks),
  Q8_GL: defineCodeLayout({ codes: "i8", scales: "sides", span: "row" }, sidedRows),
};
