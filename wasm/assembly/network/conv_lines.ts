// Lines of float32 planes as convolutions read them: a piece of a row with zeros where the window leaves
// the plane, every `stride`-th element side by side. After that no tap needs a look at borders.
import { everySecond } from "./conv_gather";

/**
 * Writes `count` elements of a row of `width`, from column `left` on and `stride` apart; columns outside are 0.
 * Up to three floats behind the line may be written.
 */
export function packLine(row: usize, width: i32, left: i32, stride: i32, count: i32, line: usize): void {
  let i: i32 = 0;
  if (left < 0) {
    const before = (stride - 1 - left) / stride;
    i = before < count ? before : count;
    for (let at: i32 = 0; at < i; at++) store<f32>(line + (<usize>at << 2), 0);
  }
  const fitting = width > left ? (width - left + stride - 1) / stride : 0;
  const end = fitting < count ? fitting : count;
  let at = row + (<usize>(left + i * stride) << 2), target = line + (<usize>i << 2);
  if (stride == 1) {
    for (; i + 4 <= end; i += 4, at += 16, target += 16) v128.store(target, v128.load(at));
  } else if (stride == 2) {
    for (; i + 4 <= end; i += 4, at += 32, target += 16) v128.store(target, everySecond(at));
  }
  for (; i < end; i++, at += <usize>stride << 2, target += 4) store<f32>(target, load<f32>(at));
  if (i < count) zeroLine(target, count - i);
}

/** Zeros, in whole vectors. */
export function zeroLine(line: usize, count: i32): void {
  for (let i: i32 = 0; i < count; i += 4, line += 16) v128.store(line, f32x4.splat(0));
}
