// Convolution of 3 × 3 windows without strides by Winograd's minimal filtering F(4 × 4, 3 × 3) (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2015): sixteen outputs take 36 products instead of 144.
//
//   conv_winograd_weights: U = G g Gᵀ of all filters, in blocks (conv_blocks.ts), [blocks][36][channels][filters of a block]
//   conv_winograd:         a chunk is some tiles of four by four places and some blocks of filters. V = Bᵀ d B of all
//                          channels in panels of eight tiles, [36][panels][channels][8]; then, block by block, 36 products
//                          U · V (gen/conv_tiles.ts) and Y = Aᵀ M A, bias, activation (winograd_points.ts)
//
// Tiles lie row by row, a row of them filled up to fours, so that small planes fill panels too.
import { addressAt, chunksOf, min, nextSmallChunk, thread, u32At } from "../machine/runtime";
import { MOST_FILTERS, convTiles } from "../generated/conv_tiles";
import { blocksOf, firstOf } from "./conv_blocks";
import { panelBytes } from "./conv_gather";
import { packLine, zeroLine } from "./conv_lines";
import { BETWEEN, filterPoints, POINTS, SIDE, STEP, tilePlaces, tilePoints } from "./winograd_points";
import {
  CONV_WINOGRAD_ACTIVATION, CONV_WINOGRAD_B, CONV_WINOGRAD_BATCH, CONV_WINOGRAD_BEGIN_H, CONV_WINOGRAD_BEGIN_W,
  CONV_WINOGRAD_CHANNELS, CONV_WINOGRAD_FILTERS, CONV_WINOGRAD_HEIGHT, CONV_WINOGRAD_OUT_HEIGHT,
  CONV_WINOGRAD_OUT_WIDTH, CONV_WINOGRAD_SCRATCH, CONV_WINOGRAD_SCRATCH_BYTES, CONV_WINOGRAD_TILES, CONV_WINOGRAD_W,
  CONV_WINOGRAD_WEIGHTS_CHANNELS, CONV_WINOGRAD_WEIGHTS_FILTERS, CONV_WINOGRAD_WEIGHTS_W, CONV_WINOGRAD_WEIGHTS_Y,
  CONV_WINOGRAD_WIDTH, CONV_WINOGRAD_X, CONV_WINOGRAD_Y,
} from "../generated/opcodes";

/** Blocks of filters of a chunk at least, and chunks that are worth sharing out the filters for. */
const PART: u32 = 2;
const CHUNKS: u32 = 24;

export function conv_winograd_weights(ip: usize): void {
  const filters = u32At(ip, CONV_WINOGRAD_WEIGHTS_FILTERS), channels = u32At(ip, CONV_WINOGRAD_WEIGHTS_CHANNELS);
  const blocks = blocksOf(filters);
  for (let block = nextSmallChunk(ip, blocks); block >= 0; block = nextSmallChunk(ip, blocks)) {
    const first = firstOf(block, filters), count = firstOf(block + 1, filters) - first;
    const point = <usize>(channels * count) << 2;
    let w = addressAt(ip, CONV_WINOGRAD_WEIGHTS_W) + <usize>(first * channels) * 36;
    const y = addressAt(ip, CONV_WINOGRAD_WEIGHTS_Y) + (<usize>(first * channels * POINTS) << 2);
    for (let f: u32 = 0; f < count; f++) {
      for (let c: u32 = 0; c < channels; c++, w += 36) filterPoints(w, y + (<usize>(c * count + f) << 2), point);
    }
  }
}

/** Tiles of a row, in fours. */
@inline function tilesAcross(ip: usize): u32 { return (chunksOf(u32At(ip, CONV_WINOGRAD_OUT_WIDTH), STEP) + 3) & ~3; }

export function conv_winograd(ip: usize): void {
  const across = tilesAcross(ip), tiles = across * chunksOf(u32At(ip, CONV_WINOGRAD_OUT_HEIGHT), STEP);
  const filters = u32At(ip, CONV_WINOGRAD_FILTERS), blocks = blocksOf(filters), batch = u32At(ip, CONV_WINOGRAD_BATCH);
  const channels = u32At(ip, CONV_WINOGRAD_CHANNELS), most = u32At(ip, CONV_WINOGRAD_TILES);
  const panels = chunksOf(tiles, 8), pieces = chunksOf(panels * 8, most);
  let parts: u32 = 1;
  if (batch * pieces && batch * pieces < CHUNKS) parts = min(chunksOf(blocks, PART), chunksOf(CHUNKS, batch * pieces));
  const total = batch * pieces * parts;
  const between = addressAt(ip, CONV_WINOGRAD_SCRATCH) + <usize>thread * u32At(ip, CONV_WINOGRAD_SCRATCH_BYTES);
  const lines = between + BETWEEN;
  const sums = lines + SIDE * lineBytes(most), row = <usize>most << 2;
  const input = sums + POINTS * MOST_FILTERS * row, point = <usize>(channels + 1) * row;
  let last: u32 = -1;
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const part = <u32>c % parts, some = <u32>c / parts, piece = some % pieces, item = some / pieces;
    const first = piece * panels / pieces * 8, count = min((piece + 1) * panels / pieces * 8, tiles) - first;
    if (some != last) inputs(ip, item, first, count, between, input, point);
    last = some;
    for (let block = part * blocks / parts, end = (part + 1) * blocks / parts; block < end; block++) {
      const filter = firstOf(block, filters), height = firstOf(block + 1, filters) - filter;
      let w = addressAt(ip, CONV_WINOGRAD_W) + (<usize>(filter * channels * POINTS) << 2);
      for (let p: usize = 0; p < POINTS; p++, w += <usize>(channels * height) << 2) {
        const to = sums + p * (MOST_FILTERS * row);
        convTiles(height, w, channels, input + p * point, (count + 7) >> 3, 0, to, row, 0, false);
      }
      for (let f: u32 = 0; f < height; f++) {
        outputs(ip, item, first, count, filter + f, sums + <usize>f * row, MOST_FILTERS * row, between);
      }
    }
  }
}

