// What is known of a device by its name, before any of its code is loaded. Nobody else asks what a device is called:
// what depends on a device is a fact here, or one of the opened device (devices.ts).

import type { GpuProvider } from "../../gpu/capabilities.ts";
import type { DeviceName } from "./backend.ts";

/** Facts of a device. */
export interface DeviceFacts {
  /** Whether what it holds lies in this process's memory, of which it is known how much is free. */
  readonly inHostMemory: boolean;
  /** Whether it reads weights beside the caller, who does something else meanwhile. */
  readonly loadsAside: boolean;
  /** Whether executables can share an arena. */
  readonly sharesArenas: boolean;
  /** Whether it can look at what every node makes. */
  readonly debugs: boolean;
  /** Whether `padTo` says in which multiples the sizes of its steps change. */
  readonly padsSteps: boolean;
  /** Whether graphs are brought into forms that its kernels take; otherwise it takes any. */
  readonly wantsForms: boolean;
  /** Whether results may take the memory of inputs that end: it reads and writes one buffer in the same step. */
  readonly reusesInputs: boolean;
  /** Bytes that its activations begin at multiples of, where a plan's own alignment is too small for it. */
  readonly alignment?: number;
  /** Whether wanted rows are to be picked before the last products (`PassContext`). */
  readonly picksRowsEarly: boolean | "once";
  /** Most rows of a decoder's step where nobody says how many (`LoadOptions.batch`); absent: those of a CPU. */
  readonly rowsOfStep?: number;
  /** Whether kernels of products and attentions may do what stands before or behind them (`PassContext`). */
  readonly fusesNeighbours: boolean;
  /**
   * Whether it can be told to compute each row of a step as it would be alone (`PrepareOptions.rowByRow`); absent: it
   * cannot, or its kernels do so anyway.
   */
  readonly goesRowByRow?: boolean;
}

/** On the CPU, in this process. */
const IN_PROCESS = {
  inHostMemory: true,
  debugs: false,
  padsSteps: false,
  reusesInputs: true,
  picksRowsEarly: true,
  fusesNeighbours: false,
} as const;

/** The devices. */
export const DEVICE_FACTS: Readonly<Record<DeviceName, DeviceFacts>> = {
  wasm: { ...IN_PROCESS, loadsAside: true, sharesArenas: true, wantsForms: true },
  gpu: {
    inHostMemory: false,
    loadsAside: false,
    sharesArenas: false,
    debugs: true,
    padsSteps: true,
    wantsForms: true,
    reusesInputs: false,
    alignment: 256,
    picksRowsEarly: "once",
    rowsOfStep: 512,
    fusesNeighbours: true,
    goesRowByRow: true,
  },
  reference: { ...IN_PROCESS, loadsAside: false, sharesArenas: false, wantsForms: false },
};

const DEVICE_CHOICES = ["auto", ...Object.keys(DEVICE_FACTS)], MOST_THREADS = 256;

/**
 * Checks where something is to be computed.
 *
 * @throws {RangeError} Naming the option, its value and what is allowed. @throws {TypeError} If `gpu` gives no adapters.
 */
export function checkDevice(
  { device = "auto", threads = 1, gpu }: {
    readonly device?: string | undefined;
    readonly gpu?: GpuProvider | undefined;
    readonly threads?: number | undefined;
  },
): void {
  if (!DEVICE_CHOICES.includes(device)) {
    throw new RangeError(
      `Cannot use device "${device}": it is one of ${DEVICE_CHOICES.join(", ")}`,
    );
  }
  if (gpu !== undefined && typeof gpu?.requestAdapter !== "function") {
    throw new TypeError(
      "Cannot use gpu: give an object with requestAdapter(), such as navigator.gpu",
    );
  }
  if (Number.isInteger(threads) && threads >= 1 && threads <= MOST_THREADS) return;
  throw new RangeError(
    `Cannot use threads ${threads}: it is an integer from 1 to ${MOST_THREADS}`,
  );
}

/** Facts of the device of that name; undefined for `auto`, and where there is none. */
export function factsOf(name: string | undefined): DeviceFacts | undefined {
  return new Map<string | undefined, DeviceFacts>(Object.entries(DEVICE_FACTS)).get(name);
}

/**
 * What `auto` is for graphs: many ops have no GPU kernel yet, and a graph that changes sides at every other node is slower
 * than on either.
 */
export const AUTO_FOR_GRAPHS: DeviceName = "wasm";
