// Fixed addresses and record layouts that JavaScript and AssemblyScript share; the build emits them as
// constants. The control block lies below the module's static data, one 64-byte line for each word that
// threads write, so that polling one never disturbs another.

/** Byte layout of one instruction: 4 words of header, then 28 operands of 4 bytes. */
export const INSTRUCTION: Readonly<
  Record<"BYTES" | "KERNEL" | "FLAGS" | "COUNTER" | "DONE" | "OPERANDS", number>
> = {
  BYTES: 128,
  /** Index of the kernel in the module's function table. */
  KERNEL: 0,
  /** Bit 0: wait for the wave before. Above: how many instructions behind it run on its chunks, as a chain. */
  FLAGS: 4,
  /** Address of the chunk counter: u64, generation above, chunks taken below. */
  COUNTER: 8,
  /** Address of the wave's count of finished chunks: u32. */
  DONE: 12,
  OPERANDS: 16,
};

/** Most operands an instruction can hold. */
export const MAX_OPERANDS = 28;

/** Byte layout of a program's header; 64 bytes. */
export const PROGRAM: Readonly<
  Record<"BYTES" | "COUNT" | "CODE" | "COUNTERS" | "LINES" | "TIMES", number>
> = {
  BYTES: 64,
  /** Number of instructions. */
  COUNT: 0,
  /** Address of the first instruction. */
  CODE: 4,
  /** Address of the counter lines, 64 bytes each: one per instruction, then one per wave. */
  COUNTERS: 8,
  /** Number of counter lines. */
  LINES: 12,
  /** Address of `COUNT + 1` float64: milliseconds by instruction, then of waiting; 0 = no profile. */
  TIMES: 16,
};

/** Bytes of a counter's line. */
export const LINE = 64;

/** Addresses of the control block. */
export const CONTROL: Readonly<
  Record<
    | "GENERATION"
    | "FAULT"
    | "STOP"
    | "BELL"
    | "SLEEPERS"
    | "PROGRAM"
    | "SPINS"
    | "STALL_MS"
    | "RETIRE_MS"
    | "RETIRED"
    | "STATUS"
    | "MAIN_SLEEPS"
    | "TOUCH_NEXT"
    | "TOUCH_END"
    | "JOINS"
    | "THREADS"
    | "FAULT_LENGTH"
    | "FAULT_TEXT"
    | "FAULT_BYTES"
    | "GRIDS"
    | "END",
    number
  >
> = {
  /** Number of the run; a change starts the workers. */
  GENERATION: 1024,
  /** 0, or a fault code: 1 trap, 2 stalled worker. */
  FAULT: 1028,
  /** Not 0: workers leave. */
  STOP: 1032,
  /** What sleeping threads wait on. */
  BELL: 1088,
  /** Number of sleeping threads. */
  SLEEPERS: 1152,
  /** Address of the program that runs, 0 for none. */
  PROGRAM: 1216,
  /** Polls before a thread goes to sleep. */
  SPINS: 1220,
  /** Longest wait of the main thread for a worker, in milliseconds. */
  STALL_MS: 1224,
  /** An idle worker ends itself after this time. */
  RETIRE_MS: 1228,
  /** Workers that have ended themselves and were not replaced yet. */
  RETIRED: 1232,
  /**
   * Bits set by kernels during a run: 1 a value does not fit a float16 cache, 2 an index is outside,
   * 4 a value does not fit a cache of Q8_0.
   */
  STATUS: 1236,
  /** 0 where the main thread must not block (the page of a browser): it polls on. */
  MAIN_SLEEPS: 1240,
  /** Addresses of memory that idle workers touch before it is written to; they count up the first. */
  TOUCH_NEXT: 1244,
  TOUCH_END: 1248,
  /** 1 where V8 joins pairs of 128-bit operations, 2 where that is not known yet (assembly/machine/joining.ts). */
  JOINS: 1252,
  /**
   * One line a thread: u32 state (0 not started, 1 serving, 2 retired), u32 last generation walked; behind 16 bytes what
   * it found about reading (assembly/machine/read_trial.ts).
   */
  THREADS: 1280,
  FAULT_LENGTH: 9472,
  FAULT_TEXT: 9476,
  FAULT_BYTES: 508,
  /** Tables of grid points (point_grids.ts), 33,792 bytes. */
  GRIDS: 16384,
  /** Static data of the module starts here. */
  END: 50176,
};

/** Most threads that the control block has lines for. */
export const MAX_THREADS = 128;
