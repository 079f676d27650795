// Functions that products apply to a run of results before they leave the cache, by their numbers in
// engine/ops/epilogues.ts.
import { sigmoid4 } from "../exp";

@inline function relu6(x: v128): v128 {
  return f32x4.min(f32x4.max(x, f32x4.splat(0)), f32x4.splat(6));
}

/** One vector; `kind` is not 0. */
@inline export function activated(kind: u32, x: v128): v128 {
  if (kind == 1) return f32x4.max(x, f32x4.splat(0));
  if (kind == 2) return relu6(x);
  if (kind == 3) return f32x4.mul(x, f32x4.mul(relu6(f32x4.add(x, f32x4.splat(3))), f32x4.splat(1.0 / 6.0)));
  return kind == 4 ? f32x4.mul(x, sigmoid4(x)) : sigmoid4(x);
}

/** Changes `count` floats in place; kind 0 leaves them. */
export function activateRun(kind: u32, y: usize, count: u32): void {
  if (!kind) return;
  const end = y + (<usize>count << 2);
  for (; y + 16 <= end; y += 16) v128.store(y, activated(kind, v128.load(y)));
  for (; y < end; y += 4) store<f32>(y, f32x4.extract_lane(activated(kind, f32x4.splat(load<f32>(y))), 0));
}

/** `count` floats of `x`, which has whole vectors, to `y`, which may end anywhere. */
export function activateInto(kind: u32, x: usize, y: usize, count: u32): void {
  for (; count >= 4; count -= 4, x += 16, y += 16) {
    const value = v128.load(x);
    v128.store(y, kind ? activated(kind, value) : value);
  }
  if (!count) return;
  const value = kind ? activated(kind, v128.load(x)) : v128.load(x);
  store<f32>(y, f32x4.extract_lane(value, 0));
  if (count > 1) store<f32>(y, f32x4.extract_lane(value, 1), 4);
  if (count > 2) store<f32>(y, f32x4.extract_lane(value, 2), 8);
}
