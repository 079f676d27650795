// RNN, GRU and LSTM layers over float32 sequences, with the usual activations.
//
// A chunk is one item of the batch in one direction, from its first step to its last: steps depend on
// each other. The state lives in the last outputs, gates and a second state in scratch memory.
import { addressAt, nextChunk, thread, u32At } from "../machine/runtime";
import { sigmoid4, tanh4 } from "../exp";
import { dotTiles } from "../generated/dot_tiles";
import {
  RECURRENT_B, RECURRENT_BATCH, RECURRENT_BATCH_FIRST, RECURRENT_C, RECURRENT_DIRECTIONS, RECURRENT_H,
  RECURRENT_HIDDEN, RECURRENT_KIND, RECURRENT_LAST_C, RECURRENT_LAST_H, RECURRENT_LINEAR, RECURRENT_R,
  RECURRENT_REVERSE, RECURRENT_SCRATCH, RECURRENT_SCRATCH_BYTES, RECURRENT_SEQUENCE, RECURRENT_W, RECURRENT_WIDTH,
  RECURRENT_X, RECURRENT_Y,
} from "../generated/opcodes";

/** Numbers of the kinds are those of CELL_KINDS in engine/ops/recurrent_cells.ts. */
const RNN: u32 = 0;
const GRU: u32 = 1;

@inline function sigmoid1(x: f32): f32 { return f32x4.extract_lane(sigmoid4(f32x4.splat(x)), 0); }
@inline function tanh1(x: f32): f32 { return f32x4.extract_lane(tanh4(f32x4.splat(x)), 0); }

/** out[row] = matrix[row] · x + bias[row]. */
function products(matrix: usize, rows: u32, columns: u32, x: usize, bias: usize, out: usize): void {
  if (bias) memory.copy(out, bias, <usize>rows << 2);
  else memory.fill(out, 0, <usize>rows << 2);
  dotTiles(rows, matrix, <usize>columns << 2, columns, 1, x, 0, out, 4);
}

export function recurrent(ip: usize): void {
  const batch = u32At(ip, RECURRENT_BATCH), directions = u32At(ip, RECURRENT_DIRECTIONS);
  const total = batch * directions;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) sequence(ip, <u32>c / batch, <u32>c % batch);
}

function sequence(ip: usize, direction: u32, item: u32): void {
  const kind = u32At(ip, RECURRENT_KIND), hidden = u32At(ip, RECURRENT_HIDDEN), width = u32At(ip, RECURRENT_WIDTH);
  const batch = u32At(ip, RECURRENT_BATCH), directions = u32At(ip, RECURRENT_DIRECTIONS);
  const steps = u32At(ip, RECURRENT_SEQUENCE);
  const batchFirst = u32At(ip, RECURRENT_BATCH_FIRST), backwards = u32At(ip, RECURRENT_REVERSE) || direction == 1;
  const gates = (kind == RNN ? 1 : kind == GRU ? 3 : 4) * hidden, bytes = <usize>hidden << 2;
  const w = addressAt(ip, RECURRENT_W) + ((<usize>direction * gates * width) << 2);
  const r = addressAt(ip, RECURRENT_R) + ((<usize>direction * gates * hidden) << 2);
  const given = addressAt(ip, RECURRENT_B), b = given ? given + ((<usize>direction * 2 * gates) << 2) : 0;
  const state = <usize>(batchFirst ? item * directions + direction : direction * batch + item) * bytes;
  const h = addressAt(ip, RECURRENT_LAST_H) + state, cell = kind > GRU ? addressAt(ip, RECURRENT_LAST_C) + state : 0;
  start(h, addressAt(ip, RECURRENT_H), state, bytes);
  if (cell) start(cell, addressAt(ip, RECURRENT_C), state, bytes);
  const input = addressAt(ip, RECURRENT_SCRATCH) + <usize>thread * u32At(ip, RECURRENT_SCRATCH_BYTES);
  const recurrent = input + (<usize>gates << 2), gated = recurrent + (<usize>gates << 2);
  for (let i: u32 = 0; i < steps; i++) {
    const t = backwards ? steps - 1 - i : i;
    const x = addressAt(ip, RECURRENT_X) + ((<usize>(batchFirst ? item * steps + t : t * batch + item) * width) << 2);
    products(w, gates, width, x, b, input);
    products(r, gates, hidden, h, b ? b + (<usize>gates << 2) : 0, recurrent);
    if (kind == RNN) rnn(input, recurrent, h, hidden);
    else if (kind == GRU) gru(ip, input, recurrent, gated, r, b, h, hidden);
    else lstm(input, recurrent, h, cell, hidden);
    const y = batchFirst ? (item * steps + t) * directions + direction : (t * directions + direction) * batch + item;
    memory.copy(addressAt(ip, RECURRENT_Y) + <usize>y * bytes, h, bytes);
  }
}

