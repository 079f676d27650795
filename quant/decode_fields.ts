// Loops that make numbers of the codes of many blocks: one for each way in which codes lie, over all blocks of a run, so
// that nothing is asked within them that a format says once. Four numbers are made at a time, a third faster than one by
// one. What all loops go by stands in arrays of this module: V8 compiles the addresses of arrays that never change into a
// loop, and looks at those of others whenever it enters one. Places are cut to 32 bits where they are added, which spares
// the check for overflow, a third of the time; nobody decodes two billion numbers at once.
//   x = step · value of the code + minimum; adding a minimum of -0 changes no number

import type { CodeBlock } from "./block.ts";
import { blocksOfRun, codeReader, fileBytes, RUN_COLUMNS } from "./code_reader.ts";
import type { BlockSizes } from "./fields.ts";

// Not exported themselves: exported variables are read anew each time.
const values = new Float64Array(256);
const steps = new Float64Array(RUN_COLUMNS / 16), minima = new Float64Array(steps.length);

/** What codes stand for, and the steps and minima of the groups of a run, which have 16 columns or more. */
export const DECODED = { values, steps, minima, zeros: new Float64Array(steps.length) } as const;

/** Decodes so many blocks from byte `at` on to `out` from `o` on; `g` is the number of their first group. */
type DecodeLoop = (
  bytes: Uint8Array,
  at: number,
  blocks: number,
  out: Float32Array,
  o: number,
  g: number,
  lie: Lie,
) => void;

/** How the codes of a format lie. */
export interface Lie extends BlockSizes {
  /** Columns of a group. */
  readonly group: number;
  readonly decode: DecodeLoop;
  /** Byte of the block at which codes begin that are a field. */
  readonly start: number;
  /** Bytes that hold two runs of columns. */
  readonly run: number;
  /** Columns of a run that are in one group. */
  readonly stripe: number;
  /** Which groups of a block they are in. */
  readonly groups: Uint8Array;
}

/** How the codes of a block lie whose groups have so many columns. */
export function lieOf(block: CodeBlock, sizes: BlockSizes, group: number): Lie {
  const [field, ...others] = "pack" in block.codes ? [] : block.codes, { blockSize } = sizes;
  const { at: start = 0, bits = 8, run = 1 } = field ?? {}, stripe = Math.min(group, run);
  const groups = Uint8Array.from(
    { length: run > 1 ? blockSize / stripe : 0 },
    (_, i) => Math.floor(i * stripe / group),
  );
  const lie = { ...sizes, group, start, run, stripe, groups };
  if (!field || others.length > 0) return { ...lie, decode: readBefore(block, sizes) };
  if (bits === 8) return { ...lie, decode: group % 4 === 0 ? fourBytes : wholeBytes };
  if (bits === 4 && run > 1 && run <= group) return { ...lie, decode: nibbleRuns };
  if (bits === 4 && run === 1 && blockSize % 2 === 0) return { ...lie, decode: nibblePairs };
  return { ...lie, decode: bits === 2 && run > 1 ? pairRuns : readBefore(block, sizes) };
}

/** A byte a code. */
const wholeBytes: DecodeLoop = (bytes, at, blocks, out, o, g, lie) => {
  const { start, blockSize, blockBytes, group } = lie;
  for (let b = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    let from = (at + start) | 0;
    for (const end = (o + blockSize) | 0; o < end; o = (o + group) | 0, g++) {
      const d = steps[g]!, m = minima[g]!;
      for (let j = 0; j < group; j++) {
        out[(o + j) | 0] = d * values[bytes[(from + j) | 0]!]! + m;
      }
      from = (from + group) | 0;
    }
  }
};

/** The same of groups of a multiple of four columns. */
const fourBytes: DecodeLoop = (bytes, at, blocks, out, o, g, lie) => {
  const { start, blockSize, blockBytes, group } = lie;
  for (let b = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    let from = (at + start) | 0;
    for (const last = (o + blockSize) | 0; o < last; g++) {
      const d = steps[g]!, m = minima[g]!;
      for (const end = (o + group) | 0; o < end; o = (o + 4) | 0, from = (from + 4) | 0) {
        out[o] = d * values[bytes[from]!]! + m;
        out[(o + 1) | 0] = d * values[bytes[(from + 1) | 0]!]! + m;
        out[(o + 2) | 0] = d * values[bytes[(from + 2) | 0]!]! + m;
        out[(o + 3) | 0] = d * values[bytes[(from + 3) | 0]!]! + m;
      }
    }
  }
};

