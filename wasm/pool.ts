// The worker threads of a machine. A worker is a data: URL (it needs no permission) that instantiates the
// machine's module on the shared memory and stays inside `serve` until it is told to stop or has been
// idle for long. Programs never depend on a worker being there: one that starts late, retires or is slow
// only leaves more chunks to the others. A worker that traps writes what happened into the control block; one that the
// system refuses to start is tried again later.
// Kernels that read files call `read`; how a thread reads is the caller's knowledge and comes as source text,
// since nothing else of a module reaches a data: URL.

import { CONTROL, MAX_THREADS } from "./layout.ts";
import { createThread, type Thread } from "./threads.ts";

/** Threads beyond the calling one. */
export interface Pool {
  /**
   * Resolves when all workers run that can, with why one cannot; rejects, with all stopped, if none can.
   */
  readonly ready: Promise<string | undefined>;
  /** Whether all run that can, which is seen before their messages are heard. */
  readonly isReady: boolean;
  /** Replaces workers that retired or could not start; cheap when there is none. */
  refresh(): void;
  /** Stops all workers. */
  dispose(): void;
}

/** What a pool needs of its machine. */
export interface PoolOptions {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  /** Threads in all, the calling one included. */
  readonly threads: number;
  /** Milliseconds until a worker that could not start is tried again; default 1,000. */
  readonly retryMs?: number | undefined;
  /** See {@linkcode FileReader}. */
  readonly reader?: FileReader | undefined;
}

/**
 * JavaScript of a function that makes a function `(file, offset, target) => boolean`: it fills the bytes `target`,
 * or says that it can't. `file` is a text that the caller of the machine gave; undefined closes what is open.
 */
export type FileReader = string;

const NO_READER: FileReader = "() => () => false";

/** Source text of a function that instantiates a machine's module on its memory, for a thread of its own. */
export const INSTANTIATE = (reader: FileReader = NO_READER): string => `
const fill = (${reader})();
const utf8 = new TextDecoder();
const instantiate = (module, memory) => {
  const read = (at, offset, target, bytes) => {
    try {
      // What the main thread has added to the memory is there, but the object may not have heard of it.
      if (memory.buffer.byteLength < (target >>> 0) + (bytes >>> 0)) memory.grow(0);
      const { buffer } = memory;
      const length = at && new DataView(buffer).getUint32(at >>> 0, true);
      const file = at ? utf8.decode(new Uint8Array(buffer, (at >>> 0) + 4, length).slice()) : undefined;
      return fill(file, offset, new Uint8Array(buffer, target >>> 0, bytes >>> 0)) ? 1 : 0;
    } catch {
      return 0; // the main thread tries again, and says what is wrong
    }
  };
  const env = { memory, now: () => performance.now(), read };
  return new WebAssembly.Instance(module, { env }).exports;
};`;

const SOURCE = (reader: FileReader | undefined) =>
  `${INSTANTIATE(reader)}
onmessage = ({ data: { module, memory, thread, control } }) => {
  const words = new Int32Array(memory.buffer, 0, control.END >> 2);
  let exports;
  try {
    exports = instantiate(module, memory);
  } catch (error) {
    postMessage(String(error)); // it has no chunk to lose, so this is no fault of the machine's
    return close();
  }
  try {
    postMessage("ready");
    exports.serve(thread);
  } catch (error) {
    const text = new TextEncoder().encode(String(error)).subarray(0, control.FAULT_BYTES);
    new Uint8Array(memory.buffer).set(text, control.FAULT_TEXT);
    words[control.FAULT_LENGTH >> 2] = text.length;
    Atomics.store(words, control.FAULT >> 2, 1);
    Atomics.add(words, control.BELL >> 2, 1);
    Atomics.notify(words, control.BELL >> 2);
  }
  close();
};`;

/** Reports a fault to every thread, as a trapping worker does. */
export function raiseFault(memory: WebAssembly.Memory, text: string): void {
  const words = new Int32Array(memory.buffer, 0, CONTROL.END >> 2);
  const bytes = new TextEncoder().encode(text).subarray(0, CONTROL.FAULT_BYTES);
  new Uint8Array(memory.buffer).set(bytes, CONTROL.FAULT_TEXT);
  words[CONTROL.FAULT_LENGTH >> 2] = bytes.length;
  Atomics.store(words, CONTROL.FAULT >> 2, 1);
  Atomics.add(words, CONTROL.BELL >> 2, 1);
  Atomics.notify(words, CONTROL.BELL >> 2);
}

