// What most of Inferflow's blocks share: f16 base and f16 scale, then the codes, packed in a way of their
// own; w' = code * scale + base.

import { type AffineGrid, encodeAffine } from "../affine.ts";
import { checkFinite, parameterCode } from "../finite.ts";
import type { NumberFormat } from "../format.ts";
import { readF16 } from "../half.ts";

/** How codes lie behind the header. */
export interface CodePacking {
  /** Bytes of a block's codes. */
  readonly bytes: number;
  /** Writes a block's codes from `at` on; the bytes there are zero. */
  pack(codes: Uint8Array, out: Uint8Array, at: number): void;
  /** Reads a block's codes from `at` on. */
  unpack(bytes: Uint8Array, at: number, codes: Uint8Array): void;
}

/** One of Inferflow's formats. */
export interface InferflowBlock {
  readonly name: string;
  readonly blockSize: number;
  /** Levels of the paper. */
  readonly grid: AffineGrid;
  /** Levels of the upstream program; default those of the paper. */
  readonly upstream?: AffineGrid;
  readonly packing: CodePacking;
}

/** The format of a description. */
export function defineInferflowBlock(
  { name, blockSize, grid, upstream = grid, packing }: InferflowBlock,
): NumberFormat {
  const blockBytes = 4 + packing.bytes;
  return {
    name,
    blockSize,
    blockBytes,
    decode(bytes, out) {
      const codes = new Uint8Array(blockSize);
      for (let b = 0, o = 0; o < out.length; b += blockBytes, o += blockSize) {
        const base = readF16(bytes, b);
        const scale = readF16(bytes, b + 2);
        packing.unpack(bytes, b + 4, codes);
        for (let j = 0; j < blockSize; j++) out[o + j] = codes[j]! * scale + base;
      }
    },
    grid: {
      codes: grid.top + 1,
      write(codes, out, at) {
        out.fill(0, at + 4, at + blockBytes);
        packing.pack(codes, out, at + 4);
      },
    },
    encode(values, out, { levels = "paper" } = {}) {
      checkFinite(name, values);
      const chosen = levels === "paper" ? grid : upstream;
      const codes = new Uint8Array(blockSize);
      for (let b = 0, o = 0; o < values.length; b += blockBytes, o += blockSize) {
        const { base, scale } = encodeAffine(values, o, codes, chosen);
        writeCode(out, b, parameterCode(name, base, o));
        writeCode(out, b + 2, parameterCode(name, scale, o));
        out.fill(0, b + 4, b + blockBytes);
        packing.pack(codes, out, b + 4);
      }
    },
  };
}

function writeCode(out: Uint8Array, at: number, code: number): void {
  out[at] = code & 0xff;
  out[at + 1] = code >> 8;
}
