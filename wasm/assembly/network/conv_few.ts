// Convolution with at most eight places in the output of an item, as behind a global pool or on a short
// signal: dot products along the taps, because there are too few places to fill registers with. A chunk
// is some filters of one group; the taps under each place are packed side by side first.
import { addressAt, chunksOf, i32At, min, nextChunk, thread, u32At } from "../machine/runtime";
import { dotTiles } from "../generated/dot_tiles";
import { activateRun } from "./epilogue";
import {
  CONV_FEW_ACTIVATION, CONV_FEW_B, CONV_FEW_BATCH, CONV_FEW_BEGIN_D, CONV_FEW_BEGIN_H, CONV_FEW_BEGIN_W,
  CONV_FEW_CHANNELS, CONV_FEW_DEPTH, CONV_FEW_DILATION_D, CONV_FEW_DILATION_H, CONV_FEW_DILATION_W,
  CONV_FEW_FILTERS, CONV_FEW_GROUPS, CONV_FEW_HEIGHT, CONV_FEW_KERNEL_D, CONV_FEW_KERNEL_H, CONV_FEW_KERNEL_W,
  CONV_FEW_OUT_DEPTH, CONV_FEW_OUT_HEIGHT, CONV_FEW_OUT_WIDTH, CONV_FEW_SCRATCH, CONV_FEW_STRIDE_D,
  CONV_FEW_STRIDE_H, CONV_FEW_STRIDE_W, CONV_FEW_W, CONV_FEW_WIDTH, CONV_FEW_X, CONV_FEW_Y,
} from "../generated/opcodes";

const FILTERS: u32 = 32;

export function conv_few(ip: usize): void {
  const groups = u32At(ip, CONV_FEW_GROUPS), filters = u32At(ip, CONV_FEW_FILTERS) / groups;
  const channels = u32At(ip, CONV_FEW_CHANNELS) / groups;
  const places = u32At(ip, CONV_FEW_OUT_DEPTH) * u32At(ip, CONV_FEW_OUT_HEIGHT) * u32At(ip, CONV_FEW_OUT_WIDTH);
  const inside = u32At(ip, CONV_FEW_DEPTH) * u32At(ip, CONV_FEW_HEIGHT) * u32At(ip, CONV_FEW_WIDTH);
  const kernel = u32At(ip, CONV_FEW_KERNEL_D) * u32At(ip, CONV_FEW_KERNEL_H) * u32At(ip, CONV_FEW_KERNEL_W);
  const taps = channels * kernel, row = <usize>((taps + 3) & ~3) << 2;
  const parts = chunksOf(filters, FILTERS), total = u32At(ip, CONV_FEW_BATCH) * groups * parts;
  // See engine/run/wasm/lower/conv.ts.
  const packed = addressAt(ip, CONV_FEW_SCRATCH) + <usize>thread * ((8 * row + 63) & ~63);
  const bias = addressAt(ip, CONV_FEW_B), activation = u32At(ip, CONV_FEW_ACTIVATION);
  let last: u32 = -1;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const plane = <u32>c / parts, group = plane % groups, first = <u32>c % parts * FILTERS;
    const count = min(FILTERS, filters - first);
    if (plane != last) {
      const x = addressAt(ip, CONV_FEW_X) + ((<usize>plane * channels * inside) << 2);
      for (let place: u32 = 0; place < places; place++) packPlace(ip, x, channels, place, packed + <usize>place * row);
      last = plane;
    }
    const w = addressAt(ip, CONV_FEW_W) + ((<usize>(group * filters + first) * taps) << 2);
    const y = addressAt(ip, CONV_FEW_Y) + ((<usize>(plane * filters + first) * places) << 2);
    for (let f: u32 = 0; f < count; f++) {
      const value: f32 = bias ? load<f32>(bias + (<usize>(group * filters + first + f) << 2)) : 0;
      for (let p: u32 = 0; p < places; p++) store<f32>(y + (<usize>(f * places + p) << 2), value);
    }
    dotTiles(count, w, <usize>taps << 2, taps, places, packed, row, y, <usize>places << 2);
    activateRun(activation, y, count * places);
  }
}

/** All taps of one place, in the order of weights. */
function packPlace(ip: usize, x: usize, channels: u32, place: u32, out: usize): void {
  const depth = u32At(ip, CONV_FEW_DEPTH), height = u32At(ip, CONV_FEW_HEIGHT), width = i32At(ip, CONV_FEW_WIDTH);
  const kd = u32At(ip, CONV_FEW_KERNEL_D), kh = u32At(ip, CONV_FEW_KERNEL_H), kw = i32At(ip, CONV_FEW_KERNEL_W);
  const dw = i32At(ip, CONV_FEW_DILATION_W), outWidth = u32At(ip, CONV_FEW_OUT_WIDTH);
  const outHeight = u32At(ip, CONV_FEW_OUT_HEIGHT);
  const left = <i32>(place % outWidth) * i32At(ip, CONV_FEW_STRIDE_W) - i32At(ip, CONV_FEW_BEGIN_W);
  const top = <i32>(place / outWidth % outHeight) * i32At(ip, CONV_FEW_STRIDE_H) - i32At(ip, CONV_FEW_BEGIN_H);
  const front = <i32>(place / outWidth / outHeight) * i32At(ip, CONV_FEW_STRIDE_D) - i32At(ip, CONV_FEW_BEGIN_D);
  const plane = <usize>(depth * height * <u32>width) << 2, whole = dw == 1 && left >= 0 && left + kw <= width;
  for (let channel: u32 = 0; channel < channels; channel++, x += plane) {
    for (let i: u32 = 0; i < kd; i++) {
      const d = front + <i32>i * i32At(ip, CONV_FEW_DILATION_D);
      for (let j: u32 = 0; j < kh; j++, out += <usize>kw << 2) {
        const h = top + <i32>j * i32At(ip, CONV_FEW_DILATION_H);
        const outside = <u32>d >= depth || <u32>h >= height;
        const row = outside ? x : x + ((<usize>(<u32>d * height + <u32>h) * <u32>width) << 2);
        if (whole && !outside && kw >= 16) {
          memory.copy(out, row + (<usize>left << 2), <usize>kw << 2);
          continue;
        }
        for (let k: i32 = 0; k < kw; k++) {
          const column = left + k * dw, inRow = !outside && <u32>column < <u32>width;
          store<f32>(out + (<usize>k << 2), inRow ? load<f32>(row + (<usize>column << 2)) : 0);
        }
      }
    }
  }
}
