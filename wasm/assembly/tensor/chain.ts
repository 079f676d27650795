// A chain of elementwise functions, a block at a time, so that what lies between two functions stays in the
// cache and costs no pass over memory.
//
//   for each block of 512 results: for each step: block of the step = function of earlier blocks
//
// 1. A step is six words of code: 0 for a map or 1 for a combine, the number of its function, the register of
//    its result (-1: y), register a, register b, 0 for a combine; alpha and beta come in place of the last two
//    for a map.
// 2. Registers are pairs of address and byte stride at the start of a thread's scratch: inputs, then constants
//    (which lie behind the code), then the blocks that steps fill. A stride of 0 is a value that stays.
import { addressAt, chunksOf, min, nextSmallChunk, thread, u32At } from "../machine/runtime";
import { combineRun, mapRun } from "../generated/elementwise_runs";
import { loadStrided, storePart } from "./functions";
import {
  ELEMENTWISE_A, ELEMENTWISE_A0, ELEMENTWISE_A1, ELEMENTWISE_A2, ELEMENTWISE_CODE, ELEMENTWISE_CONSTANTS,
  ELEMENTWISE_INPUTS, ELEMENTWISE_N0, ELEMENTWISE_N1, ELEMENTWISE_N2, ELEMENTWISE_SCRATCH, ELEMENTWISE_SCRATCH_BYTES,
  ELEMENTWISE_STEPS, ELEMENTWISE_Y,
} from "../generated/opcodes";

const CHUNK: u32 = 4096;
const BLOCK: u32 = 512;
const TABLE: usize = 512; // bytes of the table of registers
const STEP: usize = 24;
const INPUT: usize = 16; // operands of an input: address and three strides

@inline function addressOf(table: usize, register: u32): usize { return <usize>load<u32>(table + (<usize>register << 3)); }
@inline function strideOf(table: usize, register: u32): usize { return <usize>load<u32>(table + (<usize>register << 3), 4); }

function runSteps(code: usize, steps: u32, table: usize, y: usize, count: u32): void {
  for (let s: u32 = 0; s < steps; s++, code += STEP) {
    const kind = load<u32>(code, 4), to = load<i32>(code, 8), a = load<u32>(code, 12);
    const target = to < 0 ? y : addressOf(table, <u32>to);
    const x = addressOf(table, a), sx = strideOf(table, a);
    if (load<u32>(code)) {
      const b = load<u32>(code, 16);
      combineRun(kind, x, addressOf(table, b), target, count, sx, strideOf(table, b));
      continue;
    }
    const alpha = v128.load32_splat(code, 16), beta = v128.load32_splat(code, 20);
    if (sx == 4) mapRun(kind, x, target, count, alpha, beta);
    else {
      for (let i: u32 = 0; i < count; i += 4) {
        storePart(target + (<usize>i << 2), loadStrided(x + <usize>i * sx, sx, count - i), count - i);
      }
      mapRun(kind, target, target, count, alpha, beta);
    }
  }
}

export function elementwise(ip: usize): void {
  const n1 = u32At(ip, ELEMENTWISE_N1), n2 = u32At(ip, ELEMENTWISE_N2), rows = u32At(ip, ELEMENTWISE_N0) * n1;
  const pieces: u32 = n2 > CHUNK ? chunksOf(n2, CHUNK) : 1;
  const group: u32 = n2 == 0 || n2 > CHUNK ? 1 : CHUNK / n2;
  const total = pieces > 1 ? rows * pieces : chunksOf(rows, group);
  const code = addressAt(ip, ELEMENTWISE_CODE), steps = u32At(ip, ELEMENTWISE_STEPS);
  const inputs = u32At(ip, ELEMENTWISE_INPUTS), constants = u32At(ip, ELEMENTWISE_CONSTANTS);
  const table = addressAt(ip, ELEMENTWISE_SCRATCH) + <usize>thread * u32At(ip, ELEMENTWISE_SCRATCH_BYTES);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    for (let k: u32 = 0; k < constants; k++) {
      const entry = table + (<usize>(inputs + k) << 3);
      store<u32>(entry, <u32>(code + steps * STEP + (<usize>k << 2)));
      store<u32>(entry, 0, 4);
    }
    for (let k = inputs + constants; k < 64; k++) {
      const entry = table + (<usize>k << 3);
      store<u32>(entry, <u32>(table + TABLE + (<usize>(k - inputs - constants) * BLOCK << 2)));
      store<u32>(entry, 4, 4);
    }
    const first = pieces > 1 ? <u32>c / pieces : <u32>c * group, last = pieces > 1 ? first + 1 : min(rows, first + group);
    const from = pieces > 1 ? <u32>c % pieces * CHUNK : 0, end = pieces > 1 ? min(n2, from + CHUNK) : n2;
    for (let row = first; row < last; row++) {
      const i0 = row / n1, i1 = row % n1;
      for (let i = from; i < end; i += BLOCK) {
        for (let k: u32 = 0; k < inputs; k++) {
          const operand = ip + <usize>k * INPUT, stride = u32At(operand, ELEMENTWISE_A2);
          const at = i0 * u32At(operand, ELEMENTWISE_A0) + i1 * u32At(operand, ELEMENTWISE_A1) + i * stride;
          store<u32>(table + (<usize>k << 3), u32At(operand, ELEMENTWISE_A) + at);
          store<u32>(table + (<usize>k << 3), stride, 4);
        }
        runSteps(code, steps, table, addressAt(ip, ELEMENTWISE_Y) + ((<usize>row * n2 + i) << 2), min(BLOCK, end - i));
      }
    }
  }
}
