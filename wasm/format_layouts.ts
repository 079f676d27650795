// How the packer is told of a number format: its layout, and where a block of a file has its codes and scales
// (quant/block.ts). Those that models come in most often have packers of their own, for four rows at once.

import { type CodeBlock, hasFields } from "../quant/block.ts";
import { CODE_PACKINGS, type CodeField, type CodePacking } from "../quant/fields.ts";
import { pairedScales } from "../quant/k_scales.ts";
import { formats, getFormat, ROW_FAMILIES } from "../quant/mod.ts";
import { SCALE_KIND_NAMES, type ScaleSource } from "../quant/scale_kinds.ts";
import { isSignedBytes, LAYOUTS_BY_FORMAT, type WeightLayout } from "./weight_layout.ts";

/** Floats, and formats whose bytes the packer knows (assembly/pack/four.ts) or that it has loops of their own for. */
const KNOWN: ReadonlySet<string> = new Set([
  ...["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "NB4", "Q4_K", "Q5_K", "Q6_K"],
  "TQ1_0",
]);

/** What the packer has to know of a block; Q8_LOG has no scales. */
type BlockSource = Pick<CodeBlock, "codes" | "signed" | "offset"> & Partial<CodeBlock>;

const BYTES: BlockSource = { codes: [{ at: 0, bits: 8, run: 1 }], signed: true };

/** Layout and source of a format. */
export interface FormatLayout {
  readonly layout: WeightLayout;
  /** Whether the packer knows the order of the bytes. */
  readonly isKnown: boolean;
  /** Absent for floats and grid points. */
  readonly source?: BlockSource;
}

/** Layout and source of a number format, or undefined if no kernel reads that format. */
export function formatLayout(name: string): FormatLayout | undefined {
  const family = name.replace(/_[1-9]\d*$/, ""), isRow = ROW_FAMILIES.includes(family);
  const layout = LAYOUTS_BY_FORMAT.get(isRow ? family : name);
  if (!layout) return undefined;
  const isKnown = KNOWN.has(name) || layout.points !== undefined;
  // Rows of 64 stand for all.
  const { block } = getFormat(isRow && name === family ? `${name}_64` : name);
  if (layout.kind === "float" || block && "grid" in block) return { layout, isKnown };
  const { integers } = block?.scales ?? {};
  if (typeof integers === "function" && integers !== pairedScales) return undefined;
  return { layout, isKnown, source: block ?? BYTES };
}

/** Names of the formats with a fixed block that have a layout. */
export function laidOutFormats(): string[] {
  return [...formats.keys()].filter(formatLayout);
}

/** Whether a format has kernels on 8-bit activations. */
export function hasIntegerKernel(format: string): boolean {
  return formatLayout(format)?.layout.kind === "codes";
}

/** Whether codes of a format are signed bytes under a scale for 32 or more, which kernels on 16-bit activations read. */
export function hasSignedBytes(format: string): boolean {
  const layout = formatLayout(format)?.layout;
  return layout !== undefined && isSignedBytes(layout);
}

/** A field as a word: byte, then the logarithms of its bits and of a run, four bits each. */
function fieldWord({ at, bits, run }: CodeField): number {
  return at | (Math.log2(bits) << 16) | (Math.log2(run) << 20);
}

/** Set in the word of unsigned bytes, which are kept less 128. */
const UNSIGNED = 1 << 24;

/** What the packer is told of codes: two fields, or the number of a packing and its byte. */
function codeWords(source: BlockSource): [number, number] {
  if (!hasFields(source)) {
    const { name, at } = source.codes as CodePacking;
    return [at | ((1 + CODE_PACKINGS.indexOf(name)) << 25), 0];
  }
  const [low, high] = source.codes;
  const flag = low!.bits === 8 && !source.signed ? UNSIGNED : 0;
  return [fieldWord(low!) | flag, high ? fieldWord(high) : 0];
}

/** Operands by which the packer is told of blocks. */
export function sourceNumbers(format: string, source: BlockSource) {
  const { blockSize, blockBytes } = getFormat(format);
  // Codes without scales are as good as blocks that fill a cell.
  const times = blockSize < 16 ? 32 / blockSize : 1;
  const [codes, codes_above] = codeWords(source);
  return {
    ...{ codes, codes_above, ...scaleNumbers(source.scales, source.offset) },
    ...{ block_size: times * blockSize, block_bytes: times * blockBytes },
  };
}

/** Kind of scales, one more than its place among all; its floats; fields of its integers, and what is subtracted. */
function scaleNumbers(source: ScaleSource | undefined, offset = 0) {
  if (!source) return { scales: 0, floats: 0, integers: 0, integers_above: 0, offset: 0 };
  const { kind, floats: [first = 0, second = 0] = [], integers = 0 } = source;
  const fields: readonly CodeField[] = typeof integers === "object"
    ? integers.fields
    : [{ at: typeof integers === "number" ? integers : 0, bits: 8, run: 1 }];
  return {
    ...{ scales: 1 + SCALE_KIND_NAMES.indexOf(kind), floats: first | (second << 16) },
    ...{ integers: fieldWord(fields[0]!), integers_above: fields[1] ? fieldWord(fields[1]) : 0 },
    // Of scales; of codes where their zero stands beside the scale.
    offset: typeof integers === "object" ? integers.offset : kind === "f" ? offset : 0,
  };
}
