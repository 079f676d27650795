// Convolution of float32 planes.
//
// A chunk is a piece of one row of the output of one group. What lies under its windows is packed as lines
// (conv_lines.ts), a run of channels at a time, and register tiles of filters pass over the run
// (gen/conv_tiles.ts). Sums stay in scratch memory, where neighbouring filters do not share cache sets as
// planes of 2ⁿ elements do, until bias and activation are on them. Sizes of pieces, runs and passes come
// from engine/run/wasm/lower/conv_setup.ts: few channels make long pieces, which read and write memory in order.
//
// Not kept: packing taps instead of lines for windows three wide (im2col), which moves each element once a tap.
import { addressAt, chunksOf, i32At, min, nextChunk, thread, u32At } from "../machine/runtime";
import { oneTiles, stridedTiles, threeTiles } from "../generated/conv_tiles";
import { activateInto } from "./epilogue";
import { packLine, zeroLine } from "./conv_lines";
import {
  CONV_ACTIVATION, CONV_B, CONV_BATCH, CONV_BEGIN_D, CONV_BEGIN_H, CONV_BEGIN_W, CONV_CHANNELS, CONV_DEPTH,
  CONV_DILATION_D, CONV_DILATION_H, CONV_FILTERS, CONV_GROUPS, CONV_HEIGHT, CONV_KERNEL_D, CONV_KERNEL_H,
  CONV_KERNEL_W, CONV_OUT_DEPTH, CONV_OUT_HEIGHT, CONV_OUT_WIDTH, CONV_SETUP, CONV_STRIDE_D, CONV_STRIDE_H,
  CONV_STRIDE_W, CONV_W, CONV_WIDTH, CONV_X, CONV_Y,
} from "../generated/opcodes";

/** Filters of a chunk at least, and chunks that are worth sharing out the filters for. */
const PART: u32 = 24;
const CHUNKS: u32 = 16;

/** Words of `setup`, see engine/run/wasm/lower/conv_setup.ts. */
const SCRATCH: usize = 0, SCRATCH_BYTES: usize = 4, PITCH: usize = 8, LINES: usize = 12, EXTRA: usize = 16;
const RUN: usize = 20, PLACES: usize = 24, PASS: usize = 28, WAY: usize = 32, KEPT: usize = 36, STARTS: usize = 40;

export function conv(ip: usize): void {
  const groups = u32At(ip, CONV_GROUPS), filters = u32At(ip, CONV_FILTERS) / groups;
  const outWidth = u32At(ip, CONV_OUT_WIDTH), outHeight = u32At(ip, CONV_OUT_HEIGHT);
  const rows = u32At(ip, CONV_BATCH) * groups * u32At(ip, CONV_OUT_DEPTH) * outHeight;
  const setup = addressAt(ip, CONV_SETUP), pass = load<u32>(setup, PASS);
  const tiles = chunksOf(outWidth, 8), pieces = chunksOf(outWidth, load<u32>(setup, PLACES));
  // Pieces of a row are alike.
  const places = pieces ? chunksOf(tiles, pieces) * 8 : 0;
  let parts: u32 = 1;
  if (rows * pieces && rows * pieces < CHUNKS) parts = min(chunksOf(filters, PART), chunksOf(CHUNKS, rows * pieces));
  const share = chunksOf(filters, parts), total = rows * pieces * parts;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const part = <u32>c % parts, piece = <u32>c / parts % pieces, row = <u32>c / parts / pieces;
    const begin = part * share, end = min(begin + share, filters);
    for (let f = begin; f < end; f += pass) {
      convPiece(ip, row, piece * places, places, f, min(pass, end - f), f == begin);
    }
  }
}

/**
 * `count` filters of a group from `filter` on, at a piece of row `row` of all planes of groups; `fresh`: the
 * piece differs from that of the call before.
 */
