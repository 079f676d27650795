// Convolution of 3 × 3 windows without strides by Winograd's minimal filtering F(2 × 2, 3 × 3) (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2015): four outputs take 16 products instead of 36.
//
//   conv_winograd_weights: U = G g Gᵀ of all filters, in blocks (conv_blocks.ts), [blocks][16][channels][filters of a block]
//   conv_winograd:         a chunk is some tiles of two by two places and some blocks of filters. V = Bᵀ d B of all channels
//                          in panels of eight tiles, [16][panels][channels][8]; then, block by block, 16 products U · V
//                          (gen/conv_tiles.ts) and Y = Aᵀ M A, bias, activation
//
// Tiles lie row by row, a row of them filled up to fours, so that small planes fill panels too. The error is that of a few
// more sums; F(4 × 4) would save more products, and lose two digits.
import { addressAt, chunksOf, min, nextChunk, thread, u32At } from "../machine/runtime";
import { MOST_FILTERS, convTiles } from "../generated/conv_tiles";
import { activated } from "../generated/elementwise_runs";
import { blocksOf, firstOf } from "./conv_blocks";
import { panelBytes } from "./conv_gather";
import { packLine, zeroLine } from "./conv_lines";
import {
  CONV_WINOGRAD_ACTIVATION, CONV_WINOGRAD_B, CONV_WINOGRAD_BATCH, CONV_WINOGRAD_BEGIN_H, CONV_WINOGRAD_BEGIN_W,
  CONV_WINOGRAD_CHANNELS, CONV_WINOGRAD_FILTERS, CONV_WINOGRAD_HEIGHT, CONV_WINOGRAD_OUT_HEIGHT,
  CONV_WINOGRAD_OUT_WIDTH, CONV_WINOGRAD_SCRATCH, CONV_WINOGRAD_SCRATCH_BYTES, CONV_WINOGRAD_TILES, CONV_WINOGRAD_W,
  CONV_WINOGRAD_WEIGHTS_CHANNELS, CONV_WINOGRAD_WEIGHTS_FILTERS, CONV_WINOGRAD_WEIGHTS_W, CONV_WINOGRAD_WEIGHTS_Y,
  CONV_WINOGRAD_WIDTH, CONV_WINOGRAD_X, CONV_WINOGRAD_Y,
} from "../generated/opcodes";

/** Blocks of filters of a chunk at least, and chunks that are worth sharing out the filters for. */
const PART: u32 = 4;
const CHUNKS: u32 = 24;

export function conv_winograd_weights(ip: usize): void {
  const filters = u32At(ip, CONV_WINOGRAD_WEIGHTS_FILTERS), channels = u32At(ip, CONV_WINOGRAD_WEIGHTS_CHANNELS);
  const blocks = blocksOf(filters);
  for (let block = nextChunk(ip, blocks); block >= 0; block = nextChunk(ip, blocks)) {
    const first = firstOf(block, filters), count = firstOf(block + 1, filters) - first;
    const point = <usize>(channels * count) << 2;
    let w = addressAt(ip, CONV_WINOGRAD_WEIGHTS_W) + <usize>(first * channels) * 36;
    const y = addressAt(ip, CONV_WINOGRAD_WEIGHTS_Y) + (<usize>(first * channels) << 6);
    for (let f: u32 = 0; f < count; f++) {
      for (let c: u32 = 0; c < channels; c++, w += 36) filterPoints(w, y + (<usize>(c * count + f) << 2), point);
    }
  }
}

/** The 16 points of a filter of a channel. */
function filterPoints(w: usize, y: usize, point: usize): void {
  for (let i: u32 = 0; i < 4; i++, y += 4 * point) {
    const a = ofColumn(w, i), b = ofColumn(w + 4, i), c = ofColumn(w + 8, i);
    store<f32>(y, a);
    store<f32>(y + point, (a + b + c) * 0.5);
    store<f32>(y + 2 * point, (a - b + c) * 0.5);
    store<f32>(y + 3 * point, c);
  }
}

/** Row `i` of G times a column of a filter. */
@inline function ofColumn(w: usize, i: u32): f32 {
  const a = load<f32>(w), b = load<f32>(w, 12), c = load<f32>(w, 24);
  if (i == 0) return a;
  if (i == 3) return c;
  return (i == 1 ? a + b + c : a - b + c) * 0.5;
}

/** Tiles of a row, in fours. */
@inline function tilesAcross(ip: usize): u32 { return (chunksOf(u32At(ip, CONV_WINOGRAD_OUT_WIDTH), 2) + 3) & ~3; }