/** Bytes of a row of the input under so many tiles. */
@inline function lineBytes(tiles: u32): usize { return <usize>(tiles * STEP + 8) << 2; }

/** Points of tiles [first, first + count) of all channels. */
function inputs(ip: usize, item: u32, first: u32, count: u32, between: usize, out: usize, point: usize): void {
  const channels = u32At(ip, CONV_WINOGRAD_CHANNELS), panel = panelBytes(channels), across = tilesAcross(ip);
  const plane = <usize>(u32At(ip, CONV_WINOGRAD_HEIGHT) * u32At(ip, CONV_WINOGRAD_WIDTH)) << 2;
  let x = addressAt(ip, CONV_WINOGRAD_X) + <usize>(item * channels) * plane;
  for (let c: u32 = 0; c < channels; c++, x += plane, out += 32) {
    for (let at: u32 = 0; at < count;) {
      const row = (first + at) / across, column = (first + at) % across, some = min(across - column, count - at);
      inputPoints(ip, x, row * STEP, column * STEP, some, between, out, at, point, panel);
      at += some;
    }
  }
}

/** Bᵀ d B of `tiles` neighbours of one channel, whose place in panels is `at`. */
function inputPoints(
  ip: usize, x: usize, top: u32, left: u32, tiles: u32, between: usize, out: usize, at: u32, point: usize, panel: usize,
): void {
  let lines = between + BETWEEN;
  const height = u32At(ip, CONV_WINOGRAD_HEIGHT), width = u32At(ip, CONV_WINOGRAD_WIDTH);
  const pitch = lineBytes(tiles), column = <i32>left - <i32>u32At(ip, CONV_WINOGRAD_BEGIN_W);
  for (let i: u32 = 0; i < SIDE; i++) {
    const h = <i32>(top + i) - <i32>u32At(ip, CONV_WINOGRAD_BEGIN_H), line = lines + <usize>i * pitch;
    if (<u32>h >= height) zeroLine(line, <i32>(pitch >> 2));
    else packLine(x + (<usize>(<u32>h * width) << 2), width, column, 1, <i32>(pitch >> 2), line);
  }
  for (let t: u32 = 0; t < tiles; t += 4, lines += 64) {
    tilePoints(lines, pitch, out + <usize>((at + t) >> 3) * panel + (<usize>((at + t) & 4) << 2), point, between);
  }
}

/** Aᵀ M A of tiles [first, first + count) of one filter, to four rows of y each. */
function outputs(
  ip: usize, item: u32, first: u32, count: u32, filter: u32, m: usize, point: usize, between: usize,
): void {
  const outHeight = u32At(ip, CONV_WINOGRAD_OUT_HEIGHT), outWidth = u32At(ip, CONV_WINOGRAD_OUT_WIDTH);
  const filters = u32At(ip, CONV_WINOGRAD_FILTERS), activation = u32At(ip, CONV_WINOGRAD_ACTIVATION);
  const b = addressAt(ip, CONV_WINOGRAD_B), bias: f32 = b ? load<f32>(b + (<usize>filter << 2)) : 0;
  const y = addressAt(ip, CONV_WINOGRAD_Y) + (<usize>((item * filters + filter) * outHeight * outWidth) << 2);
  const across = tilesAcross(ip), row = <usize>outWidth << 2, edge = between + BETWEEN;
  let top = first / across * STEP, left = first % across * STEP;
  for (const end = m + (<usize>count << 2); m < end; m += 16) {
    const here = y + (<usize>(top * outWidth + left) << 2), rows = min(STEP, outHeight - top), places = min(16, outWidth - left);
    if (places == 16 && rows == STEP) tilePlaces(m, point, bias, activation, here, row, between);
    else {
      tilePlaces(m, point, bias, activation, edge, 64, between);
      for (let i: u32 = 0; i < rows; i++) memory.copy(here + i * row, edge + (<usize>i << 6), <usize>places << 2);
    }
    left += 16;
    if (left == across * STEP) { left = 0; top += STEP; }
  }
}
