// Runs a program: every thread walks the same instructions; within an instruction the threads take
// chunks from its counter; a wave ends when all its chunks are finished, whoever did them.
//
//   for each instruction:
//     if it opens a wave: add my finished chunks to the last wave; wait until that wave has all of them
//     call the kernel (it takes chunks until none is left)
//     of a chain: chunk by chunk, call its kernels one after another
//
// 1. A wave waits for chunks, not for threads: a thread that the system has put aside holds up nobody
//    unless it holds a chunk. It catches up by finding every counter exhausted.
// 2. Counters carry the number of the run, so a thread left over from an older run cannot take work.
//    `begin` tags them before operands are patched, `execute` starts the run afterwards.
// 3. Waiting polls first (a hand-over takes 0.3 µs) and sleeps on one bell after a bounded number of
//    polls; whoever completes something rings only if somebody sleeps.
// 4. Only the head of a chain has a counter. Whoever got a chunk of it takes that through all links, so a late
//    thread, which gets none, runs no link. A decode waits a fifth less often (bench/results/kernels.md).
// 5. An idle worker ends itself after a while, so a script that forgets dispose() still ends.
// 6. Before it sleeps it touches memory that is about to be written to, if there is any: the system gives a process
//    its pages one by one at the first write, which takes as long as reading and packing what comes there.

import { lookForJoining } from "./joining";
import {
  CONTROL_BELL, CONTROL_FAULT, CONTROL_GENERATION, CONTROL_MAIN_SLEEPS, CONTROL_PROGRAM, CONTROL_RETIRED, CONTROL_RETIRE_MS,
  CONTROL_SLEEPERS, CONTROL_SPINS, CONTROL_STALL_MS, CONTROL_STOP, CONTROL_THREADS, CONTROL_TOUCH_END, CONTROL_TOUCH_NEXT,
  INSTRUCTION_BYTES, INSTRUCTION_DONE, INSTRUCTION_FLAGS, INSTRUCTION_KERNEL,
  PROGRAM_CODE, PROGRAM_COUNT, PROGRAM_COUNTERS, PROGRAM_LINES, PROGRAM_TIMES,
} from "../generated/opcodes";
import {
  chunks, completed, endChain, generation, held, resetCompleted, setGeneration, setThread, takeOne, takeSame,
} from "./runtime";

@external("env", "now") declare function now(): f64;

const NAP: i64 = 100_000_000; // nanoseconds between looks at the clock while asleep

function ring(): void {
  if (atomic.load<u32>(CONTROL_SLEEPERS) == 0) return;
  atomic.add<u32>(CONTROL_BELL, 1);
  atomic.notify(CONTROL_BELL, -1);
}

/** Sleeps until the bell rings after `bell` was read, or a nap has passed. */
function sleep(bell: u32): void {
  atomic.wait<i32>(CONTROL_BELL, bell, NAP);
  atomic.sub<u32>(CONTROL_SLEEPERS, 1);
}

/** Main thread, first half of a run: gives all counters to the coming run. Operands may be patched then. */
export function begin(program: usize): void {
  lookForJoining();
  const tag = <u64>(atomic.load<u32>(CONTROL_GENERATION) + 1) << 32;
  const count = load<u32>(program, PROGRAM_COUNT);
  const lines = load<u32>(program, PROGRAM_LINES);
  let line = <usize>load<u32>(program, PROGRAM_COUNTERS);
  for (let i: u32 = 0; i < count; i++, line += 64) atomic.store<u64>(line, tag);
  for (let i = count; i < lines; i++, line += 64) atomic.store<u64>(line, 0);
}

/** Main thread, second half: runs the program with the workers. Returns the fault code, 0 for none. */
export function execute(program: usize): u32 {
  launch(program);
  return join(program);
}

/** Main thread: lets the workers begin with a program. Until `join` they are alone with it. */
export function launch(program: usize): void {
  setGeneration(atomic.load<u32>(CONTROL_GENERATION) + 1);
  atomic.store<u32>(CONTROL_PROGRAM, <u32>program);
  atomic.store<u32>(CONTROL_GENERATION, generation);
  ring();
}

