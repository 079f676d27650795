// What lies under the windows of places, packed in panels of eight places for gen/conv_tiles.ts: [panels][taps][8] floats and
// 32 bytes behind each panel, since what does not fill eight places is written as eight, and then over.
//
// The input's rows under the places are copied into a buffer that has zeros where windows leave the plane, every stride-th
// column side by side: then each tap of neighbouring places is a run of neighbours. Which rows, and which runs, is the same
// for all channels, so it is written down once for a piece: no channel divides anything or looks at a border.
import { i32At, min, u32At } from "../machine/runtime";
import {
  CONV_BEGIN_D, CONV_BEGIN_H, CONV_BEGIN_W, CONV_DEPTH, CONV_DILATION_D, CONV_DILATION_H, CONV_DILATION_W, CONV_HEIGHT,
  CONV_KERNEL_D, CONV_KERNEL_H, CONV_KERNEL_W, CONV_OUT_DEPTH, CONV_OUT_HEIGHT, CONV_OUT_WIDTH, CONV_STRIDE_D,
  CONV_STRIDE_H, CONV_STRIDE_W, CONV_WIDTH,
} from "../generated/opcodes";

/** Bytes of a panel. */
@inline export function panelBytes(taps: u32): usize { return (<usize>taps << 5) + 32; }

/** `count` places of a row that lies as it is wanted, to a tap's place in each panel. */
export function spread(row: usize, count: u32, panel: usize, to: usize): void {
  for (; count >= 8; count -= 8, row += 32, to += panel) {
    v128.store(to, v128.load(row));
    v128.store(to, v128.load(row, 16), 16);
  }
  for (; count; count--, row += 4, to += 4) store<f32>(to, load<f32>(row));
}

/** All taps of `channels` channels at `count` places from `first` on; `notes`: room as conv_setup.ts has it. */
export function gather(ip: usize, x: usize, channels: u32, first: u32, count: u32, notes: usize, to: usize): void {
  const kd = u32At(ip, CONV_KERNEL_D), kh = u32At(ip, CONV_KERNEL_H), kw = u32At(ip, CONV_KERNEL_W), kernel = kd * kh * kw;
  const strideH = u32At(ip, CONV_STRIDE_H), stride = u32At(ip, CONV_STRIDE_W), spreadH = u32At(ip, CONV_DILATION_H);
  const depth = u32At(ip, CONV_DEPTH), height = u32At(ip, CONV_HEIGHT), width = u32At(ip, CONV_WIDTH);
  const outWidth = u32At(ip, CONV_OUT_WIDTH), top = first / outWidth, outRows = (first + count - 1) / outWidth - top + 1;
  const left = outRows == 1 ? first % outWidth : 0, columns = outRows == 1 ? count : outWidth;
  // Columns of the buffer, and phases of the stride that taps have.
  const reach = (kw - 1) * u32At(ip, CONV_DILATION_W), phases = min(stride, reach + 1), pitch = columns + reach / stride;
  // Neighbouring rows of the output see the same rows, unless they are too far apart.
  const together = (outRows - 1) * strideH + (kh - 1) * spreadH + 1;
  const shared = depth == 1 && kd == 1 && u32At(ip, CONV_OUT_DEPTH) == 1 && together < outRows * kh;
  const rows = shared ? together : outRows * kd * kh, rowFloats = phases * pitch;
  const runs = notes + (<usize>kernel << 2);
  for (let t: u32 = 0; t < kernel; t++) {
    const line = shared ? t / kw * spreadH : t / kw, column = t % kw * u32At(ip, CONV_DILATION_W);
    noteAt(notes + (<usize>t << 2), line * rowFloats + column % stride * pitch + column / stride);
  }
  const apart = (shared ? strideH : kd * kh) * rowFloats;
  const copies = noteRuns(runs, first, count, outWidth, left, top, apart, panelBytes(channels * kernel));
  let buffer = copies;
  for (let row: u32 = 0; row < rows; row++) {
    let h: i32, d: i32 = 0;
    if (shared) h = <i32>(top * strideH + row) - i32At(ip, CONV_BEGIN_H);
    else {
      const out = top + row / (kd * kh), outHeight = u32At(ip, CONV_OUT_HEIGHT);
      h = <i32>(out % outHeight * strideH + row % kh * spreadH) - i32At(ip, CONV_BEGIN_H);
      d = <i32>(out / outHeight * u32At(ip, CONV_STRIDE_D) + row / kh % kd * u32At(ip, CONV_DILATION_D)) - i32At(ip, CONV_BEGIN_D);
    }
    if (<u32>h >= height || <u32>d >= depth) continue;
    for (let phase: u32 = 0; phase < phases; phase++) {
      const column = <i32>(left * stride + phase) - i32At(ip, CONV_BEGIN_W);
      const from = column < 0 ? (<u32>-column + stride - 1) / stride : 0;
      const rest = <i32>width - column, end = rest > 0 ? min((<u32>rest + stride - 1) / stride, pitch) : 0;
      if (end <= from) continue;
      noteAt(buffer, (<u32>d * height + <u32>h) * width + <u32>(column + <i32>(from * stride)));
      noteAt(buffer + 4, row * rowFloats + phase * pitch + from);
      store<u32>(buffer, end - from, 8);
      buffer += 12;
    }
  }
  memory.fill(buffer, 0, <usize>(rows * rowFloats) << 2);
  const plane = <usize>(depth * height * width) << 2;
  for (let c: u32 = 0; c < channels; c++, x += plane) {
    for (let at = copies; at < buffer; at += 12) {
      copyColumns(x + <usize>load<u32>(at), buffer + <usize>load<u32>(at, 4), load<u32>(at, 8), stride);
    }
    for (let tap = notes; tap < runs; tap += 4, to += 32) {
      const from = buffer + <usize>load<u32>(tap);
      for (let run = runs; run < copies; run += 8) {
        const source = from + <usize>load<u32>(run), target = to + <usize>load<u32>(run, 4);
        v128.store(target, v128.load(source));
        v128.store(target, v128.load(source, 16), 16);
      }
    }
  }
}

