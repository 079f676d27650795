// Convolution of 3 × 3 windows without strides by Winograd's minimal filtering F(2 × 2, 3 × 3) (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2015): four outputs take 16 products instead of 36.
//
//   conv_winograd_weights: U = G g Gᵀ of all filters, as [16][filters][channels], some bytes between the points, once a run
//   conv_winograd:         a chunk is a piece of two rows of the output. V = Bᵀ d B of a run of channels; then
//                          16 products U · V by the tiles of conv.ts; then Y = Aᵀ M A, bias, activation
//
// A sixth less processor time for text detection (bench/results/kernels.md). The error is that of a few more sums;
// F(4 × 4) would save more products, and lose two digits.
import { addressAt, chunksOf, min, nextChunk, thread, u32At } from "../machine/runtime";
import { oneTiles } from "../generated/conv_tiles";
import { activated } from "../generated/elementwise_runs";
import { packLine, zeroLine } from "./conv_lines";
import {
  CONV_WINOGRAD_ACTIVATION, CONV_WINOGRAD_B, CONV_WINOGRAD_BATCH, CONV_WINOGRAD_BEGIN_H, CONV_WINOGRAD_BEGIN_W,
  CONV_WINOGRAD_CHANNELS, CONV_WINOGRAD_FILTERS, CONV_WINOGRAD_HEIGHT, CONV_WINOGRAD_OUT_HEIGHT,
  CONV_WINOGRAD_OUT_WIDTH, CONV_WINOGRAD_PASS, CONV_WINOGRAD_RUN, CONV_WINOGRAD_SCRATCH, CONV_WINOGRAD_SCRATCH_BYTES,
  CONV_WINOGRAD_TILES, CONV_WINOGRAD_W, CONV_WINOGRAD_WEIGHTS_CHANNELS, CONV_WINOGRAD_WEIGHTS_FILTERS,
  CONV_WINOGRAD_WEIGHTS_W, CONV_WINOGRAD_WEIGHTS_Y, CONV_WINOGRAD_WIDTH, CONV_WINOGRAD_X, CONV_WINOGRAD_Y,
} from "../generated/opcodes";

/** Bytes from one point's weights to the next: lines behind them, so that the 16 that are written in turns lie in other sets of a cache. */
@inline function weightsPoint(filters: u32, channels: u32): usize {
  return (<usize>(filters * channels) << 2) + 192;
}

export function conv_winograd_weights(ip: usize): void {
  const filters = u32At(ip, CONV_WINOGRAD_WEIGHTS_FILTERS), channels = u32At(ip, CONV_WINOGRAD_WEIGHTS_CHANNELS);
  const point = weightsPoint(filters, channels), whole = channels & ~3;
  for (let f = nextChunk(ip, filters); f >= 0; f = nextChunk(ip, filters)) {
    let w = addressAt(ip, CONV_WINOGRAD_WEIGHTS_W) + <usize>(<u32>f * channels) * 36;
    let y = addressAt(ip, CONV_WINOGRAD_WEIGHTS_Y) + (<usize>(<u32>f * channels) << 2);
    for (let c: u32 = 0; c < whole; c += 4, w += 144, y += 16) filterPoints(w, 36, y, point, true);
    for (let c: u32 = whole; c < channels; c++, w += 36, y += 4) filterPoints(w, 0, y, point, false);
  }
}

/** The 16 points of one filter of four channels, or of one. */
@inline function filterPoints(w: usize, channel: usize, y: usize, point: usize, four: bool): void {
  for (let i: u32 = 0; i < 4; i++, y += 4 * point) {
    const a = across(w, channel, i), b = across(w + 4, channel, i), c = across(w + 8, channel, i);
    const half = f32x4.splat(0.5);
    put(y, a, four);
    put(y + point, f32x4.mul(f32x4.add(f32x4.add(a, b), c), half), four);
    put(y + 2 * point, f32x4.mul(f32x4.add(f32x4.sub(a, b), c), half), four);
    put(y + 3 * point, c, four);
  }
}

@inline function put(y: usize, values: v128, four: bool): void {
  if (four) v128.store(y, values);
  else v128.store32_lane(y, values, 0);
}

/** Row `i` of G times a column of the filter of four channels. */
@inline function across(w: usize, channel: usize, i: u32): v128 {
  const a = ofChannels(w, channel), b = ofChannels(w + 12, channel), c = ofChannels(w + 24, channel);
  if (i == 0) return a;
  const half = f32x4.splat(0.5);
  if (i == 1) return f32x4.mul(f32x4.add(f32x4.add(a, b), c), half);
  return i == 2 ? f32x4.mul(f32x4.add(f32x4.sub(a, b), c), half) : c;
}