/** Main thread: takes part in what was launched last until it is done. Returns the fault code, 0 for none. */
export function join(program: usize): u32 {
  if (load<u32>(program, PROGRAM_TIMES)) walkProfiled(program);
  else walk(program, true);
  return atomic.load<u32>(CONTROL_FAULT);
}

/**
 * Main thread, second half of a run that no worker hears of: waking them costs more than a small program.
 * Counters carry the coming run's number, which no worker has.
 */
export function executeAlone(program: usize): u32 {
  setGeneration(atomic.load<u32>(CONTROL_GENERATION) + 1);
  if (load<u32>(program, PROGRAM_TIMES)) walkProfiled(program);
  else walk(program, true);
  return atomic.load<u32>(CONTROL_FAULT);
}

/** Main thread: sees to it that no thread looks at the last program any more, so it can be freed. */
export function release(threads: u32): void {
  setGeneration(atomic.load<u32>(CONTROL_GENERATION) + 1);
  atomic.store<u32>(CONTROL_PROGRAM, 0);
  atomic.store<u32>(CONTROL_GENERATION, generation);
  ring();
  for (let thread: u32 = 1; thread < threads; thread++) {
    const line = CONTROL_THREADS + <usize>thread * 64;
    while (atomic.load<u32>(line) == 1 && atomic.load<u32>(line, 4) != generation) {
      if (atomic.load<u32>(CONTROL_FAULT)) return;
    }
  }
}

/** Worker: takes part in runs until told to stop, or idle for too long. */
export function serve(thread: u32): void {
  setThread(thread);
  const line = CONTROL_THREADS + <usize>thread * 64;
  atomic.store<u32>(line, 1);
  let seen: u32 = 0;
  while (awaitRun(seen)) {
    seen = atomic.load<u32>(CONTROL_GENERATION);
    setGeneration(seen);
    const program = <usize>atomic.load<u32>(CONTROL_PROGRAM);
    if (program) walk(program, false);
    atomic.store<u32>(line, seen, 4);
  }
  atomic.store<u32>(line, 2);
  atomic.add<u32>(CONTROL_RETIRED, 1);
}

/** Memory that a worker touches at once: some 70 µs until it looks for a run again. */
const TOUCH_BYTES: u32 = 256 * 1024;
const PAGE: u32 = 4096;

/** Touches the next pages, whatever they hold stays; false if there are none. */
function touchNext(): bool {
  const end = atomic.load<u32>(CONTROL_TOUCH_END);
  if (atomic.load<u32>(CONTROL_TOUCH_NEXT) >= end) return false;
  const first = atomic.add<u32>(CONTROL_TOUCH_NEXT, TOUCH_BYTES);
  for (let at = first; at < end && at - first < TOUCH_BYTES; at += PAGE) atomic.add<u32>(<usize>at, 0);
  return true;
}

function awaitRun(seen: u32): bool {
  let spins = load<u32>(CONTROL_SPINS);
  let idleSince: f64 = 0;
  while (atomic.load<u32>(CONTROL_GENERATION) == seen) {
    if (atomic.load<u32>(CONTROL_STOP)) return false;
    if (spins) { spins--; continue; }
    if (touchNext()) continue;
    if (idleSince == 0) idleSince = now();
    else if (now() - idleSince > <f64>load<u32>(CONTROL_RETIRE_MS)) return false;
    atomic.add<u32>(CONTROL_SLEEPERS, 1);
    const bell = atomic.load<u32>(CONTROL_BELL);
    if (atomic.load<u32>(CONTROL_GENERATION) != seen || atomic.load<u32>(CONTROL_STOP)) {
      atomic.sub<u32>(CONTROL_SLEEPERS, 1);
      continue;
    }
    sleep(bell);
  }
  return !atomic.load<u32>(CONTROL_STOP);
}

function walk(program: usize, main: bool): void {
  let ip = <usize>load<u32>(program, PROGRAM_CODE);
  const end = ip + <usize>load<u32>(program, PROGRAM_COUNT) * INSTRUCTION_BYTES;
  let done: usize = 0;
  let expected: u32 = 0;
  for (; ip < end; ip += INSTRUCTION_BYTES) {
    const flags = load<u32>(ip, INSTRUCTION_FLAGS);
    if (flags & 1) {
      if (!finishWave(done, expected, main)) return;
      expected = 0;
    }
    done = <usize>load<u32>(ip, INSTRUCTION_DONE);
    const links = flags >> 1;
    if (links) {
      runChain(ip, links, 0, 0);
      ip += <usize>links * INSTRUCTION_BYTES;
    } else call_indirect<void>(load<u32>(ip, INSTRUCTION_KERNEL), ip);
    expected += chunks;
  }
  finishWave(done, expected, main);
}

