// The worker threads of a machine. A worker is a data: URL (it needs no permission) that instantiates the
// machine's module on the shared memory and stays inside `serve` until it is told to stop or has been
// idle for long. Programs never depend on a worker being there: one that starts late, retires or is slow
// only leaves more chunks to the others. A worker that traps writes what happened into the control block.
// Kernels that read files call `read`; how a thread reads is the caller's knowledge and comes as source text,
// since nothing else of a module reaches a data: URL.

import { CONTROL, MAX_THREADS } from "./layout.ts";
import { createThread, type Thread } from "./threads.ts";

/** Threads beyond the calling one. */
export interface Pool {
  /** Resolves when all workers run; rejects, with all stopped, if one cannot. */
  readonly ready: Promise<void>;
  /** Whether all run, which is seen before their messages are heard. */
  readonly isReady: boolean;
  /** Replaces workers that retired; cheap when there is none. */
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
  try {
    const exports = instantiate(module, memory);
    postMessage("ready");
    exports.serve(thread);
  } catch (error) {
    const text = new TextEncoder().encode(String(error)).subarray(0, control.FAULT_BYTES);
    new Uint8Array(memory.buffer).set(text, control.FAULT_TEXT);
    words[control.FAULT_LENGTH >> 2] = text.length;
    Atomics.store(words, control.FAULT >> 2, 1);
    Atomics.add(words, control.BELL >> 2, 1);
    Atomics.notify(words, control.BELL >> 2);
    postMessage("failed");
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

/**
 * Starts the workers.
 *
 * @throws {RangeError} On more threads than a machine has room for.
 */
export function createPool({ module, memory, threads, reader }: PoolOptions): Pool {
  if (threads > MAX_THREADS) {
    throw new RangeError(`Cannot start ${threads} threads: the most is ${MAX_THREADS}`);
  }
  const words = new Int32Array(memory.buffer, 0, CONTROL.END >> 2);
  const stateOf = (thread: number) => (CONTROL.THREADS + 64 * thread) >> 2;
  const source = SOURCE(reader);
  const workers: Thread[] = [];
  /** By thread: says that it is up. */
  const isUp: (() => void)[] = [];
  const stopped = Promise.withResolvers<never>();
  stopped.promise.catch(() => {}); // only `ready` listens, and it may be settled already
  let disposed = false;

  function start(thread: number): Promise<void> {
    Atomics.store(words, stateOf(thread), 0);
    const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
    isUp[thread] = resolve;
    const worker = workers[thread] = createThread(source, {
      onMessage: (data) => data === "ready" ? resolve() : reject(new Error(faultText(memory))),
      onError(message) {
        raiseFault(memory, message);
        reject(new Error(message));
      },
    });
    worker.postMessage({ module, memory, thread, control: CONTROL });
    return ready;
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
      if (Atomics.load(words, stateOf(thread)) !== 2) continue;
      Atomics.sub(words, CONTROL.RETIRED >> 2, 1);
      // Who has retired was up, though this thread may not have heard of it yet, and never will.
      isUp[thread]!();
      workers[thread]!.terminate();
      start(thread).catch(() => {}); // a failure is in the control block, where the run finds it
    }
  }

  async function startAll(): Promise<void> {
    try {
      const all = Array.from({ length: threads - 1 }, (_, index) => start(index + 1));
      await Promise.race([Promise.all(all), stopped.promise]);
    } catch (error) {
      dispose();
      throw error;
    }
  }
  return {
    ready: startAll(),
    get isReady(): boolean {
      for (let thread = 1; thread < threads; thread++) {
        if (Atomics.load(words, stateOf(thread)) === 0) return false;
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