export function conv_winograd(ip: usize): void {
  const across = tilesAcross(ip), tiles = across * chunksOf(u32At(ip, CONV_WINOGRAD_OUT_HEIGHT), 2);
  const filters = u32At(ip, CONV_WINOGRAD_FILTERS), blocks = blocksOf(filters), batch = u32At(ip, CONV_WINOGRAD_BATCH);
  const channels = u32At(ip, CONV_WINOGRAD_CHANNELS), most = u32At(ip, CONV_WINOGRAD_TILES);
  const panels = chunksOf(tiles, 8), pieces = chunksOf(panels * 8, most);
  let parts: u32 = 1;
  if (batch * pieces && batch * pieces < CHUNKS) parts = min(chunksOf(blocks, PART), chunksOf(CHUNKS, batch * pieces));
  const total = batch * pieces * parts;
  const lines = addressAt(ip, CONV_WINOGRAD_SCRATCH) + <usize>thread * u32At(ip, CONV_WINOGRAD_SCRATCH_BYTES);
  const sums = lines + (<usize>(most * 2 + 16) << 4), row = <usize>most << 2;
  const input = sums + 16 * MOST_FILTERS * row, point = <usize>(channels + 1) * row;
  let last: u32 = -1;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const part = <u32>c % parts, some = <u32>c / parts, piece = some % pieces, item = some / pieces;
    const first = piece * panels / pieces * 8, count = min((piece + 1) * panels / pieces * 8, tiles) - first;
    if (some != last) inputs(ip, item, first, count, lines, input, point);
    last = some;
    for (let block = part * blocks / parts, end = (part + 1) * blocks / parts; block < end; block++) {
      const filter = firstOf(block, filters), height = firstOf(block + 1, filters) - filter;
      let w = addressAt(ip, CONV_WINOGRAD_W) + (<usize>(filter * channels) << 6);
      for (let p: usize = 0; p < 16; p++, w += <usize>(channels * height) << 2) {
        const to = sums + p * (MOST_FILTERS * row);
        convTiles(height, w, channels, input + p * point, (count + 7) >> 3, 0, to, row, false);
      }
      for (let f: u32 = 0; f < height; f++) {
        outputs(ip, item, first, count, filter + f, sums + <usize>f * row, MOST_FILTERS * row, lines);
      }
    }
  }
}

/** Points of tiles [first, first + count) of all channels. */
function inputs(ip: usize, item: u32, first: u32, count: u32, lines: usize, out: usize, point: usize): void {
  const channels = u32At(ip, CONV_WINOGRAD_CHANNELS), panel = panelBytes(channels), across = tilesAcross(ip);
  const plane = <usize>(u32At(ip, CONV_WINOGRAD_HEIGHT) * u32At(ip, CONV_WINOGRAD_WIDTH)) << 2;
  let x = addressAt(ip, CONV_WINOGRAD_X) + <usize>(item * channels) * plane;
  for (let c: u32 = 0; c < channels; c++, x += plane, out += 32) {
    for (let at: u32 = 0; at < count;) {
      const row = (first + at) / across, column = (first + at) % across, some = min(across - column, count - at);
      inputPoints(ip, x, row * 2, column * 2, some, lines, out, at, point, panel);
      at += some;
    }
  }
}

/** Bᵀ d B of `tiles` neighbours of one channel, whose place in panels is `at`. */
function inputPoints(
  ip: usize, x: usize, top: u32, left: u32, tiles: u32, lines: usize, out: usize, at: u32, point: usize, panel: usize,
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
  linePoints(lines, r2, false, tiles, out, at, point, panel);
  linePoints(r1, r2, true, tiles, out + four, at, point, panel);
  linePoints(r2, r1, false, tiles, out + 2 * four, at, point, panel);
  linePoints(r1, r3, false, tiles, out + 3 * four, at, point, panel);
}

@inline function joined(a: usize, b: usize, plus: bool): v128 {
  return plus ? f32x4.add(v128.load(a), v128.load(b)) : f32x4.sub(v128.load(a), v128.load(b));
}

/** Four of the 16 points, from the sum or difference of two rows. */
@inline function linePoints(
  a: usize, b: usize, plus: bool, tiles: u32, panels: usize, at: u32, point: usize, panel: usize,
): void {
  let low = joined(a, b, plus), high = joined(a + 16, b + 16, plus);
  let even = i8x16.shuffle(low, high, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
  let odd = i8x16.shuffle(low, high, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  for (let t: u32 = 0; t < tiles; t += 4) {
    const out = panels + <usize>((at + t) >> 3) * panel + (<usize>((at + t) & 4) << 2);
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

/** Aᵀ M A of tiles [first, first + count) of one filter, to two rows of y each. */
function outputs(
  ip: usize, item: u32, first: u32, count: u32, filter: u32, m: usize, point: usize, edge: usize,
): void {
  const outHeight = u32At(ip, CONV_WINOGRAD_OUT_HEIGHT), outWidth = u32At(ip, CONV_WINOGRAD_OUT_WIDTH);
  const filters = u32At(ip, CONV_WINOGRAD_FILTERS), activation = u32At(ip, CONV_WINOGRAD_ACTIVATION);
  const b = addressAt(ip, CONV_WINOGRAD_B), bias = b ? v128.load32_splat(b + (<usize>filter << 2)) : f32x4.splat(0);
  const y = addressAt(ip, CONV_WINOGRAD_Y) + (<usize>((item * filters + filter) * outHeight * outWidth) << 2);
  const across = tilesAcross(ip);
  let row = first / across, column = first % across;
  for (const end = m + (<usize>count << 2); m < end; m += 16) {
    const here = y + (<usize>(row * 2 * outWidth + column * 2) << 2), lanes = min(8, outWidth - column * 2);
    outputRow(m, point, true, bias, activation, lanes == 8 ? here : edge);
    if (lanes < 8) memory.copy(here, edge, <usize>lanes << 2);
    if (row * 2 + 1 < outHeight) {
      const below = here + (<usize>outWidth << 2);
      outputRow(m, point, false, bias, activation, lanes == 8 ? below : edge);
      if (lanes < 8) memory.copy(below, edge, <usize>lanes << 2);
    }
    column += 4;
    if (column == across) { column = 0; row++; }
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
