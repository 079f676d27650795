// The WASM machine: one shared memory, one module instance a thread, and programs that all threads run
// together. The address space is reserved whole (that costs nothing) and grows on demand; the worker pool
// starts with the machine. Where workers are not allowed the machine has one thread and says so in
// `notes`. It knows nothing of graphs: engine/plan lowers plans to programs.

import { ADDRESS_SPACE, createAllocator, OutOfMemoryError } from "./allocator.ts";
import relaxed from "./kernels_relaxed.gen.json" with { type: "json" };
import { CONTROL, MAX_THREADS } from "./layout.ts";
import { createPool, type FileReader, type Pool, type PoolOptions } from "./pool.ts";
import { probeCapabilities, type SimdVariant, type WasmCapabilities } from "./probe.ts";
import { createRuns, type KernelExports, type Runs } from "./runs.ts";

/** Options of {@linkcode createMachine}. */
export interface MachineOptions {
  /** Threads in all; default and most: `navigator.hardwareConcurrency`, the default at most 16. */
  readonly threads?: number;
  /** Forces a variant instead of asking the probe. */
  readonly variant?: SimdVariant;
  /** Whether kernels take the text that V8 joins to 256 bits; default: as soon as it is seen to do so (assembly/machine/joining.ts). */
  readonly joins?: boolean;
  /** Polls of a waiting thread before it sleeps; default 20,000. */
  readonly spins?: number;
  /** False: return at once and let workers join when they are up (see `ready`); default true. */
  readonly wait?: boolean;
  /** Milliseconds after which an idle worker ends itself; default 1,000. */
  readonly retireMs?: number;
  /** Milliseconds until a worker that could not start is tried again; default 1,000. */
  readonly retryMs?: number;
  /** Most bytes of the memory, at most 4 GiB (the default). */
  readonly memoryBytes?: number;
  /** How workers read files; default: they do not. */
  readonly reader?: FileReader | undefined;
  /** Milliseconds that a run waits for one chunk of a worker before it gives up; default 60,000. */
  readonly stallMs?: number;
}

/** A machine. Addresses are byte addresses, unsigned. */
export interface Machine extends Disposable, Runs {
  /** Threads that take part in a run, the calling one included; final once `ready`. */
  readonly threads: number;
  /** Resolves when the workers are up, or it is known that there will be none; never rejects. */
  readonly ready: Promise<void>;
  /** Whether there is nothing to wait for: messages of workers are heard only by who lets events through. */
  readonly isReady: boolean;
  readonly capabilities: WasmCapabilities;
  /** Whether kernels take the text that V8 joins to 256 bits. */
  readonly joins: boolean;
  /** What threads beside the machine's own instantiate on its memory, and how they read files. */
  readonly module: WebAssembly.Module;
  readonly reader: FileReader | undefined;
  readonly exports: KernelExports;
  readonly memory: WebAssembly.Memory;
  /** What differs from what was asked for, one sentence each. */
  readonly notes: readonly string[];
  /** Bytes allocated. */
  readonly usedBytes: number;
  /** Bytes that the memory has grown to. */
  readonly committedBytes: number;
  /**
   * Reserves bytes (contents undefined), aligned to 64; growing makes older views short but not wrong.
   *
   * @throws {OutOfMemoryError} If 4 GiB do not suffice, or the system has no more.
   */
  allocate(bytes: number): number;
  /**
   * Says that so many bytes will be allocated and written to soon: the memory grows in one step, and workers that have
   * nothing to do touch it until the next run begins.
   *
   * @throws {OutOfMemoryError} As `allocate`.
   */
  expect(bytes: number): void;
  /** Gives a block back. */
  release(address: number): void;
  /** Views of memory, `length` in elements. */
  u8(address: number, length: number): Uint8Array;
  u16(address: number, length: number): Uint16Array;
  u32(address: number, length: number): Uint32Array;
  i32(address: number, length: number): Int32Array;
  f32(address: number, length: number): Float32Array;
  f64(address: number, length: number): Float64Array;
  /**
   * How this thread reads for kernels that read files: fills `bytes` bytes at `target`, or returns false. The file
   * is described at address `file`: u32 length, text for the workers' {@linkcode MachineOptions.reader}.
   */
  readFilesBy(
    read: ((file: number, offset: number, target: number, bytes: number) => boolean) | undefined,
  ): void;
  /** Waits until no worker looks at any program, so that its memory can be released. */
  settle(): void;
  /** Stops the workers; using the machine afterwards throws. */
  dispose(): void;
}

const PAGE = 65536;
const DEFAULT_MOST_THREADS = 16;
/** Memory beyond is not touched ahead, so that no address that threads count up wraps around. */
const LAST_TOUCHED = ADDRESS_SPACE - 2 ** 28;

const modules = new Map<SimdVariant, WebAssembly.Module>();

