// Functions that products apply to a run of results before they leave the cache, by their numbers in
// EPILOGUE_NAMES (functions/unary.ts).
import { activated } from "../generated/elementwise_runs";

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
