// Loops that make numbers of the codes of many blocks: one for each way in which codes lie, over all blocks of a run, so that
// nothing is asked within them that a format says once. Two codes of a byte are taken together, which is a sixth
// faster than one after the other. What all loops go by stands in arrays of this module, because V8 compiles the addresses of
// arrays that never change into a loop, and looks at those of others whenever it enters one.
// Places are cut to 32 bits where they are added, for then nothing is checked for overflow, a third of the time.
//   x = step · value of the code + minimum; adding a minimum of -0 changes no number

import type { CodeBlock } from "./block.ts";
import { type BlockSizes, blocksOfRun, codeReader, fileBytes, RUN_COLUMNS } from "./code_reader.ts";
import { bitsBelow, type CodeField } from "./fields.ts";

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
  /** Which groups of a block runs are in. */
  readonly groups: Uint8Array;
  readonly stripes: readonly Stripe[];
  /** Of the upper field. */
  readonly upper: readonly Stripe[];
}

/** Columns of which codes are the same bits of successive bytes, all in one group. */
interface Stripe {
  readonly columns: number;
  readonly byte: number;
  readonly shift: number;
  readonly mask: number;
  readonly below: number;
  readonly isLast: boolean;
}

/** How the codes of a block lie whose groups have so many columns. */
export function lieOf(block: CodeBlock, sizes: BlockSizes, group: number): Lie {
  const { blockSize } = sizes;
  const fields = "pack" in block.codes ? [] : block.codes, [low, high] = fields;
  const { at: start = 0, run = 1, bits = 0 } = low ?? {};
  const runs = Math.ceil(blockSize / run), isPaired = !high && bits === 4;
  const groups = Uint8Array.from({ length: runs }, (_, i) => Math.floor(i * run / group));
  const lie = { ...sizes, ...{ group, start, run, groups, stripes: [], upper: [] } };
  if (isPaired && run > 1 && run <= group) return { ...lie, decode: nibbleRuns };
  if (isPaired && run === 1 && blockSize % 2 === 0) return { ...lie, decode: nibblePairs };
  if (bits === 8) return { ...lie, decode: wholeBytes };
  if (low && fields.every(({ run }) => run > 1)) {
    const [stripes = [], upper = []] = stripesOf(fields, blockSize, group);
    return { ...lie, stripes, upper, decode: high ? twoStripes : oneStripe };
  }
  return { ...lie, decode: readBefore(block, sizes) };
}

function stripesOf(fields: readonly CodeField[], blockSize: number, group: number): Stripe[][] {
  const columns = Math.min(group, ...fields.map(({ run }) => run)), below = bitsBelow(fields);
  return fields.map(({ at, bits, run }, f) =>
    Array.from({ length: blockSize / columns }, (_, i) => {
      const first = i * columns, each = 8 / bits, turn = Math.floor(first / run);
      const byte = at + Math.floor(turn / each) * run + first % run;
      const isLast = (first + columns) % group === 0;
      const mask = (1 << bits) - 1;
      return { columns, byte, shift: turn % each * bits, mask, below: below[f]!, isLast };
    })
  );
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

/** Two neighbouring columns a byte. */
const nibblePairs: DecodeLoop = (bytes, at, blocks, out, o, g, lie) => {
  const { start, blockSize, blockBytes, group } = lie, half = group >> 1;
  for (let b = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    let from = (at + start) | 0;
    for (const end = (o + blockSize) | 0; o < end; o = (o + group) | 0, g++) {
      const d = steps[g]!, m = minima[g]!;
      for (let j = 0; j < half; j++) {
        const pair = bytes[(from + j) | 0]!, to = (o + j + j) | 0;
        out[to] = d * values[pair & 15]! + m;
        out[(to + 1) | 0] = d * values[pair >> 4]! + m;
      }
      from = (from + half) | 0;
    }
  }
};

/** Runs of bytes with nibbles of two runs of columns, each in one group. */
const nibbleRuns: DecodeLoop = (bytes, at, blocks, out, o, g, lie) => {
  const { start, run, groups, blockBytes } = lie, all = lie.blockSize / lie.group;
  for (let b = 0; b < blocks; b++, at = (at + blockBytes) | 0, g += all) {
    for (let i = 0, from = (at + start) | 0; i < groups.length; i += 2) {
      const low = g + groups[i]!, high = g + groups[i + 1]!, other = (o + run) | 0;
      const d = steps[low]!, m = minima[low]!, d2 = steps[high]!, m2 = minima[high]!;
      for (let j = 0; j < run; j++) {
        const pair = bytes[(from + j) | 0]!;
        out[(o + j) | 0] = d * values[pair & 15]! + m;
        out[(other + j) | 0] = d2 * values[pair >> 4]! + m2;
      }
      o = (other + run) | 0;
      from = (from + run) | 0;
    }
  }
};

/** One field in runs. */
const oneStripe: DecodeLoop = (bytes, at, blocks, out, o, g, { stripes, blockBytes }) => {
  for (let b = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    for (let i = 0; i < stripes.length; i++) {
      const { columns, byte, shift, mask, isLast } = stripes[i]!;
      const from = (at + byte) | 0, d = steps[g]!, m = minima[g]!;
      for (let j = 0; j < columns; j++) {
        out[(o + j) | 0] = d * values[(bytes[(from + j) | 0]! >> shift) & mask]! + m;
      }
      o = (o + columns) | 0;
      if (isLast) g++;
    }
  }
};

/** Two fields in runs. */
const twoStripes: DecodeLoop = (bytes, at, blocks, out, o, g, { stripes, upper, blockBytes }) => {
  for (let b = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    for (let i = 0; i < stripes.length; i++) {
      const { columns, byte, shift, mask, isLast } = stripes[i]!, from = (at + byte) | 0;
      const { byte: over, shift: turn, mask: bits, below } = upper[i]!, above = (at + over) | 0;
      const d = steps[g]!, m = minima[g]!;
      for (let j = 0; j < columns; j++) {
        const low = (bytes[(from + j) | 0]! >> shift) & mask;
        const high = (bytes[(above + j) | 0]! >> turn) & bits;
        out[(o + j) | 0] = d * values[low | (high << below)]! + m;
      }
      o = (o + columns) | 0;
      if (isLast) g++;
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
    wholeBytes(codes, 0, blocks, out, o, g, { ...lie, start: 0, blockBytes: blockSize });
  };
}
