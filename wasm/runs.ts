// Runs of programs on a machine (machine.ts): all threads work on one, the caller among them, and what went wrong is read
// from the control block behind it.

import { CONTROL } from "./layout.ts";
import { faultText, raiseFault } from "./pool.ts";

/** Functions of the module that the main thread calls. */
export interface KernelExports {
  begin(program: number): void;
  execute(program: number): number;
  launch(program: number): void;
  join(program: number): number;
  /** The same without workers. */
  executeAlone(program: number): number;
  release(threads: number): void;
  kernelIndex(opcode: number): number;
  /** Helpers that families export, e.g. for packing weights. */
  readonly [name: string]: (...parameters: number[]) => number | void;
}

/** Runs of programs. */
export interface Runs {
  /**
   * Runs a program (see program.ts). `patch` is called when operands may be changed; `alone`: on this
   * thread only.
   *
   * @throws {RangeError} If a key or value does not fit the number format of its cache, or an index is outside its
   *   dim; the machine stays usable.
   * @throws {Error} If a thread failed; the machine is unusable afterwards.
   */
  run(program: number, patch?: () => void, alone?: boolean): void;
  /** First half of a run: the workers begin, and the caller goes on with something else. */
  start(program: number, patch?: () => void): void;
  /**
   * Second half: the caller takes part until all is done, if it is not already: whatever runs on the machine in
   * between finishes first what was started. @throws As `run`.
   */
  finish(): void;
}

/** What runs need of their machine. */
export interface RunParts {
  readonly memory: WebAssembly.Memory;
  readonly control: Uint32Array;
  readonly exports: KernelExports;
  /** Its threads. */
  readonly crew: { readonly isDisposed: boolean; refresh(): void };
  /** What they do while nothing runs. */
  readonly idleWork: { stop(): void };
}

/** Makes the functions that run programs. */
export function createRuns({ memory, control, exports, crew, idleWork }: RunParts): Runs {
  let started: number | undefined;

  function begin(program: number, patch: (() => void) | undefined, alone: boolean): void {
    if (crew.isDisposed) throw new Error("Cannot run a program: the WASM machine was disposed");
    finish();
    if (control[CONTROL.FAULT >> 2]) throw failure(memory, control);
    idleWork.stop();
    if (!alone) crew.refresh();
    exports.begin(program);
    patch?.();
  }

  function watch(execute: () => number): void {
    try {
      execute();
    } catch (error) {
      raiseFault(memory, String(error));
    }
    if (control[CONTROL.FAULT >> 2]) throw failure(memory, control);
    const status = control[CONTROL.STATUS >> 2]!;
    if (status === 0) return;
    control[CONTROL.STATUS >> 2] = 0;
    throw refusal(status);
  }

  function finish(): void {
    const program = started;
    if (program === undefined) return;
    started = undefined;
    watch(() => exports.join(program));
  }

  return {
    run(program, patch, alone = false) {
      begin(program, patch, alone);
      watch(() => alone ? exports.executeAlone(program) : exports.execute(program));
    },
    start(program, patch) {
      begin(program, patch, false);
      started = program;
      exports.launch(program);
    },
    finish,
  };
}

/** What kernels report of the values that they were given. */
function refusal(status: number): RangeError {
  if (status & 8) return new RangeError("Cannot divide whole numbers by 0");
  return new RangeError(
    status & 5
      ? `Cannot store a key or value as ${
        status & 1 ? "float16: it" : "Q8_0: its scale"
      } is beyond 65504 or not a number. Use a float32 cache`
      : "Cannot use an index that a graph has computed: it is outside its dim. " +
        "Check ids and positions given to it",
  );
}

/** What is said of a machine that cannot go on. */
function failure(memory: WebAssembly.Memory, control: Uint32Array): Error {
  const stalled = control[CONTROL.FAULT >> 2] === 2;
  const text = stalled
    ? `no worker answered for ${control[CONTROL.STALL_MS >> 2]} ms`
    : faultText(memory);
  return new Error(`The WASM machine has failed: ${text}. Load the model again`);
}