// At once, so that workers start at once: V8 compiles functions when they are first called, what is left takes 2 ms.
function moduleOf(variant: SimdVariant): WebAssembly.Module | Promise<WebAssembly.Module> {
  const known = modules.get(variant);
  if (known) return known;
  const compile = (base64: string) => {
    const compiled = new WebAssembly.Module(Uint8Array.fromBase64(base64));
    modules.set(variant, compiled);
    return compiled;
  };
  return variant === "relaxed" ? compile(relaxed.module) : importBaseline().then(compile);
}

// Half a megabyte that few processors need.
async function importBaseline(): Promise<string> {
  const { default: { module } } = await import("./kernels_baseline.gen.json", {
    with: { type: "json" },
  });
  return module;
}

/**
 * Threads that a machine has if so many are asked for; what is to be told of it goes to `notes`.
 *
 * @throws {RangeError} If it is no number of threads.
 */
export function threadCount(asked: number | undefined, notes: string[] = []): number {
  const processors = Math.max(1, navigator.hardwareConcurrency ?? 1);
  const most = Math.min(processors, MAX_THREADS);
  if (asked === undefined) return Math.min(most, DEFAULT_MOST_THREADS);
  if (!Number.isInteger(asked) || asked < 1) {
    throw new RangeError(`Cannot use ${asked} threads: give an integer from 1`);
  }
  if (asked > most) {
    const why = most < processors
      ? `there are ${most} at most`
      : `this machine has ${most} processors`;
    notes.push(`${asked} threads were asked for; ${why}`);
  }
  return Math.min(asked, most);
}

/** Whether this thread may wait on memory; the page of a browser may not. */
function mayBlock(): boolean {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1);
    return true;
  } catch {
    return false;
  }
}

/** Less is not asked for where the system refuses more: no model of use fits. */
const LEAST_RESERVED = 2 ** 26;

/** A memory that may grow to so many bytes, or to half, a quarter… where the system has no more addresses. */
function reserve(
  bytes: number,
  notes: string[],
): { readonly memory: WebAssembly.Memory; readonly limit: number } {
  const wanted = Math.max(16, Math.floor(bytes / PAGE));
  for (let maximum = wanted;; maximum >>= 1) {
    try {
      const memory = new WebAssembly.Memory({ initial: 16, maximum, shared: true });
      if (maximum === wanted) return { memory, limit: bytes };
      const limit = maximum * PAGE;
      notes.push(`a WASM memory has ${limit} bytes at most: the system refuses ${wanted * PAGE}`);
      return { memory, limit };
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause;
      if (maximum * PAGE / 2 >= LEAST_RESERVED) continue;
      throw new OutOfMemoryError(
        `Cannot reserve ${wanted * PAGE} bytes of addresses for WASM memory: the system refuses`,
        { cause },
      );
    }
  }
}

/**
 * Bytes that a memory has a multiple of: addresses cost nothing until they are touched, but V8 makes a buffer object at
 * each step and counts the whole memory for it, so that a load of many small steps ended in a full garbage collection
 * (15 ms of SmolLM2's 200).
 */
const STEP_BYTES = 2 ** 26;

function grow(
  memory: WebAssembly.Memory,
  { end, limit }: { readonly end: number; readonly limit: number },
): void {
  const { byteLength } = memory.buffer;
  if (end <= byteLength) return;
  const wanted = Math.min(
    Math.ceil(end / STEP_BYTES) * STEP_BYTES,
    Math.floor(limit / PAGE) * PAGE,
  );
  const missing = Math.ceil((end - byteLength) / PAGE);
  try {
    try {
      memory.grow(Math.max(missing, (wanted - byteLength) / PAGE));
    } catch {
      memory.grow(missing); // the system may have this much
    }
  } catch (cause) {
    throw new OutOfMemoryError(
      `Cannot grow WASM memory from ${memory.buffer.byteLength} to ${end} bytes: the system refuses`,
      { cause },
    );
  }
}

/** The control block, written with what threads do by options. */
function writeControl(memory: WebAssembly.Memory, options: MachineOptions): Uint32Array {
  const control = new Uint32Array(memory.buffer, 0, CONTROL.END >> 2);
  control[CONTROL.SPINS >> 2] = options.spins ?? 20_000;
  control[CONTROL.RETIRE_MS >> 2] = options.retireMs ?? 1_000;
  control[CONTROL.STALL_MS >> 2] = options.stallMs ?? 60_000;
  control[CONTROL.MAIN_SLEEPS >> 2] = mayBlock() ? 1 : 0;
  return control;
}

/** The threads of a machine. */
interface Crew extends Omit<Pool, "ready"> {
  /** Never rejects. */
  readonly ready: Promise<void>;
  /** The calling one included; final once `ready`. */
  readonly threads: number;
  /** Whether there are workers. */
  readonly hasWorkers: boolean;
  readonly isDisposed: boolean;
}