/** Writes down where floats lie, in bytes. */
@inline function noteAt(at: usize, floats: u32): void { store<u32>(at, floats << 2); }

/** Writes down the runs of places of a row that lie in one panel: where they are in the buffer, and in panels; returns the end. */
function noteRuns(
  at: usize, first: u32, count: u32, outWidth: u32, left: u32, top: u32, rowFloats: u32, panel: usize,
): usize {
  for (let done: u32 = 0; done < count; at += 8) {
    const row = (first + done) / outWidth, column = (first + done) % outWidth;
    noteAt(at, (row - top) * rowFloats + column - left);
    store<u32>(at, <u32>((done >> 3) * panel) + ((done & 7) << 2), 4);
    done += min(min(8 - (done & 7), outWidth - column), count - done);
  }
  return at;
}

/** `count` floats that are `stride` apart. */
function copyColumns(x: usize, y: usize, count: u32, stride: u32): void {
  const last = <usize>count << 2;
  if (count >= 4 && stride == 1) {
    for (let i: usize = 0; i < last - 16; i += 16) v128.store(y + i, v128.load(x + i));
    v128.store(y + last - 16, v128.load(x + last - 16));
  } else if (count >= 4 && stride == 2) {
    for (let i: usize = 0; i < last - 16; i += 16) v128.store(y + i, everySecond(x + 2 * i));
    v128.store(y + last - 16, everySecond(x + 2 * last - 32));
  } else {
    for (let i: u32 = 0; i < count; i++, x += <usize>stride << 2, y += 4) store<f32>(y, load<f32>(x));
  }
}

/** Elements 0, 2, 4 and 6; nothing behind them is touched. */
@inline export function everySecond(at: usize): v128 {
  return i8x16.shuffle(
    v128.load(at), v128.load(at, 12), 0, 1, 2, 3, 8, 9, 10, 11, 20, 21, 22, 23, 28, 29, 30, 31,
  );
}
