// The arena that several graphs may share: what loadGraph takes, and who may run in it. Two runs at the same
// time would write over each other's activations, so the second is refused. Code of WASM is loaded by the
// first graph.

import type { WasmArena } from "../../run/wasm/arena.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";

/**
 * Options of {@linkcode createArena}.
 * @category ONNX graphs
 */
export interface ArenaOptions {
  /** Bytes for activations: at least the largest `arenaBytes` that `plan()` of the graphs gives. */
  readonly bytes: number;
  /** Threads of WASM for all graphs in it; default: all processors, at most 16. */
  readonly threads?: number | undefined;
}

const KEYS: OptionKeys<ArenaOptions> = { bytes: true, threads: true };

/**
 * Memory for the activations of several graphs that run one after another, see {@linkcode createArena}.
 * @category ONNX graphs
 */
export interface Arena extends Disposable {
  /** Bytes for activations. */
  readonly bytes: number;
  /** Gives the memory back once the graphs in it are disposed. */
  dispose(): void;
}

/** What loadGraph needs of an arena. */
export interface ArenaAccess {
  /** The memory on WASM. */
  open(): Promise<WasmArena>;
  /**
   * Runs something that uses the arena.
   *
   * @throws {TypeError} If something runs in it already.
   */
  use<Result>(run: () => Promise<Result>): Promise<Result>;
}

const accesses = new WeakMap<Arena, ArenaAccess>();

/**
 * Makes an arena for `loadGraph(path, { arena })`, on device wasm: nets of a pipeline that run one after
 * another then take the memory of the largest, not the sum.
 *
 * @throws {RangeError} If `bytes` is no size.
 *
 * @example
 * ```ts ignore
 * import { createArena, loadGraph } from "@troodon/troodon";
 *
 * using arena = createArena({ bytes: 120e6 });
 * using unet = await loadGraph("unet.onnx", { arena });
 * using decoder = await loadGraph("vae_decoder.onnx", { arena });
 * ```
 * @category ONNX graphs
 */
export function createArena(options: ArenaOptions): Arena {
  checkOptionKeys(options, { of: "createArena()", known: KEYS });
  const { bytes, threads } = options;
  if (!Number.isSafeInteger(bytes) || bytes < 1) {
    throw new RangeError(`Cannot make an arena of ${bytes} bytes: give an integer from 1`);
  }
  let opened: Promise<WasmArena> | undefined;
  let busy = false;
  const dispose = () => void opened?.then((memory) => memory.dispose(), () => {});
  const arena: Arena = { bytes, dispose, [Symbol.dispose]: dispose };
  accesses.set(arena, {
    open: () =>
      opened ??= import("../../run/wasm/arena.ts").then(({ createWasmArena }) =>
        createWasmArena(bytes, { wait: false, ...threads !== undefined && { threads } })
      ),
    async use(run) {
      if (busy) {
        throw new TypeError(
          "Cannot run: another graph runs in the same arena. Await its run, or give each an arena",
        );
      }
      busy = true;
      try {
        return await run();
      } finally {
        busy = false;
      }
    },
  });
  return arena;
}

/** What stands behind an arena. @throws {TypeError} If it is none of `createArena`. */
export function accessOf(arena: Arena): ArenaAccess {
  const access = accesses.get(arena);
  if (!access) throw new TypeError("Cannot load: arena must come from createArena()");
  return access;
}
