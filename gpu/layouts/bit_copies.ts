// Blocks of which every bit goes from some place in the file to some place in a plane: whole bytes are moved as they are,
// four at a time where they are neighbours, others by parts.

import { SIGNS } from "../../quant/points.ts";

/** Bits of a block: from where in the file, to where in the plane; so many, or seven signs that become eight. */
export interface BitCopy {
  readonly from: number;
  readonly to: number;
  readonly bits: number;
  /** Of seven signs: the eighth makes the number of minus signs even. */
  readonly completed?: boolean;
}

/** Copies so many blocks, of which the first is at byte `at`, to `out` from byte `to` on, which is zeros. */
export type BlockCopier = (
  bytes: Uint8Array,
  at: number,
  blocks: number,
  out: Uint8Array,
  to: number,
) => void;

/** The copier of blocks of so many bytes each in the file and in the plane. */
export function blockCopier(
  copies: readonly BitCopy[],
  { file, plane }: { readonly file: number; readonly plane: number },
): BlockCopier {
  const { fours, ones, parts, signs } = compiled(copies);
  return (bytes, at, blocks, out, to) => {
    for (let b = 0; b < blocks; b++, at = (at + file) | 0, to = (to + plane) | 0) {
      for (let i = 0; i < fours.length; i += 3) {
        let from = (at + fours[i]!) | 0, start = (to + fours[i + 1]!) | 0;
        for (const end = (start + fours[i + 2]!) | 0; start < end;) {
          out[start] = bytes[from]!;
          out[(start + 1) | 0] = bytes[(from + 1) | 0]!;
          out[(start + 2) | 0] = bytes[(from + 2) | 0]!;
          out[(start + 3) | 0] = bytes[(from + 3) | 0]!;
          start = (start + 4) | 0;
          from = (from + 4) | 0;
        }
      }
      for (let i = 0; i < ones.length; i += 2) {
        out[(to + ones[i + 1]!) | 0] = bytes[(at + ones[i]!) | 0]!;
      }
      for (let i = 0; i < parts.length; i += 6) {
        const low = bytes[(at + parts[i]!) | 0]!, high = bytes[(at + parts[i + 1]!) | 0]!;
        const part = ((low | (high << 8)) >> parts[i + 2]!) & parts[i + 5]!;
        out[(to + parts[i + 3]!) | 0]! |= part << parts[i + 4]!;
      }
      for (let i = 0; i < signs.length; i += 4) {
        const low = bytes[(at + signs[i]!) | 0]!, high = bytes[(at + signs[i + 1]!) | 0]!;
        out[(to + signs[i + 3]!) | 0] = SIGNS[((low | (high << 8)) >> signs[i + 2]!) & 127]!;
      }
    }
  };
}

/** Copies as the numbers that the loops go by; neighbours that stay neighbours are one. */
function compiled(copies: readonly BitCopy[]) {
  const fours: number[] = [], ones: number[] = [], parts: number[] = [], signs: number[] = [];
  const joined: BitCopy[] = [];
  // Nothing is read behind the last byte.
  const source = (from: number, bits: number) => [from >> 3, (from + bits - 1) >> 3, from & 7];
  for (const copy of copies.toSorted((a, b) => a.to - b.to)) {
    const { from, to, bits, completed } = copy, last = joined.at(-1);
    if (completed) signs.push(...source(from, 7), to >> 3);
    else if (last && last.from + last.bits === from && last.to + last.bits === to) {
      joined[joined.length - 1] = { ...last, bits: last.bits + bits };
    } else joined.push(copy);
  }
  for (const { from, to, bits } of joined) {
    const isWhole = from % 8 === 0 && to % 8 === 0, whole = isWhole ? bits >> 3 : 0;
    if (whole > 3) fours.push(from >> 3, to >> 3, whole & -4);
    for (let i = whole & -4; i < whole; i++) ones.push((from >> 3) + i, (to >> 3) + i);
    for (let done = 8 * whole; done < bits;) {
      const place = to + done, count = Math.min(8 - place % 8, bits - done);
      parts.push(...source(from + done, count), place >> 3, place & 7, (1 << count) - 1);
      done += count;
    }
  }
  return {
    fours: Int32Array.from(fours),
    ones: Int32Array.from(ones),
    parts: Int32Array.from(parts),
    signs: Int32Array.from(signs),
  };
}
