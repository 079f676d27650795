// What every kernel needs: operands of its instruction and chunks of its work.
//
//   export function some_kernel(ip: usize): void {
//     const rows = u32At(ip, SOME_KERNEL_ROWS);
//     for (let c = nextChunk(ip, chunksOf(rows, 4)); c >= 0; c = nextChunk(ip, chunksOf(rows, 4))) { … }
//   }
//
// Rules for kernels:
// - Call nextChunk at least once, always with the same total, and touch memory only for chunks it gave.
// - The total depends on operands and on graph inputs only, never on what this run computes, because a
//   thread that comes late computes it too. It may see operands change under it; then it gets no chunk,
//   but must not trap before asking (no division by a symbolic operand).
// - Results must not depend on which thread takes which chunk.

/** Number of this thread, 0 for the main thread. */
export let thread: u32 = 0;
/** Generation of the run that this thread takes part in; one copy a thread. */
export let generation: u32 = 0;
/** Chunks of the current instruction. */
export let chunks: u32 = 0;
/** Chunks of the current wave that this thread has finished. */
export let completed: u32 = 0;

import { INSTRUCTION_COUNTER } from "../generated/opcodes";

// A chain is run chunk by chunk: its head takes one chunk, the links behind it get the same one, each once.
const FREE: u32 = 0, ONE: u32 = 1, SAME: u32 = 2, NONE: u32 = 3;
let mode: u32 = FREE;
/** The chunk of the chain that this thread works on, -1 when none was left. */
export let held: i32 = -1;
/** Chunks that this thread took and has not given out. */
let next: u32 = 0;
let end: u32 = 0;

/** The next kernel takes one chunk at most. */
export function takeOne(): void { mode = ONE; held = -1; }
/** The next kernel gets the chunk held. */
export function takeSame(): void { mode = SAME; }
export function endChain(): void { mode = FREE; }

export function setThread(value: u32): void { thread = value; }
export function setGeneration(value: u32): void { generation = value; completed = 0; mode = FREE; next = end; }
export function resetCompleted(): void { completed = 0; }

/** Next chunk of the instruction for this thread, or -1 when none is left. */
export function nextChunk(ip: usize, total: u32): i32 {
  if (mode != FREE) return nextInChain(ip, total);
  return takeChunk(ip, total);
}

/**
 * The same for chunks of microseconds, of which there may be hundreds; who asks must go on until none is left. Every second
 * thread takes from the end: what the last instruction made of the same part of memory is in that core's cache then.
 */
export function nextSmallChunk(ip: usize, total: u32): i32 {
  if (mode != FREE) return nextInChain(ip, total);
  if (total > MOST_SMALL) return takeChunk(ip, total);
  if (next == end && !takeSome(ip, total)) return -1;
  const chunk = next;
  next = chunk + 1;
  return <i32>chunk;
}

/** Links are lowered to be cut alike; a chunk of another cut would leave rows out, so that traps. */
function nextInChain(ip: usize, total: u32): i32 {
  const asked = mode;
  mode = NONE;
  if (asked == ONE) held = takeChunk(ip, total);
  else if (asked == NONE) return -1;
  else if (total != chunks) unreachable();
  return held;
}

@inline function takeChunk(ip: usize, total: u32): i32 {
  chunks = total;
  const counter = <usize>load<u32>(ip, INSTRUCTION_COUNTER);
  let seen = atomic.load<u64>(counter);
  while (true) {
    if (<u32>(seen >> 32) != generation || <u32>seen >= total) return -1;
    // An unconditional add would let a late thread swallow a chunk of the next run: compare the tag too.
    const before = atomic.cmpxchg<u64>(counter, seen, seen + 1);
    if (before == seen) { completed++; return <i32>seen; }
    seen = before;
  }
}

/**
 * Of the small chunks that are left, 2⁻ⁿ are taken at a time, one at least: where there are hundreds, the counter's way from
 * core to core would take as long. It counts those that were taken from the front, and above 16 bits those from the end.
 */
const SHARE: u32 = 4;
const MOST_SMALL: u32 = 0xffff;

/** Takes chunks [next, end); false when none is left. */
function takeSome(ip: usize, total: u32): bool {
  chunks = total;
  const counter = <usize>load<u32>(ip, INSTRUCTION_COUNTER), fromEnd = thread & 1;
  let seen = atomic.load<u64>(counter);
  while (true) {
    const front = <u32>seen & MOST_SMALL, back = <u32>seen >> 16, left = total - front - back;
    if (<u32>(seen >> 32) != generation || front + back >= total) return false;
    const some = left >> SHARE, count: u32 = some ? some : 1;
    const before = atomic.cmpxchg<u64>(counter, seen, seen + (fromEnd ? <u64>count << 16 : <u64>count));
    if (before == seen) {
      completed += count;
      next = fromEnd ? total - back - count : front;
      end = next + count;
      return true;
    }
    seen = before;
  }
}

@inline export function chunksOf(count: u32, size: u32): u32 { return (count + size - 1) / size; }
@inline export function u32At(ip: usize, operand: usize): u32 { return load<u32>(ip + operand); }
@inline export function i32At(ip: usize, operand: usize): i32 { return load<i32>(ip + operand); }
@inline export function f32At(ip: usize, operand: usize): f32 { return load<f32>(ip + operand); }
@inline export function addressAt(ip: usize, operand: usize): usize { return <usize>load<u32>(ip + operand); }
@inline export function min(a: u32, b: u32): u32 { return a < b ? a : b; }