function convPiece(
  ip: usize, row: u32, first: u32, places: u32, filter: u32, count: u32, fresh: bool,
): void {
  const setup = addressAt(ip, CONV_SETUP), sumsRow = <usize>load<u32>(setup, PLACES) << 2;
  const sums = <usize>load<u32>(setup, SCRATCH) + <usize>thread * load<u32>(setup, SCRATCH_BYTES);
  const lines = sums + <usize>load<u32>(setup, PASS) * sumsRow;
  const groups = u32At(ip, CONV_GROUPS), filters = u32At(ip, CONV_FILTERS) / groups;
  const channels = u32At(ip, CONV_CHANNELS) / groups, run = load<u32>(setup, RUN);
  const outDepth = u32At(ip, CONV_OUT_DEPTH), outHeight = u32At(ip, CONV_OUT_HEIGHT);
  const outWidth = u32At(ip, CONV_OUT_WIDTH);
  const h = row % outHeight, d = row / outHeight % outDepth, plane = row / outHeight / outDepth;
  const rows = u32At(ip, CONV_KERNEL_D) * u32At(ip, CONV_KERNEL_H), kernel = rows * u32At(ip, CONV_KERNEL_W);
  const inside = <usize>u32At(ip, CONV_DEPTH) * u32At(ip, CONV_HEIGHT) * u32At(ip, CONV_WIDTH);
  const x = addressAt(ip, CONV_X) + ((<usize>plane * channels * inside) << 2);
  const group = plane % groups, stride = <usize>(channels * kernel) << 2;
  const w = addressAt(ip, CONV_W) + <usize>(group * filters + filter) * stride;
  const width = min(places, outWidth - first), bytes = <usize>((width + 7) & ~7) << 2;
  const pitch = <usize>load<u32>(setup, PITCH), way = load<u32>(setup, WAY);
  // Bytes of a channel where the lines of all runs are kept for the passes to come.
  const kept = <usize>load<u32>(setup, KEPT);
  beginSums(addressAt(ip, CONV_B), group * filters + filter, count, sums, sumsRow, bytes);
  for (let channel: u32 = 0; channel < channels; channel += run) {
    const some = min(run, channels - channel), weights = w + ((<usize>(channel * kernel)) << 2);
    const at = lines + <usize>channel * kept;
    if (fresh || !kept) packRun(ip, setup, x + ((<usize>channel * inside) << 2), some, d, h, first, width, at);
    if (way == 0) oneTiles(count, weights, stride, some * kernel, at, pitch, bytes, sums, sumsRow);
    else if (way == 1) threeTiles(count, weights, stride, some * rows, at, pitch, bytes, sums, sumsRow);
    else stridedTiles(count, weights, stride, some * rows, at, pitch, bytes, sums, sumsRow);
  }
  const place = (d * outHeight + h) * outWidth + first, area = <usize>(outDepth * outHeight * outWidth);
  let y = addressAt(ip, CONV_Y) + (((<usize>plane * filters + filter) * area + place) << 2);
  const activation = u32At(ip, CONV_ACTIVATION);
  for (let f: u32 = 0; f < count; f++, y += area << 2) activateInto(activation, sums + <usize>f * sumsRow, y, width);
}

/** `bytes` of each row of sums start with the bias. */
export function beginSums(bias: usize, first: u32, filters: u32, sums: usize, row: usize, bytes: usize): void {
  for (let f: u32 = 0; f < filters; f++, sums += row) {
    const value = bias ? v128.load32_splat(bias + (<usize>(first + f) << 2)) : f32x4.splat(0);
    for (let at: usize = 0; at < bytes; at += 16) v128.store(sums + at, value);
  }
}

/** Lines of `channels` channels under the windows of `width` places from `first` on. */
function packRun(
  ip: usize, setup: usize, x: usize, channels: u32, outD: u32, outH: u32, first: u32, width: u32, lines: usize,
): void {
  const depth = u32At(ip, CONV_DEPTH), height = u32At(ip, CONV_HEIGHT), across = u32At(ip, CONV_WIDTH);
  const kd = u32At(ip, CONV_KERNEL_D), kh = u32At(ip, CONV_KERNEL_H), stride = i32At(ip, CONV_STRIDE_W);
  const top = <i32>outH * i32At(ip, CONV_STRIDE_H) - i32At(ip, CONV_BEGIN_H);
  const front = <i32>outD * i32At(ip, CONV_STRIDE_D) - i32At(ip, CONV_BEGIN_D);
  const left = <i32>first * stride - i32At(ip, CONV_BEGIN_W);
  const dh = i32At(ip, CONV_DILATION_H), dd = i32At(ip, CONV_DILATION_D);
  const pitch = <usize>load<u32>(setup, PITCH), count = load<u32>(setup, LINES);
  const length = <i32>(((width + 7) & ~7) + load<u32>(setup, EXTRA));
  const plane = <usize>(depth * height * across) << 2;
  for (let channel: u32 = 0; channel < channels; channel++, x += plane) {
    for (let i: u32 = 0; i < kd; i++) {
      const d = front + <i32>i * dd;
      for (let j: u32 = 0; j < kh; j++) {
        const h = top + <i32>j * dh, outside = <u32>d >= depth || <u32>h >= height;
        const row = outside ? x : x + ((<usize>(<u32>d * height + <u32>h) * across) << 2);
        for (let line: u32 = 0; line < count; line++, lines += pitch) {
          if (outside) zeroLine(lines, length);
          else packLine(row, across, left + <i32>load<u32>(setup + STARTS + (<usize>line << 2)), stride, length, lines);
        }
      }
    }
  }
}
