// MXFP4 as published checkpoints store it: codes and exponents in two tensors of bytes. A block of 32 values is 16 bytes
// of codes, value 2j in the low half of byte j and 2j + 1 in the high one, and one exponent. Read as the format of
// quant/formats/mxfp4.ts, which has the exponent in front of the codes and value j beside value j + 16: the numbers stay
// as they are, only their places change while they are read.

import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { countOf, derivedTensor, readUnits } from "../../formats/derived_tensor.ts";

const VALUES = 32;
const CODES = 16;
const BLOCK = 1 + CODES;
/** Blocks that are read at once. */
const PANEL = 4096;

/**
 * Codes U8 […, blocks, 16] and exponents U8 […, blocks] as one tensor […, 32 · blocks].
 *
 * @throws {FormatError} If they are not of this form.
 */
export function joinMxfp4(codes: TensorInfo, exponents: TensorInfo): TensorInfo {
  const outer = codes.shape.slice(0, -1);
  const fits = codes.format === "U8" && exponents.format === "U8" && codes.shape.at(-1) === CODES &&
    outer.join() === exponents.shape.join();
  if (!fits) {
    throw new FormatError(
      `is ${codes.format} [${codes.shape}] beside ${exponents.name}, ${exponents.format} ` +
        `[${exponents.shape}]: codes are U8 [..., blocks, ${CODES}], exponents U8 [..., blocks]`,
      { file: codes.source.name, place: `tensor ${codes.name}` },
    );
  }
  const byteLength = countOf(outer) * BLOCK;
  return derivedTensor(codes, {
    ...{ name: codes.name, label: `${codes.name} as MXFP4`, format: "MXFP4", byteLength },
    shape: [...outer.slice(0, -1), outer.at(-1)! * VALUES],
    readInto: readUnits(
      { length: BLOCK, most: PANEL },
      (...blocks) => readBlocks({ codes, exponents }, ...blocks),
    ),
  });
}

async function readBlocks(
  { codes, exponents }: { readonly codes: TensorInfo; readonly exponents: TensorInfo },
  first: number,
  end: number,
): Promise<ArrayBuffer> {
  const count = end - first;
  const packed = new Uint8Array(count * CODES), scales = new Uint8Array(count);
  await codes.source.readInto(codes.offset + first * CODES, packed);
  await exponents.source.readInto(exponents.offset + first, scales);
  const bytes = new Uint8Array(count * BLOCK);
  for (let block = 0; block < count; block++) {
    const from = block * CODES, to = block * BLOCK;
    bytes[to] = scales[block]!;
    for (let j = 0; j < CODES; j++) {
      // Values j and j + 16 have the same place in their bytes.
      const shift = 4 * (j & 1), at = from + (j >> 1);
      const low = packed[at]! >> shift & 15, high = packed[at + CODES / 2]! >> shift & 15;
      bytes[to + 1 + j] = low | high << 4;
    }
  }
  return bytes.buffer;
}
