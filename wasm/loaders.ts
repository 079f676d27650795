// Threads that load weights while a machine computes (spec LF-9): they read a piece of a file, pack it into its place in
// the machine's memory, and take the next piece. They are none of the machine's own threads: those are wanted for
// computing, and what reads from a disk mostly sleeps. Pieces are taken in the order in which they are handed over, urgent
// ones first. Whoever waits for a piece may take it itself, so nothing depends on a loader being there: one that cannot
// start, has retired or is slow only leaves more to the caller.

import { INSTRUCTION } from "./layout.ts";
import type { Machine } from "./machine.ts";
import { INSTANTIATE } from "./pool.ts";
import { createThread, type Thread } from "./threads.ts";

/** Byte layout of a piece: an instruction of pack_weight, and what its end is told by. */
export const PIECE: Readonly<Record<"BYTES" | "DONE" | "BAD" | "KIB", number>> = {
  BYTES: 192,
  /** Address of the word that counts finished pieces. */
  DONE: INSTRUCTION.BYTES,
  /** Address of the word that what could not be read or used is added to. */
  BAD: INSTRUCTION.BYTES + 4,
  /** KiB that are read. */
  KIB: INSTRUCTION.BYTES + 8,
};

/** Options of {@linkcode createLoaders}. */
export interface LoaderOptions {
  /** Threads; 0: whoever waits for a piece loads it. */
  readonly threads: number;
  /** Most pieces that are handed over and not loaded yet. */
  readonly pieces: number;
  /** Reads no faster than this, with one thread. */
  readonly bytesPerSecond?: number | undefined;
  /** Address of a word that changes as bytes are read. */
  readonly loaded: number;
  /** How the calling thread reads; as {@linkcode Machine.readFilesBy} has it. */
  readonly read: (file: number, offset: number, target: number, bytes: number) => boolean;
  /** Milliseconds after which a loader without work ends itself; default 1,000. */
  readonly retireMs?: number;
  /** Milliseconds without any progress after which waiting is given up; default 60,000. */
  readonly stallMs?: number;
}

/** Threads that load. */
export interface Loaders {
  /** How many there are. */
  readonly threads: number;
  /** Milliseconds that loading has taken, all threads together, the calling one included. */
  readonly busyMs: number;
  /** Hands over a piece (an address); `urgent`: before all that are not. */
  push(piece: number, urgent?: boolean): void;
  /** Waits until the word at index `word` of memory says `count`, and takes part. @throws {Error} If nothing happens. */
  wait(word: number, count: number): void;
  /** Replaces loaders that have retired. */
  refresh(): void;
  /** Stops them; a piece that is being loaded is finished. */
  dispose(): void;
}

/** After so long a loader that could not start is tried again. */
const RETRY_MS = 1000;

// Words of the queue, a line each where threads meet. LIVE has a bit for each loader.
const HEADS = 0, TAILS = 16, BELL = 32, STOP = 48, LIVE = 64, BUSY = 80;
/** Most threads: each has a float64 for its time. */
const MOST_LOADERS = 16;
const RINGS = BUSY + 2 * (MOST_LOADERS + 1);
const URGENT = 0, AHEAD = 1;

const SOURCE = (machine: Machine) =>
  `${INSTANTIATE(machine.reader)}
onmessage = ({ data: { module, memory, number, base, size, rate, retireMs, layout } }) => {
  const words = new Int32Array(memory.buffer), at = base >>> 2, mask = size - 1;
  const busy = new Float64Array(memory.buffer, base + 4 * layout.BUSY, number + 1);
  const nap = new Int32Array(new SharedArrayBuffer(4));
  let free = 0;
  const take = (ring) => {
    for (;;) {
      const head = Atomics.load(words, at + layout.HEADS + ring);
      if (head === Atomics.load(words, at + layout.TAILS + ring)) return 0;
      const piece = Atomics.load(words, at + layout.RINGS + ring * size + (head & mask));
      if (Atomics.compareExchange(words, at + layout.HEADS + ring, head, head + 1 | 0) === head) return piece >>> 0;
    }
  };
  try {
    const exports = instantiate(module, memory);
    while (!Atomics.load(words, at + layout.STOP)) {
      const bell = Atomics.load(words, at + layout.BELL);
      const piece = take(${URGENT}) || take(${AHEAD});
      if (!piece) {
        const isIdle = Atomics.wait(words, at + layout.BELL, bell, retireMs) === "timed-out";
        if (isIdle && bell === Atomics.load(words, at + layout.BELL)) break;
        continue;
      }
      const begin = performance.now(), end = piece + layout.PIECE.DONE >>> 2;
      let bad = 1;
      try {
        bad = exports.packAlone(piece, number);
      } finally {
        if (rate) {
          free = Math.max(free, begin) + 1024000 * words[piece + layout.PIECE.KIB >>> 2] / rate;
          const rest = free - performance.now();
          if (rest > 0) Atomics.wait(nap, 0, 0, rest);
        }
        busy[number] += performance.now() - begin;
        if (bad) Atomics.add(words, words[end + 1] >>> 2, bad);
        Atomics.add(words, words[end] >>> 2, 1);
        Atomics.notify(words, words[end] >>> 2);
      }
    }
  } finally {
    Atomics.and(words, at + layout.LIVE, ~(1 << number));
    close();
  }
};`;

