// Codes of a byte and float32, by tables: floats of 8 and 4 bit (engine/ops/small_float_steps.ts). And the
// loss that reads one entry of each line.
//
//   look_up: y = table[x]     find_code: y = code of the step that x is in     nll_loss: y = -weight[t] · x[t]
import { addressAt, chunksOf, min, nextChunk, u32At } from "../machine/runtime";
import { loadInteger } from "./typed";
import {
  CONTROL_STATUS, FIND_CODE_COUNT, FIND_CODE_STEPS, FIND_CODE_TABLE, FIND_CODE_X, FIND_CODE_Y, LOOK_UP_COUNT, LOOK_UP_TABLE,
  LOOK_UP_X, LOOK_UP_Y, NLL_LOSS_CLASSES, NLL_LOSS_COUNT, NLL_LOSS_IGNORED_HIGH, NLL_LOSS_IGNORED_LOW, NLL_LOSS_IGNORES,
  NLL_LOSS_PLACES, NLL_LOSS_REDUCTION, NLL_LOSS_TARGET, NLL_LOSS_TYPE, NLL_LOSS_WEIGHT, NLL_LOSS_X, NLL_LOSS_Y,
} from "../generated/opcodes";

const CHUNK: u32 = 4096;

export function look_up(ip: usize): void {
  const count = u32At(ip, LOOK_UP_COUNT), total = chunksOf(count, CHUNK), table = addressAt(ip, LOOK_UP_TABLE);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(count, <u32>c * CHUNK + CHUNK);
    for (let i = <u32>c * CHUNK; i < last; i++) {
      const code = <usize>load<u8>(addressAt(ip, LOOK_UP_X) + i);
      store<u32>(addressAt(ip, LOOK_UP_Y) + (<usize>i << 2), load<u32>(table + (code << 2)));
    }
  }
}

/** The last step whose key is not above that of a float32 with these bits. */
@inline function stepOf(bits: u32, table: usize, steps: u32): usize {
  const key = <i32>bits < 0 ? ~bits : bits | 0x80000000;
  let low: u32 = 0, high = steps;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (load<u32>(table + (<usize>middle << 2)) <= key) low = middle;
    else high = middle;
  }
  return <usize>low;
}

export function find_code(ip: usize): void {
  const count = u32At(ip, FIND_CODE_COUNT), total = chunksOf(count, CHUNK), steps = u32At(ip, FIND_CODE_STEPS);
  const table = addressAt(ip, FIND_CODE_TABLE), codes = table + (<usize>steps << 2);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(count, <u32>c * CHUNK + CHUNK);
    for (let i = <u32>c * CHUNK; i < last; i++) {
      const step = stepOf(load<u32>(addressAt(ip, FIND_CODE_X) + (<usize>i << 2)), table, steps);
      store<u8>(addressAt(ip, FIND_CODE_Y) + i, <u8>load<u32>(codes + (step << 2)));
    }
  }
}

/** `reduction`: 0 none, 1 sum, 2 mean. Sums are one chunk, in float64. */
export function nll_loss(ip: usize): void {
  const count = u32At(ip, NLL_LOSS_COUNT), places = u32At(ip, NLL_LOSS_PLACES), classes = u32At(ip, NLL_LOSS_CLASSES);
  const reduction = u32At(ip, NLL_LOSS_REDUCTION), type = u32At(ip, NLL_LOSS_TYPE), weights = addressAt(ip, NLL_LOSS_WEIGHT);
  const group: u32 = reduction == 0 ? CHUNK : count + 1, total = reduction == 0 ? chunksOf(count, CHUNK) : 1;
  const ignored = <i64>u32At(ip, NLL_LOSS_IGNORED_HIGH) << 32 | <i64>u32At(ip, NLL_LOSS_IGNORED_LOW);
  const bytes: usize = type == 6 ? 8 : 4, y = addressAt(ip, NLL_LOSS_Y);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = <u32>c * group, last = min(count, first + group);
    let sum: f64 = 0, counted: f64 = 0;
    for (let i = first; i < last; i++) {
      let named = loadInteger(type, addressAt(ip, NLL_LOSS_TARGET) + i * bytes);
      let loss: f32 = 0;
      if (!u32At(ip, NLL_LOSS_IGNORES) || named != ignored) {
        if (named < 0) named += <i64>classes;
        if (named < 0 || named >= <i64>classes) { atomic.or<u32>(CONTROL_STATUS, 2); continue; }
        const at = (<usize>(i / places) * classes + <usize>named) * places + i % places;
        const factor = weights ? load<f32>(weights + (<usize>named << 2)) : 1;
        loss = -load<f32>(addressAt(ip, NLL_LOSS_X) + (at << 2)) * factor;
        counted += <f64>factor;
      }
      sum += <f64>loss;
      if (reduction == 0) store<f32>(y + (<usize>i << 2), loss);
    }
    if (reduction) store<f32>(y, <f32>(reduction == 1 ? sum : sum / counted));
  }
}
