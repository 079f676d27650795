// Choosing experts, and summing what they gave.
//
//   route:        scores = softmax(logits) | sigmoid(logits); judged = scores + correction
//                 groups: only the best group_count of them stay, by their best or best two
//                 the best `count` by judged; weights = scores (/ their sum) · scale
//   weighted_sum: y[m] = Σ w[m, i] · x[m, i]
//
// Rows are few and experts at most some hundreds, so the best are found by repeated search.
import { addressAt, f32At, nextChunk, thread, u32At } from "../machine/runtime";
import { exp4 } from "../exp";
import {
  ROUTE_BEST_TWO, ROUTE_CHOSEN, ROUTE_CORRECTION, ROUTE_COUNT, ROUTE_EXPERTS, ROUTE_GROUP_COUNT, ROUTE_GROUPS,
  ROUTE_KIND, ROUTE_LOGITS, ROUTE_NORMALIZE, ROUTE_ROWS, ROUTE_SCALE, ROUTE_SCRATCH, ROUTE_SCRATCH_BYTES,
  ROUTE_WEIGHTS, WEIGHTED_SUM_COLUMNS, WEIGHTED_SUM_COUNT, WEIGHTED_SUM_ROWS, WEIGHTED_SUM_WEIGHTS,
  WEIGHTED_SUM_X, WEIGHTED_SUM_Y,
} from "../generated/opcodes";

const TAKEN: f32 = -Infinity;
const LEAST_SUM: f32 = 1e-20;

@inline function exp1(x: f32): f32 { return f32x4.extract_lane(exp4(f32x4.splat(x)), 0); }
@inline function at(base: usize, i: u32): usize { return base + (<usize>i << 2); }

/** Index of the largest of `count` values, the first of equal ones. */
function largest(values: usize, count: u32): u32 {
  let best: u32 = 0;
  for (let i: u32 = 1; i < count; i++) if (load<f32>(at(values, i)) > load<f32>(at(values, best))) best = i;
  return best;
}

function scoresOf(logits: usize, scores: usize, experts: u32, kind: u32): void {
  if (kind == 1) {
    for (let e: u32 = 0; e < experts; e++) {
      store<f32>(at(scores, e), (<f32>1) / ((<f32>1) + exp1(-load<f32>(at(logits, e)))));
    }
    return;
  }
  const top = load<f32>(at(logits, largest(logits, experts)));
  let sum: f32 = 0;
  for (let e: u32 = 0; e < experts; e++) {
    const power = exp1(load<f32>(at(logits, e)) - top);
    store<f32>(at(scores, e), power);
    sum += power;
  }
  for (let e: u32 = 0; e < experts; e++) store<f32>(at(scores, e), load<f32>(at(scores, e)) / sum);
}

/** Marks the experts of all but the best groups as taken. */
function closeGroups(judged: usize, groupScores: usize, size: u32, groups: u32, open: u32, bestTwo: u32): void {
  for (let g: u32 = 0; g < groups; g++) {
    const members = at(judged, g * size);
    let first: f32 = TAKEN, second: f32 = TAKEN;
    for (let i: u32 = 0; i < size; i++) {
      const value = load<f32>(at(members, i));
      if (value > first) { second = first; first = value; } else if (value > second) second = value;
    }
    store<f32>(at(groupScores, g), bestTwo && size > 1 ? first + second : first);
  }
  for (let i: u32 = 0; i < open; i++) { // a group that is open is marked by NaN
    store<f32>(at(groupScores, largestOf(groupScores, groups)), NaN);
  }
  for (let g: u32 = 0; g < groups; g++) {
    if (isNaN(load<f32>(at(groupScores, g)))) continue;
    for (let i: u32 = 0; i < size; i++) store<f32>(at(judged, g * size + i), TAKEN);
  }
}

