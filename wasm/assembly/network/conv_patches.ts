// Transposed convolution whose windows neither overlap nor leave gaps (stride = extent): every place of x
// becomes a patch of the output, so it is a product of x with the weights of all filters and taps.
//
//   conv_patches_weights: the weights with channels innermost, once a run
//   conv_patches:         a chunk is a piece of one row of x; sums as in conv.ts, woven into rows of y
import { addressAt, chunksOf, min, nextChunk, thread, u32At } from "../machine/runtime";
import { oneTiles } from "../generated/conv_tiles";
import { activateInto } from "./epilogue";
import { packLine } from "./conv_lines";
import {
  CONV_PATCHES_ACTIVATION, CONV_PATCHES_B, CONV_PATCHES_BATCH, CONV_PATCHES_CHANNELS, CONV_PATCHES_FILTERS,
  CONV_PATCHES_GROUPS, CONV_PATCHES_HEIGHT, CONV_PATCHES_KERNEL_H, CONV_PATCHES_KERNEL_W, CONV_PATCHES_PITCH,
  CONV_PATCHES_PLACES, CONV_PATCHES_RUN, CONV_PATCHES_SCRATCH, CONV_PATCHES_SCRATCH_BYTES, CONV_PATCHES_W,
  CONV_PATCHES_WEIGHTS_CHANNELS, CONV_PATCHES_WEIGHTS_COLUMNS, CONV_PATCHES_WEIGHTS_GROUPS, CONV_PATCHES_WEIGHTS_W,
  CONV_PATCHES_WEIGHTS_Y, CONV_PATCHES_WIDTH, CONV_PATCHES_X, CONV_PATCHES_Y,
} from "../generated/opcodes";

export function conv_patches_weights(ip: usize): void {
  const channels = u32At(ip, CONV_PATCHES_WEIGHTS_CHANNELS), columns = u32At(ip, CONV_PATCHES_WEIGHTS_COLUMNS);
  const groups = u32At(ip, CONV_PATCHES_WEIGHTS_GROUPS), matrix = <usize>(channels * columns) << 2;
  for (let g = nextChunk(ip, groups); g >= 0; g = nextChunk(ip, groups)) {
    const w = addressAt(ip, CONV_PATCHES_WEIGHTS_W) + <usize>g * matrix;
    let y = addressAt(ip, CONV_PATCHES_WEIGHTS_Y) + <usize>g * matrix;
    for (let k: u32 = 0; k < columns; k++) {
      for (let c: u32 = 0; c < channels; c++, y += 4) store<f32>(y, load<f32>(w + ((<usize>(c * columns + k)) << 2)));
    }
  }
}

export function conv_patches(ip: usize): void {
  const groups = u32At(ip, CONV_PATCHES_GROUPS), filters = u32At(ip, CONV_PATCHES_FILTERS) / groups;
  const channels = u32At(ip, CONV_PATCHES_CHANNELS) / groups, height = u32At(ip, CONV_PATCHES_HEIGHT);
  const kh = u32At(ip, CONV_PATCHES_KERNEL_H), kw = u32At(ip, CONV_PATCHES_KERNEL_W), taps = kh * kw;
  const width = u32At(ip, CONV_PATCHES_WIDTH), places = u32At(ip, CONV_PATCHES_PLACES);
  const pieces = chunksOf(width, places), total = u32At(ip, CONV_PATCHES_BATCH) * groups * height * pieces;
  const run = u32At(ip, CONV_PATCHES_RUN), pitch = <usize>u32At(ip, CONV_PATCHES_PITCH);
  const sums = addressAt(ip, CONV_PATCHES_SCRATCH) + <usize>thread * u32At(ip, CONV_PATCHES_SCRATCH_BYTES);
  const sumsRow = <usize>places << 2, lines = sums + <usize>taps * sumsRow;
  const stride = <usize>channels << 2, plane = <usize>height * width;
  const activation = u32At(ip, CONV_PATCHES_ACTIVATION);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = (<u32>c % pieces) * places, row = <u32>c / pieces % height, item = <u32>c / pieces / height;
    const count = min(places, width - first), bytes = <usize>((count + 7) & ~7) << 2;
    const x = addressAt(ip, CONV_PATCHES_X) + ((<usize>item * channels * plane + row * width) << 2);
    const w = addressAt(ip, CONV_PATCHES_W) + <usize>(item % groups * filters * taps) * stride;
    for (let f: u32 = 0; f < filters; f++) {
      begin(addressAt(ip, CONV_PATCHES_B), item % groups * filters + f, sums, <usize>taps * sumsRow);
      for (let channel: u32 = 0; channel < channels; channel += run) {
        const some = min(run, channels - channel);
        for (let i: u32 = 0; i < some && (f == 0 || run < channels); i++) {
          const source = x + ((<usize>(channel + i) * plane) << 2);
          packLine(source, width, first, 1, <i32>(bytes >> 2), lines + <usize>i * pitch);
        }
        const weights = w + <usize>(f * taps) * stride + (<usize>channel << 2);
        oneTiles(taps, weights, stride, some, lines, pitch, bytes, sums, sumsRow);
      }
      const out = (<usize>(item * filters + f) * plane * taps) + ((<usize>row * kh * width + first) * kw);
      for (let i: u32 = 0; i < kh; i++) {
        const y = addressAt(ip, CONV_PATCHES_Y) + ((out + <usize>i * width * kw) << 2);
        weave(activation, sums + <usize>(i * kw) * sumsRow, sumsRow, kw, count, y);
      }
    }
  }
}

function begin(bias: usize, filter: u32, sums: usize, bytes: usize): void {
  const value = bias ? v128.load32_splat(bias + (<usize>filter << 2)) : f32x4.splat(0);
  for (let at: usize = 0; at < bytes; at += 16) v128.store(sums + at, value);
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