/** Two neighbouring columns a byte. */
const nibblePairs: DecodeLoop = (bytes, at, blocks, out, o, g, lie) => {
  const { start, blockSize, blockBytes, group } = lie;
  for (let b = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    let from = (at + start) | 0;
    for (const last = (o + blockSize) | 0; o < last; g++) {
      const d = steps[g]!, m = minima[g]!;
      for (const end = (o + group) | 0; o < end; o = (o + 2) | 0, from = (from + 1) | 0) {
        const pair = bytes[from]!;
        out[o] = d * values[pair & 15]! + m;
        out[(o + 1) | 0] = d * values[pair >> 4]! + m;
      }
    }
  }
};

/** Runs of bytes with nibbles of two runs of columns, each in one group. */
const nibbleRuns: DecodeLoop = (bytes, at, blocks, out, o, g, lie) => {
  const { start, run, groups, blockBytes } = lie, all = lie.blockSize / lie.group;
  for (let b = 0; b < blocks; b++, at = (at + blockBytes) | 0, g += all) {
    let from = (at + start) | 0;
    for (let i = 0; i < groups.length; i += 2) {
      const low = g + groups[i]!, high = g + groups[i + 1]!;
      const d = steps[low]!, m = minima[low]!, d2 = steps[high]!, m2 = minima[high]!;
      for (const end = (o + run) | 0; o < end; o = (o + 2) | 0, from = (from + 2) | 0) {
        const pair = bytes[from]!, next = bytes[(from + 1) | 0]!, other = (o + run) | 0;
        out[o] = d * values[pair & 15]! + m;
        out[(o + 1) | 0] = d * values[next & 15]! + m;
        out[other] = d2 * values[pair >> 4]! + m2;
        out[(other + 1) | 0] = d2 * values[next >> 4]! + m2;
      }
      o = (o + run) | 0;
    }
  }
};

/** The same of bit pairs of four runs. */
const pairRuns: DecodeLoop = (bytes, at, blocks, out, o, g, lie) => {
  const { start, run, stripe, groups, blockBytes } = lie, all = lie.blockSize / lie.group;
  const parts = run / stripe, last = groups.length;
  for (let b = 0; b < blocks; b++, at = (at + blockBytes) | 0, g += all) {
    let from = (at + start) | 0;
    for (let i = 0; i < last; i += 3 * parts) {
      for (const end = i + parts; i < end; i++) {
        const g0 = g + groups[i]!, g1 = g + groups[i + parts]!, g2 = g + groups[i + 2 * parts]!;
        const g3 = g + groups[i + 3 * parts]!, d0 = steps[g0]!, d1 = steps[g1]!, d2 = steps[g2]!;
        const d3 = steps[g3]!,
          m0 = minima[g0]!,
          m1 = minima[g1]!,
          m2 = minima[g2]!,
          m3 = minima[g3]!;
        for (const end = (o + stripe) | 0; o < end; o = (o + 1) | 0, from = (from + 1) | 0) {
          const four = bytes[from]!, second = (o + run) | 0, third = (second + run) | 0;
          out[o] = d0 * values[four & 3]! + m0;
          out[second] = d1 * values[(four >> 2) & 3]! + m1;
          out[third] = d2 * values[(four >> 4) & 3]! + m2;
          out[(third + run) | 0] = d3 * values[four >> 6]! + m3;
        }
      }
      o = (o + 3 * run) | 0;
    }
  }
};

/** Codes that are brought into bytes before. */
function readBefore(block: CodeBlock, sizes: BlockSizes): DecodeLoop {
  const { blockSize } = sizes, read = codeReader(block, sizes);
  const quads = new Int32Array(Math.ceil(blocksOfRun(sizes) * blockSize / 4));
  const codes = new Uint8Array(quads.buffer);
  return (bytes, at, blocks, out, o, g, lie) => {
    read(fileBytes(bytes), at, blocks, quads);
    const decode = lie.group % 4 === 0 ? fourBytes : wholeBytes;
    decode(codes, 0, blocks, out, o, g, { ...lie, start: 0, blockBytes: blockSize });
  };
}