/**
 * Starts loaders. Pieces must lie in memory before; their `source` and `scratch` have room for `threads` + 1.
 *
 * @throws {OutOfMemoryError} If there is no room for the queue.
 */
export function createLoaders(machine: Machine, options: LoaderOptions): Loaders {
  const { bytesPerSecond, loaded, read, retireMs = 1000, stallMs = 60_000 } = options;
  const threads = Math.min(options.threads, bytesPerSecond ? 1 : MOST_LOADERS);
  // Twice as many as may wait: a place is written anew only when whoever took it has long read it.
  const size = 2 ** Math.ceil(Math.log2(2 * Math.max(8, options.pieces)));
  const base = machine.allocate(4 * (RINGS + 2 * size));
  machine.u32(base, RINGS + 2 * size).fill(0);
  const words = new Int32Array(machine.memory.buffer);
  const busy = machine.f64(base + 4 * BUSY, MOST_LOADERS + 1);
  const at = base >>> 2;
  const source = SOURCE(machine);
  const layout = { HEADS, TAILS, BELL, STOP, LIVE, BUSY, RINGS, PIECE };
  const workers: Thread[] = [];
  let disposed = false, free = 0, retryAt = 0;

  function wake(): void {
    Atomics.add(words, at + BELL, 1);
    Atomics.notify(words, at + BELL);
  }

  function start(number: number): void {
    let worker: Thread | undefined;
    const fail = () => {
      worker?.terminate();
      if (worker && workers[number] !== worker) return; // it has retired, and another one has its number
      Atomics.and(words, at + LIVE, ~(1 << number));
      retryAt = performance.now() + RETRY_MS;
    };
    Atomics.or(words, at + LIVE, 1 << number);
    try {
      worker = workers[number] = createThread(source, { onError: fail });
      worker.postMessage({
        ...{ module: machine.module, memory: machine.memory, number, base, size, retireMs, layout },
        rate: bytesPerSecond ?? 0,
      });
    } catch {
      // Where no workers are allowed, or the system refuses more, the caller loads.
      fail();
    }
  }

  function refresh(): void {
    if (disposed || performance.now() < retryAt) return;
    // Who is about to retire stays.
    wake();
    const live = Atomics.load(words, at + LIVE);
    for (let number = 1; number <= threads; number++) if (!(live & 1 << number)) start(number);
  }

  /** The next piece of a ring, if it counts on that word, or whatever it is. */
  function take(ring: number, word: number | undefined): number {
    for (;;) {
      const head = Atomics.load(words, at + HEADS + ring);
      if (head === Atomics.load(words, at + TAILS + ring)) return 0;
      const piece = words[at + RINGS + ring * size + (head & size - 1)]! >>> 0;
      if (word !== undefined && words[(piece + PIECE.DONE) >>> 2]! >>> 2 !== word) return 0;
      const before = Atomics.compareExchange(words, at + HEADS + ring, head, head + 1 | 0);
      if (before === head) return piece;
    }
  }

  function load(piece: number): void {
    const begin = performance.now();
    machine.readFilesBy(read);
    const bad = machine.exports.packAlone!(piece, 0) as number;
    machine.readFilesBy(undefined);
    if (bytesPerSecond) {
      free = Math.max(free, begin) + 1024000 * words[(piece + PIECE.KIB) >>> 2]! / bytesPerSecond;
      const rest = free - performance.now();
      if (rest > 0) Atomics.wait(words, at + STOP, 0, rest);
    }
    busy[0]! += performance.now() - begin;
    if (bad) Atomics.add(words, words[(piece + PIECE.BAD) >>> 2]! >>> 2, bad);
    Atomics.add(words, words[(piece + PIECE.DONE) >>> 2]! >>> 2, 1);
  }

  function wait(word: number, count: number): void {
    let since = performance.now(),
      seen = Atomics.load(words, word),
      seenLoaded = words[loaded >>> 2]!;
    while (seen !== count) {
      const isAlone = threads === 0 || Atomics.load(words, at + LIVE) === 0;
      // A source that is held back has one reader.
      const own = bytesPerSecond && !isAlone ? 0 : take(URGENT, isAlone ? undefined : word) ||
        take(AHEAD, isAlone ? undefined : word);
      if (own) load(own);
      else Atomics.wait(words, word, seen, 100);
      const now = Atomics.load(words, word), nowLoaded = words[loaded >>> 2]!;
      if (own || now !== seen || nowLoaded !== seenLoaded) since = performance.now();
      else if (performance.now() - since > stallMs) {
        throw new Error(`no thread that loads weights answered for ${stallMs} ms`);
      }
      seen = now;
      seenLoaded = nowLoaded;
    }
  }

  refresh();
  return {
    threads,
    get busyMs() {
      return busy.reduce((sum, own) => sum + own, 0);
    },
    push(piece, urgent = false) {
      const ring = urgent ? URGENT : AHEAD, tail = Atomics.load(words, at + TAILS + ring);
      words[at + RINGS + ring * size + (tail & size - 1)] = piece;
      Atomics.store(words, at + TAILS + ring, tail + 1 | 0);
      wake();
    },
    wait,
    refresh,
    dispose() {
      if (disposed) return;
      disposed = true;
      Atomics.store(words, at + STOP, 1);
      wake();
      for (const worker of workers) worker?.terminate();
    },
  };
}