/** Starts the workers; where they cannot start the calling thread is alone, and a note says so. */
function startCrew(options: PoolOptions, notes: string[]): Crew {
  let { threads } = options;
  let pool: Pool | undefined;
  let isDisposed = false;
  const ready = threads > 1 ? start() : Promise.resolve();

  async function start(): Promise<void> {
    pool = createPool(options);
    try {
      const problem = await pool.ready;
      if (problem) {
        notes.push(`fewer threads are used at first, because one cannot start: ${problem}`);
      }
    } catch (error) {
      pool = undefined;
      threads = 1;
      if (isDisposed) return;
      notes.push(`one thread is used, because workers cannot start: ${(error as Error).message}`);
    }
  }

  return {
    get threads() {
      return threads;
    },
    get hasWorkers() {
      return pool !== undefined;
    },
    get isDisposed() {
      return isDisposed;
    },
    get isReady() {
      return threads === 1 || (pool?.isReady ?? false);
    },
    ready,
    refresh: () => pool?.refresh(),
    dispose() {
      isDisposed = true;
      pool?.dispose();
    },
  };
}

/** Lets idle workers touch memory before it is used; `stop` ends that. */
function createToucher(memory: WebAssembly.Memory, control: Uint32Array) {
  let touching = false;
  return {
    touch(address: number, end: number): void {
      if (end > LAST_TOUCHED) return;
      touching = true;
      Atomics.store(control, CONTROL.TOUCH_NEXT >> 2, address);
      Atomics.store(control, CONTROL.TOUCH_END >> 2, end);
      Atomics.add(control, CONTROL.BELL >> 2, 1);
      Atomics.notify(new Int32Array(memory.buffer), CONTROL.BELL >> 2);
    },
    stop(): void {
      if (touching) Atomics.store(control, CONTROL.TOUCH_END >> 2, 0);
      touching = false;
    },
  };
}

/**
 * Starts a machine.
 *
 * @throws {RangeError} On a thread count below 1, or a variant that the engine lacks.
 * @throws {OutOfMemoryError} If the system refuses the memory.
 */
export async function createMachine(options: MachineOptions = {}): Promise<Machine> {
  const notes: string[] = [];
  const { memoryBytes = ADDRESS_SPACE, reader, retryMs, wait = true } = options;
  const threads = threadCount(options.threads, notes);
  const capabilities = probeCapabilities(options.variant);
  const compiled = moduleOf(capabilities.simd);
  // Nothing is awaited that is there: workers start at once.
  const module = compiled instanceof WebAssembly.Module ? compiled : await compiled;
  const { memory, limit } = reserve(memoryBytes, notes);
  let readFile: Parameters<Machine["readFilesBy"]>[0];
  const env = {
    memory,
    now: () => performance.now(),
    read: (file: number, offset: number, target: number, bytes: number) =>
      bytes !== 0 && readFile?.(file >>> 0, offset, target >>> 0, bytes >>> 0) ? 1 : 0,
  };
  const instance = new WebAssembly.Instance(module, { env });
  const exports = instance.exports as unknown as KernelExports;
  const heap = (instance.exports.heapBase as () => number)() >>> 0;
  const control = writeControl(memory, options);
  control[CONTROL.JOINS >> 2] = Number(options.joins ?? (capabilities.hasWideVectors && 2));
  const crew = startCrew({ module, memory, threads, retryMs, reader }, notes);
  const allocator = createAllocator(heap, {
    ensure: (end) => grow(memory, { end, limit }),
    limit,
  });
  const toucher = createToucher(memory, control);
  const runs = createRuns({ memory, control, exports, crew, idleWork: toucher });

  if (wait) await crew.ready;
  return {
    get threads() {
      return crew.threads;
    },
    ready: crew.ready,
    get isReady() {
      return crew.isReady;
    },
    ...{ capabilities, module, reader, exports, memory, notes },
    get joins() {
      return control[CONTROL.JOINS >> 2] === 1;
    },
    get usedBytes() {
      return allocator.usedBytes;
    },
    get committedBytes() {
      return memory.buffer.byteLength;
    },
    allocate: allocator.allocate,
    expect(bytes) {
      const address = allocator.allocate(bytes);
      allocator.release(address);
      toucher.touch(address, address + bytes);
    },
    release: allocator.release,
    u8: (address, length) => new Uint8Array(memory.buffer, address, length),
    u16: (address, length) => new Uint16Array(memory.buffer, address, length),
    u32: (address, length) => new Uint32Array(memory.buffer, address, length),
    i32: (address, length) => new Int32Array(memory.buffer, address, length),
    f32: (address, length) => new Float32Array(memory.buffer, address, length),
    f64: (address, length) => new Float64Array(memory.buffer, address, length),
    ...runs,
    readFilesBy: (read) => readFile = read,
    settle() {
      runs.finish();
      if (crew.hasWorkers && !control[CONTROL.FAULT >> 2]) exports.release(crew.threads);
    },
    dispose: crew.dispose,
    [Symbol.dispose]: crew.dispose,
  };
}