/**
 * Runs the instruction at `ip` and `links` more behind it as a chain. With `times` it adds up what each takes, from
 * the clock at `before`, and returns the clock.
 */
function runChain(ip: usize, links: u32, times: usize, before: f64): f64 {
  do {
    takeOne();
    for (let link: u32 = 0; link <= links; link++) {
      const at = ip + <usize>link * INSTRUCTION_BYTES;
      call_indirect<void>(load<u32>(at, INSTRUCTION_KERNEL), at);
      if (times) {
        const time = times + (<usize>link << 3), after = now();
        store<f64>(time, load<f64>(time) + after - before);
        before = after;
      }
      if (held < 0) break;
      takeSame();
    }
    // Chunks are taken in order: behind the last one none is left.
  } while (held >= 0 && <u32>held + 1 < chunks);
  endChain();
  return before;
}

/** The main thread's walk with a clock: time by instruction, and of waiting. */
function walkProfiled(program: usize): void {
  let ip = <usize>load<u32>(program, PROGRAM_CODE);
  let time = <usize>load<u32>(program, PROGRAM_TIMES);
  const count = load<u32>(program, PROGRAM_COUNT);
  const waiting = time + <usize>count * 8;
  let done: usize = 0;
  let expected: u32 = 0;
  let before = now();
  for (let i: u32 = 0; i < count; i++, ip += INSTRUCTION_BYTES, time += 8) {
    const flags = load<u32>(ip, INSTRUCTION_FLAGS);
    if (flags & 1) {
      if (!finishWave(done, expected, true)) return;
      expected = 0;
      const after = now();
      store<f64>(waiting, load<f64>(waiting) + after - before);
      before = after;
    }
    done = <usize>load<u32>(ip, INSTRUCTION_DONE);
    const links = flags >> 1;
    if (links) before = runChain(ip, links, time, before);
    else {
      call_indirect<void>(load<u32>(ip, INSTRUCTION_KERNEL), ip);
      const after = now();
      store<f64>(time, load<f64>(time) + after - before);
      before = after;
    }
    expected += chunks;
    i += links; ip += <usize>links * INSTRUCTION_BYTES; time += <usize>links << 3;
  }
  finishWave(done, expected, true);
  store<f64>(waiting, load<f64>(waiting) + now() - before);
}

/** Hands in this thread's chunks and waits for the rest of the wave; false ends the walk. */
function finishWave(done: usize, expected: u32, main: bool): bool {
  const mine = completed;
  if (mine) {
    resetCompleted();
    if (atomic.add<u32>(done, mine) + mine == expected) { ring(); return true; }
  }
  if (done == 0) return true;
  let spins = load<u32>(CONTROL_SPINS);
  let since: f64 = 0;
  while (atomic.load<u32>(done) != expected) {
    if (atomic.load<u32>(CONTROL_GENERATION) != generation || atomic.load<u32>(CONTROL_FAULT)) return false;
    if (spins) { spins--; continue; }
    if (main) {
      if (since == 0) since = now();
      else if (now() - since > <f64>load<u32>(CONTROL_STALL_MS)) {
        atomic.store<u32>(CONTROL_FAULT, 2);
        ring();
        return false;
      }
      if (!load<u32>(CONTROL_MAIN_SLEEPS)) { spins = load<u32>(CONTROL_SPINS); continue; }
    }
    atomic.add<u32>(CONTROL_SLEEPERS, 1);
    const bell = atomic.load<u32>(CONTROL_BELL);
    if (atomic.load<u32>(done) == expected || atomic.load<u32>(CONTROL_GENERATION) != generation ||
        atomic.load<u32>(CONTROL_FAULT)) {
      atomic.sub<u32>(CONTROL_SLEEPERS, 1);
      continue;
    }
    sleep(bell);
  }
  return true;
}
