// Normalisation of channels of float32 planes.
//
//   batch_norm: y = (x - mean) / sqrt(variance + epsilon) · w + b with numbers given for each channel
//   group_norm: the same with mean and variance of each group of channels; w, b optional (address 0); an activation
import { addressAt, f32At, nextSmallChunk, u32At } from "../machine/runtime";
import { sum4 } from "../simd";
import {
  BATCH_NORM_B, BATCH_NORM_BATCH, BATCH_NORM_CHANNELS, BATCH_NORM_EPSILON, BATCH_NORM_MEAN, BATCH_NORM_PLACES,
  BATCH_NORM_VARIANCE, BATCH_NORM_W, BATCH_NORM_X, BATCH_NORM_Y, GROUP_NORM_B, GROUP_NORM_BATCH,
  GROUP_NORM_CHANNELS, GROUP_NORM_EPSILON, GROUP_NORM_GROUPS, GROUP_NORM_PLACES, GROUP_NORM_W, GROUP_NORM_X,
  GROUP_NORM_ACTIVATION, GROUP_NORM_Y,
} from "../generated/opcodes";
import { activateRun } from "./epilogue";

/** y = (x - mean) · factor + move: x · factor would drown the result where a plane is nearly even. */
function scaleRun(x: usize, y: usize, count: u32, mean: f32, factor: f32, move: f32): void {
  const c = f32x4.splat(mean), f = f32x4.splat(factor), m = f32x4.splat(move), bytes = <usize>count << 2;
  let i: usize = 0;
  for (; i + 16 <= bytes; i += 16) {
    v128.store(y + i, f32x4.add(f32x4.mul(f32x4.sub(v128.load(x + i), c), f), m));
  }
  for (; i < bytes; i += 4) store<f32>(y + i, (load<f32>(x + i) - mean) * factor + move);
}

export function batch_norm(ip: usize): void {
  const channels = u32At(ip, BATCH_NORM_CHANNELS), places = u32At(ip, BATCH_NORM_PLACES);
  const total = u32At(ip, BATCH_NORM_BATCH) * channels, epsilon = <f64>f32At(ip, BATCH_NORM_EPSILON);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const channel = <usize>(<u32>c % channels) << 2, start = (<usize>c * places) << 2;
    const deviation = Math.sqrt(<f64>load<f32>(addressAt(ip, BATCH_NORM_VARIANCE) + channel) + epsilon);
    const factor = <f32>(<f64>load<f32>(addressAt(ip, BATCH_NORM_W) + channel) / deviation);
    const mean = load<f32>(addressAt(ip, BATCH_NORM_MEAN) + channel), move = load<f32>(addressAt(ip, BATCH_NORM_B) + channel);
    scaleRun(addressAt(ip, BATCH_NORM_X) + start, addressAt(ip, BATCH_NORM_Y) + start, places, mean, factor, move);
  }
}

/** Σ (x - mean)^power in double, a run of vectors at a time. */
function momentOf(x: usize, count: u32, mean: f32, squares: bool): f64 {
  const m = f32x4.splat(mean), bytes = <usize>count << 2;
  let sum: f64 = 0;
  let i: usize = 0;
  while (i + 16 <= bytes) {
    // 256 vectors in float32, then into the double.
    const end = bytes - i > 4096 ? i + 4096 : i + ((bytes - i) & ~15);
    let lanes = f32x4.splat(0);
    for (; i < end; i += 16) {
      const v = f32x4.sub(v128.load(x + i), m);
      lanes = f32x4.add(lanes, squares ? f32x4.mul(v, v) : v);
    }
    sum += <f64>sum4(lanes);
  }
  for (; i < bytes; i += 4) {
    const v = <f64>(load<f32>(x + i) - mean);
    sum += squares ? v * v : v;
  }
  return sum;
}

export function group_norm(ip: usize): void {
  const channels = u32At(ip, GROUP_NORM_CHANNELS), groups = u32At(ip, GROUP_NORM_GROUPS);
  const places = u32At(ip, GROUP_NORM_PLACES), perGroup = channels / groups, count = perGroup * places;
  const total = u32At(ip, GROUP_NORM_BATCH) * groups, epsilon = <f64>f32At(ip, GROUP_NORM_EPSILON);
  const activation = u32At(ip, GROUP_NORM_ACTIVATION);
  const w = addressAt(ip, GROUP_NORM_W), b = addressAt(ip, GROUP_NORM_B);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const start = (<usize>c * count) << 2, x = addressAt(ip, GROUP_NORM_X) + start;
    const y = addressAt(ip, GROUP_NORM_Y) + start, first = (<u32>c % groups) * perGroup;
    const mean = <f32>(momentOf(x, count, 0, false) / <f64>count);
    // What is left of the mean in float32 is taken off the variance.
    const rest = momentOf(x, count, mean, false) / <f64>count;
    const variance = momentOf(x, count, mean, true) / <f64>count - rest * rest;
    const inverse = 1.0 / Math.sqrt(variance + epsilon);
    for (let i: u32 = 0; i < perGroup; i++) {
      const channel = <usize>(first + i) << 2, at = (<usize>i * places) << 2;
      const factor = <f32>((w ? <f64>load<f32>(w + channel) : 1) * inverse);
      const move = (b ? load<f32>(b + channel) : 0) - <f32>(rest * <f64>factor);
      scaleRun(x + at, y + at, places, mean, factor, move);
      activateRun(activation, y + at, places);
    }
  }
}
