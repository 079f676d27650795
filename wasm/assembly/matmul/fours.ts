// Rows of 8 bit, four interleaved, as kernels of four rows read them (gen/fours.ts, gen/tiles.ts): four bytes of each row in turn, then
// the next four bytes of each. Codes, scales, sums and half sums are all whole fours of bytes, so all are where they
// were, times four; where codes have an offset, starts of sums stand in place of sums and half sums. `wide`: codes become
// 16 bits, the two even columns of a quad in all rows before the two odd ones.
// Of the last four three rows are followed by the third again, two and one by themselves.
// Rows of low sums, eight interleaved, lie in planes for tiles that V8 joins (gen/eights_int7.ts): of each four columns those of rows
// 0, 1, 4 and 5 and then of the others, of each scale or sum the low halves of all rows and then the high ones.
import { min } from "../machine/runtime";
import { SUM_START_AT } from "./shared";
import { storeHalves } from "./planes";

@inline function low(a: v128, b: v128): v128 { return v128.shuffle<i32>(a, b, 0, 4, 1, 5); }
@inline function high(a: v128, b: v128): v128 { return v128.shuffle<i32>(a, b, 2, 6, 3, 7); }

/** Stores a vector of bytes as two of 16 bits, of its even bytes and of its odd ones, `apart` bytes apart. */
@inline function storeWide(bytes: v128, to: usize, apart: usize): void {
  v128.store(to, i16x8.shr_s(i16x8.shl(bytes, 8), 8));
  v128.store(to + apart, i16x8.shr_s(bytes, 8));
}

/** Bytes of four rows of `stride` bytes each. */
export function foursBytes(columns: usize, stride: usize, wide: bool): usize {
  return 4 * (stride + (wide ? columns : 0));
}

function transpose(a: usize, b: usize, c: usize, d: usize, bytes: usize, wide: bool, to: usize): void {
  for (const end = a + bytes; a < end; a += 16, b += 16, c += 16, d += 16) {
    const p = v128.load(a), q = v128.load(b), r = v128.load(c), s = v128.load(d);
    const pr = low(p, r), qs = low(q, s), pr2 = high(p, r), qs2 = high(q, s);
    if (wide) {
      storeWide(low(pr, qs), to, 16);
      storeWide(high(pr, qs), to + 32, 16);
      storeWide(low(pr2, qs2), to + 64, 16);
      storeWide(high(pr2, qs2), to + 96, 16);
      to += 128;
    } else {
      v128.store(to, low(pr, qs));
      v128.store(to, high(pr, qs), 16);
      v128.store(to, low(pr2, qs2), 32);
      v128.store(to, high(pr2, qs2), 48);
      to += 64;
    }
  }
}

/** Stores the codes of a row as 16 bits. */
export function widenRow(x: usize, columns: usize, to: usize): void {
  for (const end = x + columns; x < end; x += 16, to += 32) {
    const codes = v128.load(x);
    v128.store(to, i16x8.extend_low_i8x16_s(codes));
    v128.store(to, i16x8.extend_high_i8x16_s(codes), 16);
  }
}

/** Interleaves `rows` rows of `columns` columns. */
export function interleave(rows: u32, x: usize, stride: usize, columns: usize, wide: bool, to: usize): void {
  const bytes = foursBytes(columns, stride, wide), codeBytes: usize = (wide ? 8 : 4) * columns;
  for (let r: u32 = 0; r < rows; r += 4, to += bytes) {
    const last = rows - 1, a = x + stride * r, b = x + stride * min(r + 1, last);
    const c = r + 2 > last ? a : x + stride * (r + 2), d = r + 2 > last ? b : x + stride * min(r + 3, last);
    transpose(a, b, c, d, columns, wide, to);
    transpose(a + columns, b + columns, c + columns, d + columns, stride - columns, false, to + codeBytes);
  }
}

/** Interleaves eight rows at a time, `rows` in all, as planes. */
export function interleaveEights(rows: u32, x: usize, stride: usize, columns: usize, to: usize): void {
  for (const end = x + stride * rows; x < end; x += 8 * stride, to += 8 * stride) {
    transposeEight(x, columns, stride, false, to);
    transposeEight(x + columns, stride - columns, stride, true, to + 8 * columns);
  }
}

function transposeEight(x: usize, bytes: usize, stride: usize, floats: bool, to: usize): void {
  for (const end = x + bytes; x < end; x += 16, to += 128) {
    const at4 = x + 4 * stride;
    const a = v128.load(x), b = v128.load(x + stride), c = v128.load(x + 2 * stride), d = v128.load(x + 3 * stride);
    const e = v128.load(at4), f = v128.load(at4 + stride), g = v128.load(at4 + 2 * stride), h = v128.load(at4 + 3 * stride);
    const ac = low(a, c), bd = low(b, d), eg = low(e, g), fh = low(f, h);
    const ac2 = high(a, c), bd2 = high(b, d), eg2 = high(e, g), fh2 = high(f, h);
    storePlanes(low(ac, bd), low(eg, fh), floats, to);
    storePlanes(high(ac, bd), high(eg, fh), floats, to + 32);
    storePlanes(low(ac2, bd2), low(eg2, fh2), floats, to + 64);
    storePlanes(high(ac2, bd2), high(eg2, fh2), floats, to + 96);
  }
}

