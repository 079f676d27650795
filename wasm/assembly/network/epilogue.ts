// Functions that products apply to a run of results before they leave the cache, by their numbers in
// EPILOGUE_NAMES (functions/unary.ts).
import { epilogueRun } from "../generated/elementwise_runs";

/** Changes `count` floats in place; kind 0 leaves them. */
export function activateRun(kind: u32, y: usize, count: u32): void {
  if (kind) epilogueRun(kind, y, y, count);
}

/** `count` floats of `x`, which has whole vectors, to `y`, which may end anywhere. */
export function activateInto(kind: u32, x: usize, y: usize, count: u32): void {
  if (kind) { epilogueRun(kind, x, y, count); return; }
  for (; count >= 4; count -= 4, x += 16, y += 16) v128.store(y, v128.load(x));
  for (; count; count--, x += 4, y += 4) store<f32>(y, load<f32>(x));
}