/** An element of the filters of four channels. */
@inline function ofChannels(w: usize, channel: usize): v128 {
  const two = v128.load32_lane(w + channel, v128.load32_zero(w), 1);
  return v128.load32_lane(w + 3 * channel, v128.load32_lane(w + 2 * channel, two, 2), 3);
}

export function conv_winograd(ip: usize): void {
  const outHeight = u32At(ip, CONV_WINOGRAD_OUT_HEIGHT), outWidth = u32At(ip, CONV_WINOGRAD_OUT_WIDTH);
  const filters = u32At(ip, CONV_WINOGRAD_FILTERS), pass = u32At(ip, CONV_WINOGRAD_PASS);
  const rows = chunksOf(outHeight, 2), eights = chunksOf(chunksOf(outWidth, 2), 8);
  const pieces = chunksOf(eights * 8, u32At(ip, CONV_WINOGRAD_TILES));
  const tiles = pieces ? chunksOf(eights, pieces) * 8 : 0, total = u32At(ip, CONV_WINOGRAD_BATCH) * rows * pieces;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const piece = <u32>c % pieces, row = <u32>c / pieces % rows, item = <u32>c / pieces / rows;
    // The last piece may be shorter by whole eights.
    const first: u32 = piece * tiles;
    if (first * 2 >= outWidth) continue;
    const some = min(tiles, eights * 8 - first);
    for (let f: u32 = 0; f < filters; f += pass) {
      convTiles(ip, item, row * 2, first * 2, some, f, min(pass, filters - f), f == 0);
    }
  }
}

function convTiles(ip: usize, item: u32, top: u32, left: u32, tiles: u32, filter: u32, count: u32, fresh: bool): void {
  const channels = u32At(ip, CONV_WINOGRAD_CHANNELS), filters = u32At(ip, CONV_WINOGRAD_FILTERS);
  const run = u32At(ip, CONV_WINOGRAD_RUN), pass = u32At(ip, CONV_WINOGRAD_PASS), most = u32At(ip, CONV_WINOGRAD_TILES);
  const sums = addressAt(ip, CONV_WINOGRAD_SCRATCH) + <usize>thread * u32At(ip, CONV_WINOGRAD_SCRATCH_BYTES);
  const row = <usize>most << 2, sumsPoint = <usize>pass * row, input = sums + 16 * sumsPoint;
  const point = <usize>run * row, lines = input + 16 * point;
  const height = u32At(ip, CONV_WINOGRAD_HEIGHT), width = u32At(ip, CONV_WINOGRAD_WIDTH);
  const plane = <usize>(height * width) << 2, weightsApart = weightsPoint(filters, channels);
  const x = addressAt(ip, CONV_WINOGRAD_X) + <usize>(item * channels) * plane;
  for (let p: usize = 0; p < 16; p++) memory.fill(sums + p * sumsPoint, 0, <usize>count * row);
  for (let channel: u32 = 0; channel < channels; channel += run) {
    const some = min(run, channels - channel);
    if (fresh || run < channels) {
      for (let i: u32 = 0; i < some; i++) {
        inputPoints(ip, x + <usize>(channel + i) * plane, top, left, tiles, lines, input + <usize>i * row, point);
      }
    }
    const weights = addressAt(ip, CONV_WINOGRAD_W) + (<usize>(filter * channels + channel) << 2);
    for (let p: u32 = 0; p < 16; p++) {
      const w = weights + <usize>p * weightsApart;
      const to = sums + <usize>p * sumsPoint;
      oneTiles(count, w, <usize>channels << 2, some, input + <usize>p * point, row, <usize>tiles << 2, to, row);
    }
  }
  outputs(ip, item, top, left, tiles, filter, count, sums, row, sumsPoint, lines);
}

/** Bᵀ d B of the tiles of one channel. */
function inputPoints(
  ip: usize, x: usize, top: u32, left: u32, tiles: u32, lines: usize, out: usize, point: usize,
): void {
  const height = u32At(ip, CONV_WINOGRAD_HEIGHT), width = u32At(ip, CONV_WINOGRAD_WIDTH);
  const length = <i32>(tiles * 2 + 8), pitch = <usize>length << 2;
  const column = <i32>left - <i32>u32At(ip, CONV_WINOGRAD_BEGIN_W);
  for (let i: u32 = 0; i < 4; i++) {
    const h = <i32>(top + i) - <i32>u32At(ip, CONV_WINOGRAD_BEGIN_H), line = lines + <usize>i * pitch;
    if (<u32>h >= height) zeroLine(line, length);
    else packLine(x + (<usize>(<u32>h * width) << 2), width, column, 1, length, line);
  }
  const r1 = lines + pitch, r2 = r1 + pitch, r3 = r2 + pitch, four = 4 * point;
  linePoints(lines, r2, false, tiles, out, point);
  linePoints(r1, r2, true, tiles, out + four, point);
  linePoints(r2, r1, false, tiles, out + 2 * four, point);
  linePoints(r1, r3, false, tiles, out + 3 * four, point);
}