function start(state: usize, given: usize, at: usize, bytes: usize): void {
  if (given) memory.copy(state, given + at, bytes);
  else memory.fill(state, 0, bytes);
}

function rnn(input: usize, recurrent: usize, h: usize, hidden: u32): void {
  for (let i: usize = 0; i < <usize>hidden << 2; i += 4) {
    store<f32>(h + i, tanh1(load<f32>(input + i) + load<f32>(recurrent + i)));
  }
}

/** Gates: update, reset, hidden. */
function gru(ip: usize, input: usize, recurrent: usize, gated: usize, r: usize, b: usize, h: usize, hidden: u32): void {
  const bytes = <usize>hidden << 2, linear = u32At(ip, RECURRENT_LINEAR);
  for (let i: usize = 0; i < bytes; i += 4) {
    const reset = sigmoid1(load<f32>(input + bytes + i) + load<f32>(recurrent + bytes + i));
    if (linear) store<f32>(recurrent + 2 * bytes + i, load<f32>(recurrent + 2 * bytes + i) * reset);
    else store<f32>(gated + i, load<f32>(h + i) * reset);
  }
  if (!linear) {
    const bias = b ? b + 5 * bytes : 0;
    products(r + 2 * bytes * <usize>hidden, hidden, hidden, gated, bias, recurrent + 2 * bytes);
  }
  for (let i: usize = 0; i < bytes; i += 4) {
    const update = sigmoid1(load<f32>(input + i) + load<f32>(recurrent + i));
    const candidate = tanh1(load<f32>(input + 2 * bytes + i) + load<f32>(recurrent + 2 * bytes + i));
    store<f32>(h + i, (1 - update) * candidate + update * load<f32>(h + i));
  }
}

/** Gates: input, output, forget, cell. */
function lstm(input: usize, recurrent: usize, h: usize, cell: usize, hidden: u32): void {
  const bytes = <usize>hidden << 2;
  let i: usize = 0;
  for (; i + 16 <= bytes; i += 16) {
    const enter = sigmoid4(f32x4.add(v128.load(input + i), v128.load(recurrent + i)));
    const leave = sigmoid4(f32x4.add(v128.load(input + bytes + i), v128.load(recurrent + bytes + i)));
    const keep = sigmoid4(f32x4.add(v128.load(input + 2 * bytes + i), v128.load(recurrent + 2 * bytes + i)));
    const fresh = tanh4(f32x4.add(v128.load(input + 3 * bytes + i), v128.load(recurrent + 3 * bytes + i)));
    const c = f32x4.add(f32x4.mul(keep, v128.load(cell + i)), f32x4.mul(enter, fresh));
    v128.store(cell + i, c);
    v128.store(h + i, f32x4.mul(leave, tanh4(c)));
  }
  for (; i < bytes; i += 4) {
    const enter = sigmoid1(load<f32>(input + i) + load<f32>(recurrent + i));
    const leave = sigmoid1(load<f32>(input + bytes + i) + load<f32>(recurrent + bytes + i));
    const keep = sigmoid1(load<f32>(input + 2 * bytes + i) + load<f32>(recurrent + 2 * bytes + i));
    const fresh = tanh1(load<f32>(input + 3 * bytes + i) + load<f32>(recurrent + 3 * bytes + i));
    const c = keep * load<f32>(cell + i) + enter * fresh;
    store<f32>(cell + i, c);
    store<f32>(h + i, leave * tanh1(c));
  }
}
