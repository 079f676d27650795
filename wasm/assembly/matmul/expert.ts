// Rows times matrices that are chosen row by row: on float activations and exactly the stored weights, and on
// 8-bit activations, where every item that chose an expert is a GEMV of its own.
//   a unit of work: some tiles of one expert
//     no item chose it: nothing is read
//     one item:         decode and multiply in one (generated/gemv_float)
//     several:          decode each run of columns once, add its products for all of them
// Which items chose an expert is looked up in the choice itself: it is a few numbers a row.
import { nextChunk, addressAt, chunksOf, min, thread, u32At } from "../machine/runtime";
import {
  EXPERT_MATMUL_BIAS, EXPERT_MATMUL_CHOSEN, EXPERT_MATMUL_CHUNK, EXPERT_MATMUL_COLUMNS, EXPERT_MATMUL_COUNT,
  EXPERT_MATMUL_EXPERTS, EXPERT_MATMUL_LAYOUT, EXPERT_MATMUL_OUTPUTS, EXPERT_MATMUL_ROWS, EXPERT_MATMUL_SCRATCH,
  EXPERT_MATMUL_SCRATCH_BYTES, EXPERT_MATMUL_SHARED, EXPERT_MATMUL_TILE_BYTES, EXPERT_MATMUL_W, EXPERT_MATMUL_X,
  EXPERT_MATMUL_Y, EXPERT_MATMUL_Q8_BIAS, EXPERT_MATMUL_Q8_CHOSEN, EXPERT_MATMUL_Q8_CHUNK, EXPERT_MATMUL_Q8_COLUMNS,
  EXPERT_MATMUL_Q8_COUNT, EXPERT_MATMUL_Q8_EXPERTS, EXPERT_MATMUL_Q8_LAYOUT, EXPERT_MATMUL_Q8_OUTPUTS,
  EXPERT_MATMUL_Q8_ROWS, EXPERT_MATMUL_Q8_ROW_BYTES, EXPERT_MATMUL_Q8_SCRATCH, EXPERT_MATMUL_Q8_SCRATCH_BYTES,
  EXPERT_MATMUL_Q8_SHARED, EXPERT_MATMUL_Q8_STYLE,
  EXPERT_MATMUL_Q8_TILE_BYTES, EXPERT_MATMUL_Q8_W, EXPERT_MATMUL_Q8_X, EXPERT_MATMUL_Q8_Y,
} from "../generated/opcodes";
import { DECODE_BYTES, RUN, decodeColumns } from "./decode_tile";
import { floatTiles } from "../generated/float_tiles";
import { gemvFloat } from "../generated/gemv_float";
import { fetchesAhead, takesTurns } from "../machine/read_trial";
import { addBias, canFetchAhead, chooseStyle, gemv, tilesAhead } from "./q8";
import { UNPACKED_BYTES, addOutliers, listOutliers } from "./outliers";
import { halfOf } from "./tile_ranges";

@inline function expertOf(chosen: usize, item: u32, count: u32): u32 {
  return chosen ? load<u32>(chosen + (<usize>item << 2)) : item % count;
}

export function expert_matmul(ip: usize): void {
  const count = u32At(ip, EXPERT_MATMUL_COUNT), items = u32At(ip, EXPERT_MATMUL_ROWS) * count;
  const experts = u32At(ip, EXPERT_MATMUL_EXPERTS), outputs = u32At(ip, EXPERT_MATMUL_OUTPUTS);
  const chosen = addressAt(ip, EXPERT_MATMUL_CHOSEN), chunk = u32At(ip, EXPERT_MATMUL_CHUNK);
  const tiles = outputs >> 3, units = chunksOf(tiles, chunk);
  const total = items ? experts * units : 0;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const expert = <u32>c / units, first = <u32>c % units * chunk;
    let users: u32 = 0;
    for (let item: u32 = 0; item < items; item++) if (expertOf(chosen, item, count) == expert) users++;
    if (users == 0) continue;
    for (let t = first; t < min(tiles, first + chunk); t++) multiplyTile(ip, expert, t, items, users);
  }
}

