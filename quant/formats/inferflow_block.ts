// What most of Inferflow's blocks share: f16 base and f16 scale, then the codes, packed in a way of their
// own; w' = code * scale + base.

import { type AffineGrid, encodeAffine } from "../affine.ts";
import type { CodeBlock } from "../block.ts";
import { defineBlockFormat } from "../block_format.ts";
import { checkFinite, parameterCode } from "../finite.ts";
import type { EncodingBounds, NumberFormat } from "../format.ts";
import { writeU16 } from "../half.ts";

/** One of Inferflow's formats. */
export interface InferflowBlock extends Pick<CodeBlock, "codes"> {
  readonly name: string;
  readonly blockSize: number;
  /** Of a block. */
  readonly blockBytes: number;
  /** Levels of the paper. */
  readonly grid: AffineGrid;
  /** Levels of the upstream program; default those of the paper. */
  readonly upstream?: AffineGrid;
}

/** The format of a description. */
export function defineInferflowBlock(
  { grid, upstream = grid, ...block }: InferflowBlock,
): NumberFormat {
  const { name, blockSize, blockBytes } = block;
  return defineBlockFormat({
    ...block,
    scales: { kind: "dm", floats: [2, 0] },
    grid: { codes: grid.top + 1 },
    bounds: boundsOf(grid),
    encode({ values, out, options: { levels = "paper" }, writeCodes }) {
      checkFinite(name, values);
      const chosen = levels === "paper" ? grid : upstream;
      const codes = new Uint8Array(blockSize);
      for (let b = 0, o = 0; o < values.length; b += blockBytes, o += blockSize) {
        const { base, scale } = encodeAffine(values, o, codes, chosen);
        writeU16(out, b, parameterCode(name, base, o));
        writeU16(out, b + 2, parameterCode(name, scale, o));
        writeCodes(codes, out, b);
      }
    },
  });
}

/** Half a step of the range, which is twice the extreme, and what base and scale lose in f16. */
function boundsOf({ top, midpoint }: AffineGrid): EncodingBounds {
  if (!midpoint) return { error: 1 / top + 0.002 };
  // Levels in the middle of cells are half a step off the ends.
  return { error: 1 / (top + 1) + 0.002, shrink: 1 / (top + 1) };
}