@inline function joined(a: usize, b: usize, plus: bool): v128 {
  return plus ? f32x4.add(v128.load(a), v128.load(b)) : f32x4.sub(v128.load(a), v128.load(b));
}

/** Four of the 16 points, from the sum or difference of two rows. */
@inline function linePoints(a: usize, b: usize, plus: bool, tiles: u32, out: usize, point: usize): void {
  let low = joined(a, b, plus), high = joined(a + 16, b + 16, plus);
  let even = i8x16.shuffle(low, high, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
  let odd = i8x16.shuffle(low, high, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  for (let t: u32 = 0; t < tiles; t += 4, out += 16) {
    a += 32; b += 32;
    low = joined(a, b, plus); high = joined(a + 16, b + 16, plus);
    const nextEven = i8x16.shuffle(low, high, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    const nextOdd = i8x16.shuffle(low, high, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    const d2 = i8x16.shuffle(even, nextEven, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19);
    const d3 = i8x16.shuffle(odd, nextOdd, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19);
    v128.store(out, f32x4.sub(even, d2));
    v128.store(out + point, f32x4.add(odd, d2));
    v128.store(out + 2 * point, f32x4.sub(d2, odd));
    v128.store(out + 3 * point, f32x4.sub(odd, d3));
    even = nextEven; odd = nextOdd;
  }
}

/** Aᵀ M A of all tiles and filters, to two rows of y each. */
function outputs(
  ip: usize, item: u32, top: u32, left: u32, tiles: u32, filter: u32, count: u32, sums: usize, row: usize, point: usize,
  edge: usize,
): void {
  const outHeight = u32At(ip, CONV_WINOGRAD_OUT_HEIGHT), outWidth = u32At(ip, CONV_WINOGRAD_OUT_WIDTH);
  const filters = u32At(ip, CONV_WINOGRAD_FILTERS), activation = u32At(ip, CONV_WINOGRAD_ACTIVATION);
  const b = addressAt(ip, CONV_WINOGRAD_B), two = top + 1 < outHeight, width = min(tiles * 2, outWidth - left);
  for (let f: u32 = 0; f < count; f++) {
    const bias = b ? v128.load32_splat(b + (<usize>(filter + f) << 2)) : f32x4.splat(0);
    const place = ((item * filters + filter + f) * outHeight + top) * outWidth + left;
    const y = addressAt(ip, CONV_WINOGRAD_Y) + (<usize>place << 2);
    for (let t: u32 = 0; t * 2 < width; t += 4) {
      const m = sums + <usize>f * row + (<usize>t << 2), here = y + (<usize>t << 3);
      const lanes = min(8, width - t * 2);
      outputRow(m, point, true, bias, activation, lanes == 8 ? here : edge);
      if (lanes < 8) memory.copy(here, edge, <usize>lanes << 2);
      if (!two) continue;
      const below = here + (<usize>outWidth << 2);
      outputRow(m, point, false, bias, activation, lanes == 8 ? below : edge);
      if (lanes < 8) memory.copy(below, edge, <usize>lanes << 2);
    }
  }
}

/** Column `i` of M times a row of Aᵀ. */
@inline function down(m: usize, point: usize, i: usize, upper: bool): v128 {
  const at = m + i * point, four = 4 * point;
  const m1 = v128.load(at + four), m2 = v128.load(at + 2 * four);
  if (upper) return f32x4.add(v128.load(at), f32x4.add(m1, m2));
  return f32x4.sub(f32x4.sub(m1, m2), v128.load(at + 3 * four));
}

/** Eight places of one row of the output. */
@inline function outputRow(m: usize, point: usize, upper: bool, bias: v128, activation: u32, y: usize): void {
  const a = down(m, point, 0, upper), b = down(m, point, 1, upper);
  const c = down(m, point, 2, upper), d = down(m, point, 3, upper);
  let even = f32x4.add(f32x4.add(a, f32x4.add(b, c)), bias);
  let odd = f32x4.add(f32x4.sub(f32x4.sub(b, c), d), bias);
  if (activation) { even = activated(activation, even); odd = activated(activation, odd); }
  v128.store(y, i8x16.shuffle(even, odd, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23));
  v128.store(y, i8x16.shuffle(even, odd, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31), 16);
}
