// Transposed convolution whose windows neither overlap nor leave gaps (stride = extent): every place of x
// becomes a patch of the output, so it is a product of x with the weights of all filters and taps.
//
//   conv_patches_weights: the weights of a filter in blocks of taps (conv_blocks.ts), [blocks][channels][taps of a block]
//   conv_patches:         a chunk is a piece of one row of x in panels of eight places (conv.ts), whose sums are woven
//                         into rows of y
import { addressAt, chunksOf, min, nextSmallChunk, thread, u32At } from "../machine/runtime";
import { EDGE, blocksOf, convBlock, firstOf } from "./conv_blocks";
import { activateInto } from "./epilogue";
import { panelBytes, spread } from "./conv_gather";
import {
  CONV_PATCHES_ACTIVATION, CONV_PATCHES_B, CONV_PATCHES_BATCH, CONV_PATCHES_CHANNELS, CONV_PATCHES_FILTERS,
  CONV_PATCHES_GROUPS, CONV_PATCHES_HEIGHT, CONV_PATCHES_KERNEL_H, CONV_PATCHES_KERNEL_W, CONV_PATCHES_PLACES,
  CONV_PATCHES_SCRATCH, CONV_PATCHES_SCRATCH_BYTES, CONV_PATCHES_W, CONV_PATCHES_WEIGHTS_CHANNELS,
  CONV_PATCHES_WEIGHTS_FILTERS, CONV_PATCHES_WEIGHTS_GROUPS, CONV_PATCHES_WEIGHTS_TAPS, CONV_PATCHES_WEIGHTS_W,
  CONV_PATCHES_WEIGHTS_Y, CONV_PATCHES_WIDTH, CONV_PATCHES_X, CONV_PATCHES_Y,
} from "../generated/opcodes";

export function conv_patches_weights(ip: usize): void {
  const groups = u32At(ip, CONV_PATCHES_WEIGHTS_GROUPS), channels = u32At(ip, CONV_PATCHES_WEIGHTS_CHANNELS) / groups;
  const all = u32At(ip, CONV_PATCHES_WEIGHTS_FILTERS), filters = all / groups;
  const taps = u32At(ip, CONV_PATCHES_WEIGHTS_TAPS), blocks = blocksOf(taps);
  for (let f = nextSmallChunk(ip, all); f >= 0; f = nextSmallChunk(ip, all)) {
    const group = <u32>f / filters, columns = <usize>(filters * taps) << 2;
    const w = addressAt(ip, CONV_PATCHES_WEIGHTS_W) + <usize>(group * channels) * columns + (<usize>(<u32>f % filters * taps) << 2);
    let y = addressAt(ip, CONV_PATCHES_WEIGHTS_Y) + (<usize>(<u32>f * taps * channels) << 2);
    for (let block: u32 = 0; block < blocks; block++) {
      const first = firstOf(block, taps), count = firstOf(block + 1, taps) - first;
      for (let c: u32 = 0; c < channels; c++) {
        const from = w + <usize>c * columns + (<usize>first << 2);
        for (let t: u32 = 0; t < count; t++, y += 4) store<f32>(y, load<f32>(from + (<usize>t << 2)));
      }
    }
  }
}

/** Bytes of the biases of a block. */
const BIASES: usize = 64;

export function conv_patches(ip: usize): void {
  const groups = u32At(ip, CONV_PATCHES_GROUPS), filters = u32At(ip, CONV_PATCHES_FILTERS) / groups;
  const channels = u32At(ip, CONV_PATCHES_CHANNELS) / groups, height = u32At(ip, CONV_PATCHES_HEIGHT);
  const kh = u32At(ip, CONV_PATCHES_KERNEL_H), kw = u32At(ip, CONV_PATCHES_KERNEL_W), taps = kh * kw;
  const width = u32At(ip, CONV_PATCHES_WIDTH), places = u32At(ip, CONV_PATCHES_PLACES), blocks = blocksOf(taps);
  const pieces = chunksOf(width, places), total = u32At(ip, CONV_PATCHES_BATCH) * groups * height * pieces;
  const edge = addressAt(ip, CONV_PATCHES_SCRATCH) + <usize>thread * u32At(ip, CONV_PATCHES_SCRATCH_BYTES);
  const biases = edge + EDGE, sums = biases + BIASES, sumsRow = <usize>places << 2, lines = sums + <usize>taps * sumsRow;
  const plane = <usize>height * width, bias = addressAt(ip, CONV_PATCHES_B);
  const activation = u32At(ip, CONV_PATCHES_ACTIVATION);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const first = (<u32>c % pieces) * places, row = <u32>c / pieces % height, item = <u32>c / pieces / height;
    const count = min(places, width - first);
    const x = addressAt(ip, CONV_PATCHES_X) + ((<usize>item * channels * plane + row * width + first) << 2);
    for (let i: u32 = 0; i < channels; i++) {
      spread(x + ((<usize>i * plane) << 2), count, panelBytes(channels), lines + (<usize>i << 5));
    }
    for (let f: u32 = 0; f < filters; f++) {
      const filter = item % groups * filters + f;
      const value: f32 = bias ? load<f32>(bias + (<usize>filter << 2)) : 0;
      for (let at: usize = 0; at < BIASES; at += 4) store<f32>(biases + at, value);
      for (let block: u32 = 0; block < blocks; block++) {
        const tap = firstOf(block, taps), some = firstOf(block + 1, taps) - tap;
        const w = addressAt(ip, CONV_PATCHES_W) + (<usize>((filter * taps + tap) * channels) << 2);
        convBlock(some, w, channels, lines, count, biases, sums + tap * sumsRow, sumsRow, 0, false, edge);
      }
      const out = (<usize>(item * filters + f) * plane * taps) + ((<usize>row * kh * width + first) * kw);
      for (let i: u32 = 0; i < kh; i++) {
        const y = addressAt(ip, CONV_PATCHES_Y) + ((out + <usize>i * width * kw) << 2);
        weave(activation, sums + <usize>(i * kw) * sumsRow, sumsRow, kw, count, y);
      }
    }
  }
}

/** Element p of row j goes to place p · rows + j. */
function weave(activation: u32, sums: usize, stride: usize, rows: u32, count: u32, y: usize): void {
  if (activation) for (let j: u32 = 0; j < rows; j++) activateInto(activation, sums + j * stride, sums + j * stride, count);
  let p: u32 = 0;
  if (rows == 2) {
    for (; p + 4 <= count; p += 4, y += 32) {
      const a = v128.load(sums + (<usize>p << 2)), b = v128.load(sums + stride + (<usize>p << 2));
      v128.store(y, i8x16.shuffle(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23));
      v128.store(y, i8x16.shuffle(a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31), 16);
    }
  }
  for (; p < count; p++) {
    for (let j: u32 = 0; j < rows; j++, y += 4) store<f32>(y, load<f32>(sums + j * stride + (<usize>p << 2)));
  }
}