/** States of a worker, as {@linkcode CONTROL}.THREADS has them. */
const NOT_STARTED = 0, SERVING = 1, RETIRED = 2;

/**
 * Starts the workers.
 *
 * @throws {RangeError} On more threads than a machine has room for.
 */
export function createPool(
  { module, memory, threads, retryMs = 1000, reader }: PoolOptions,
): Pool {
  if (threads > MAX_THREADS) {
    throw new RangeError(`Cannot start ${threads} threads: the most is ${MAX_THREADS}`);
  }
  const words = new Int32Array(memory.buffer, 0, CONTROL.END >> 2);
  const stateOf = (thread: number) => (CONTROL.THREADS + 64 * thread) >> 2;
  const source = SOURCE(reader);
  const workers: (Thread | undefined)[] = [];
  /** By thread: says that it is up. */
  const isUp: (() => void)[] = [];
  /** By thread: when it may be started again. */
  const retryAt: number[] = [];
  const stopped = Promise.withResolvers<never>();
  stopped.promise.catch(() => {}); // only `ready` listens, and it may be settled already
  let disposed = false;

  /** Rejects if the thread cannot start: then it counts as one that has retired. */
  async function start(thread: number): Promise<void> {
    Atomics.store(words, stateOf(thread), NOT_STARTED);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    isUp[thread] = resolve;
    try {
      const worker = workers[thread] = createThread(source, {
        onMessage: (data) => data === "ready" ? resolve() : reject(new Error(String(data))),
        onError(message) {
          // It may have held a chunk.
          if (Atomics.load(words, stateOf(thread)) === SERVING) raiseFault(memory, message);
          reject(new Error(message));
        },
      });
      worker.postMessage({ module, memory, thread, control: CONTROL });
      await promise;
    } catch (error) {
      workers[thread]?.terminate();
      workers[thread] = undefined;
      retryAt[thread] = performance.now() + retryMs;
      Atomics.store(words, stateOf(thread), RETIRED);
      Atomics.add(words, CONTROL.RETIRED >> 2, 1);
      throw error;
    }
  }

  function dispose(): void {
    if (disposed) return;
    disposed = true;
    stopped.reject(new Error("the pool was disposed"));
    Atomics.store(words, CONTROL.STOP >> 2, 1);
    Atomics.add(words, CONTROL.BELL >> 2, 1);
    Atomics.notify(words, CONTROL.BELL >> 2);
    for (let thread = 1; thread < threads; thread++) workers[thread]?.terminate();
  }

  function refresh(): void {
    if (disposed || Atomics.load(words, CONTROL.RETIRED >> 2) === 0) return;
    for (let thread = 1; thread < threads; thread++) {
      if (Atomics.load(words, stateOf(thread)) !== RETIRED) continue;
      if (!workers[thread] && performance.now() < retryAt[thread]!) continue;
      Atomics.sub(words, CONTROL.RETIRED >> 2, 1);
      // Who has retired was up, though this thread may not have heard of it yet, and never will.
      isUp[thread]!();
      workers[thread]?.terminate();
      start(thread).catch(() => {}); // the others do its part
    }
  }

  async function startAll(): Promise<string | undefined> {
    const all = Array.from({ length: threads - 1 }, (_, index) => start(index + 1));
    const results = await Promise.race([Promise.allSettled(all), stopped.promise]);
    const failed = results.filter((result) => result.status === "rejected");
    const problem = (failed[0]?.reason as Error | undefined)?.message;
    if (failed.length < results.length) return problem;
    dispose();
    throw new Error(problem);
  }
  return {
    ready: startAll(),
    get isReady(): boolean {
      for (let thread = 1; thread < threads; thread++) {
        if (Atomics.load(words, stateOf(thread)) === NOT_STARTED) return false;
      }
      return true;
    },
    refresh,
    dispose,
  };
}

/** What the thread that failed wrote. */
export function faultText(memory: WebAssembly.Memory): string {
  const length = new Int32Array(memory.buffer, CONTROL.FAULT_LENGTH, 1)[0]!;
  return new TextDecoder().decode(
    new Uint8Array(memory.buffer, CONTROL.FAULT_TEXT, length).slice(),
  );
}