/** Stores four bytes of each of eight rows. */
@inline function storePlanes(a: v128, b: v128, floats: bool, to: usize): void {
  if (floats) storeHalves(a, b, to);
  else {
    v128.store(to, v128.shuffle<i64>(a, b, 0, 2));
    v128.store(to, v128.shuffle<i64>(a, b, 1, 3), 16);
  }
}

/**
 * Writes, where sums and half sums of `rows` interleaved rows lie, what an offset of 2^bits makes of each `group` of 16
 * or 32 columns: -2^bits · Σ q of the first two columns of their quads, and of the last two, as 16 bits. Sums of two that
 * start there are those of code - offset, at most 127 · 2^bits times 8 or 16, so that all columns fit, whatever they pass on
 * the way. Of groups of 32 what stands in place of half sums means nothing.
 */
export function interleaveStarts(rows: u32, to: usize, stride: usize, columns: usize, bits: i32, group: u32): void {
  const half = columns >> 1;
  for (const end = to + 4 * stride * ((rows + 3) >> 2); to < end; to += 4 * stride) {
    for (let codes = to, starts = to + 4 * columns + half, last = starts + half; starts < last; codes += 128, starts += 16) {
      const first = startOf(codes, bits), second = startOf(codes + 64, bits);
      v128.store(starts, group == 32 ? i16x8.add(first, second) : first);
      v128.store(starts + half, second);
    }
  }
}

/** The same for sums of 32 bits of groups of 16 columns, which become floats at SUM_START (gen/dots.ts): out of half sums. */
export function interleaveGroupStarts(rows: u32, to: usize, stride: usize, columns: usize, bits: i32): void {
  const half = columns >> 1, from = v128.load(SUM_START_AT);
  for (const end = to + 4 * stride * ((rows + 3) >> 2); to < end; to += 4 * stride) {
    for (let at = to + 4 * columns + half, last = at + half; at < last; at += 16) {
      const halves = v128.load(at + half);
      v128.store(at, i32x4.sub(from, i32x4.shl(i32x4.shr_s(i32x4.shl(halves, 16), 16), bits)));
      v128.store(at + half, i32x4.sub(from, i32x4.shl(i32x4.shr_s(halves, 16), bits)));
    }
  }
}

/** The same of 32 columns, whose codes are `offset` too large; half sums stay. */
export function interleaveCellStarts(rows: u32, to: usize, stride: usize, columns: usize, offset: i32): void {
  const half = columns >> 1, factor = i16x8.splat(<i16>-offset);
  for (const end = to + 4 * stride * ((rows + 3) >> 2); to < end; to += 4 * stride) {
    for (let at = to + 4 * columns + half, last = at + half; at < last; at += 16) {
      v128.store(at, i32x4.dot_i16x8_s(v128.load(at + half), factor));
    }
  }
}

@inline function startOf(codes: usize, bits: i32): v128 {
  const a = i16x8.extadd_pairwise_i8x16_s(v128.load(codes)), b = i16x8.extadd_pairwise_i8x16_s(v128.load(codes, 16));
  const c = i16x8.extadd_pairwise_i8x16_s(v128.load(codes, 32)), d = i16x8.extadd_pairwise_i8x16_s(v128.load(codes, 48));
  return i16x8.neg(i16x8.shl(i16x8.add(i16x8.add(a, b), i16x8.add(c, d)), bits));
}

/**
 * Widens a panel of `columns` columns of 16 weight rows where it is, from its end: each quad to even columns and odd ones, of
 * signed codes or of unsigned ones.
 */
export function widenPanel(codes: usize, columns: usize, signed: bool): void {
  const low = i16x8.splat(255);
  for (let from = codes + 16 * columns, to = codes + 32 * columns; from > codes;) {
    from -= 64; to -= 128;
    const a = v128.load(from), b = v128.load(from, 16), c = v128.load(from, 32), d = v128.load(from, 48);
    if (signed) {
      storeWide(a, to, 64);
      storeWide(b, to + 16, 64);
      storeWide(c, to + 32, 64);
      storeWide(d, to + 48, 64);
      continue;
    }
    v128.store(to, v128.and(a, low));
    v128.store(to, v128.and(b, low), 16);
    v128.store(to, v128.and(c, low), 32);
    v128.store(to, v128.and(d, low), 48);
    v128.store(to, i16x8.shr_u(a, 8), 64);
    v128.store(to, i16x8.shr_u(b, 8), 80);
    v128.store(to, i16x8.shr_u(c, 8), 96);
    v128.store(to, i16x8.shr_u(d, 8), 112);
  }
}