/** Eight outputs of one expert for all items that chose it. */
function multiplyTile(ip: usize, expert: u32, t: u32, items: u32, users: u32): void {
  const columns = u32At(ip, EXPERT_MATMUL_COLUMNS), outputs = u32At(ip, EXPERT_MATMUL_OUTPUTS);
  const layout = u32At(ip, EXPERT_MATMUL_LAYOUT), count = u32At(ip, EXPERT_MATMUL_COUNT);
  const chosen = addressAt(ip, EXPERT_MATMUL_CHOSEN), shared = u32At(ip, EXPERT_MATMUL_SHARED);
  const x = addressAt(ip, EXPERT_MATMUL_X), bias = addressAt(ip, EXPERT_MATMUL_BIAS);
  const y = addressAt(ip, EXPERT_MATMUL_Y) + ((<usize>t) << 5);
  const tile = addressAt(ip, EXPERT_MATMUL_W) +
    <usize>(expert * (outputs >> 3) + t) * u32At(ip, EXPERT_MATMUL_TILE_BYTES);
  const scratch = addressAt(ip, EXPERT_MATMUL_SCRATCH) +
    <usize>thread * u32At(ip, EXPERT_MATMUL_SCRATCH_BYTES);
  const panel = scratch + DECODE_BYTES;
  const stride = <usize>columns << 2;
  const from = bias + (<usize>expert * outputs << 2) + ((<usize>t) << 5);

  for (let item: u32 = 0; item < items; item++) {
    if (expertOf(chosen, item, count) != expert) continue;
    const out = y + (<usize>item * outputs << 2);
    v128.store(out, bias ? v128.load(from) : f32x4.splat(0));
    v128.store(out, bias ? v128.load(from, 16) : f32x4.splat(0), 16);
    if (users > 1) continue;
    if (gemvFloat(layout, tile, 0, x + stride * (shared ? item / count : item), columns, out, 0)) return;
  }
  for (let k: u32 = 0; k < columns; k += RUN) {
    const run = min(columns - k, RUN);
    const decoded = decodeColumns(layout, tile, k, run, panel, scratch);
    for (let item: u32 = 0; item < items; item++) {
      if (expertOf(chosen, item, count) != expert) continue;
      const row = x + stride * (shared ? item / count : item) + (<usize>k << 2);
      floatTiles(1, row, stride, run, decoded, y + (<usize>item * outputs << 2), 32);
    }
  }
}

export function expert_matmul_q8(ip: usize): void {
  const count = u32At(ip, EXPERT_MATMUL_Q8_COUNT), items = u32At(ip, EXPERT_MATMUL_Q8_ROWS) * count;
  const outputs = u32At(ip, EXPERT_MATMUL_Q8_OUTPUTS), chosen = addressAt(ip, EXPERT_MATMUL_Q8_CHOSEN);
  const chunk = u32At(ip, EXPERT_MATMUL_Q8_CHUNK), shared = u32At(ip, EXPERT_MATMUL_Q8_SHARED);
  const columns = <usize>u32At(ip, EXPERT_MATMUL_Q8_COLUMNS), layout = u32At(ip, EXPERT_MATMUL_Q8_LAYOUT);
  const x = addressAt(ip, EXPERT_MATMUL_Q8_X), stride = <usize>u32At(ip, EXPERT_MATMUL_Q8_ROW_BYTES);
  const y = addressAt(ip, EXPERT_MATMUL_Q8_Y), bias = addressAt(ip, EXPERT_MATMUL_Q8_BIAS);
  const tileBytes = <usize>u32At(ip, EXPERT_MATMUL_Q8_TILE_BYTES), w = addressAt(ip, EXPERT_MATMUL_Q8_W);
  const scratch = addressAt(ip, EXPERT_MATMUL_Q8_SCRATCH) +
    <usize>thread * u32At(ip, EXPERT_MATMUL_Q8_SCRATCH_BYTES);
  const tiles = outputs >> 3, units = chunksOf(tiles, chunk), steps = tilesAhead(tileBytes);
  const total = items ? u32At(ip, EXPERT_MATMUL_Q8_EXPERTS) * units : 0;
  const list = scratch + UNPACKED_BYTES;
  chooseStyle(u32At(ip, EXPERT_MATMUL_Q8_STYLE));
  const fetches = canFetchAhead(layout) && fetchesAhead(1), turns = takesTurns(tileBytes);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const expert = <u32>c / units, first = <u32>c % units * chunk, last = min(tiles, first + chunk);
    for (let item: u32 = 0; item < items; item++) {
      if (expertOf(chosen, item, count) != expert) continue;
      const row = x + stride * (shared ? item / count : item), end = listOutliers(layout, row, columns, list);
      const out = y + (<usize>item * outputs << 2), half = turns ? halfOf(first, last) : 0, middle = first + half;
      const from = w + <usize>(expert * tiles) * tileBytes;
      for (let t = first; t < middle; t++) {
        const ahead = fetches && t + steps < middle ? steps * tileBytes : 0;
        gemv(layout, from + <usize>t * tileBytes, half * tileBytes, row, columns, out + 32 * t, 32 * half, scratch, ahead);
      }
      for (let t = middle + half; t < last; t++) {
        const ahead = fetches && t + steps < last ? steps * tileBytes : 0;
        gemv(layout, from + <usize>t * tileBytes, 0, row, columns, out + 32 * t, 0, scratch, ahead);
      }
      addOutliers(layout, from + <usize>first * tileBytes, tileBytes, last - first, list, end, out + 32 * first, 0, columns, scratch);
      if (bias) addBias(1, 2 * (last - first), out + 32 * first, 0, bias + ((<usize>expert * outputs + 8 * first) << 2));
    }
  }
}