/** The same as `largest`, without those that are NaN. */
function largestOf(values: usize, count: u32): u32 {
  let best: u32 = 0, top: f32 = TAKEN, found = false;
  for (let i: u32 = 0; i < count; i++) {
    const value = load<f32>(at(values, i));
    if (!isNaN(value) && (!found || value > top)) { best = i; top = value; found = true; }
  }
  return best;
}

export function route(ip: usize): void {
  const rows = u32At(ip, ROUTE_ROWS), experts = u32At(ip, ROUTE_EXPERTS), count = u32At(ip, ROUTE_COUNT);
  const groups = u32At(ip, ROUTE_GROUPS), open = u32At(ip, ROUTE_GROUP_COUNT);
  const correction = addressAt(ip, ROUTE_CORRECTION), scale = f32At(ip, ROUTE_SCALE);
  const scores = addressAt(ip, ROUTE_SCRATCH) + <usize>thread * u32At(ip, ROUTE_SCRATCH_BYTES);
  const judged = at(scores, experts), groupScores = at(judged, experts);
  for (let row = nextChunk(ip, rows); row >= 0; row = nextChunk(ip, rows)) {
    scoresOf(at(addressAt(ip, ROUTE_LOGITS), <u32>row * experts), scores, experts, u32At(ip, ROUTE_KIND));
    let spoilt: f32 = 0; // NaN, if a score is: then no weight of the row is a number
    for (let e: u32 = 0; e < experts; e++) {
      const value = load<f32>(at(scores, e)) + (correction ? load<f32>(at(correction, e)) : 0);
      if (isNaN(value)) spoilt = value;
      store<f32>(at(judged, e), isNaN(value) ? TAKEN : value);
    }
    if (open < groups) closeGroups(judged, groupScores, experts / groups, groups, open, u32At(ip, ROUTE_BEST_TWO));
    const chosen = at(addressAt(ip, ROUTE_CHOSEN), <u32>row * count);
    const weights = at(addressAt(ip, ROUTE_WEIGHTS), <u32>row * count);
    let sum = LEAST_SUM;
    for (let i: u32 = 0; i < count; i++) {
      const e = largest(judged, experts);
      store<f32>(at(judged, e), TAKEN);
      store<u32>(at(chosen, i), e);
      store<f32>(at(weights, i), load<f32>(at(scores, e)));
      sum += load<f32>(at(scores, e));
    }
    const factor = u32At(ip, ROUTE_NORMALIZE) ? scale / sum : scale;
    for (let i: u32 = 0; i < count; i++) store<f32>(at(weights, i), load<f32>(at(weights, i)) * factor + spoilt);
  }
}

export function weighted_sum(ip: usize): void {
  const rows = u32At(ip, WEIGHTED_SUM_ROWS), count = u32At(ip, WEIGHTED_SUM_COUNT);
  const columns = u32At(ip, WEIGHTED_SUM_COLUMNS), bytes = <usize>columns << 2;
  for (let row = nextChunk(ip, rows); row >= 0; row = nextChunk(ip, rows)) {
    const x = addressAt(ip, WEIGHTED_SUM_X) + <usize>row * count * bytes;
    const y = addressAt(ip, WEIGHTED_SUM_Y) + <usize>row * bytes;
    const weights = at(addressAt(ip, WEIGHTED_SUM_WEIGHTS), <u32>row * count);
    let d: usize = 0;
    for (; d + 16 <= bytes; d += 16) {
      let sum = f32x4.splat(0);
      for (let i: u32 = 0; i < count; i++) {
        sum = f32x4.add(sum, f32x4.mul(v128.load(x + <usize>i * bytes + d), v128.load32_splat(at(weights, i))));
      }
      v128.store(y + d, sum);
    }
    for (; d < bytes; d += 4) {
      let sum: f32 = 0;
      for (let i: u32 = 0; i < count; i++) sum += load<f32>(x + <usize>i * bytes + d) * load<f32>(at(weights, i));
      store<f32>(y + d, sum);
    }
  }
}
