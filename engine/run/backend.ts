// The one interface behind which the three engines stand: scalar reference, WASM, WebGPU. A backend makes a
// Plan ready once; afterwards a run is: write the inputs, run, read the outputs. Nothing is allocated between
// the first run and dispose(). What a plan is of, backends do not know: of a language model executable.ts
// makes a table of rows, on this interface.

import type { KernelStorages } from "../../gpu/storage_choice.ts";
import type { DimEnv } from "../graph/dim/mod.ts";
import type { Graph, Node } from "../graph/graph.ts";
import type { HostData } from "../ops/op.ts";
import type { Plan } from "../plan/plan.ts";
import type { Holder } from "./held.ts";
import type { KernelTable, KernelWish } from "./kernel_choice.ts";
import type { StateSizes } from "./pages/groups.ts";
import type { StreamedBytes } from "./streaming/slots.ts";

/**
 * Name of a backend, as `--device` takes it.
 * @category Models
 */
export type DeviceName = "reference" | "wasm" | "gpu";

/** Told while weights load. */
export interface LoadProgress {
  /** Bytes of the file that are in place. */
  readonly loadedBytes: number;
  /** Bytes that will be read in all. */
  readonly totalBytes: number;
}

/** Common options of all backends. */
export interface PrepareOptions extends KernelWish, StateSizes {
  /** Stops loading; `prepare` then rejects with its reason. */
  readonly signal?: AbortSignal;
  /** Called now and then while weights are read. */
  readonly onProgress?: (progress: LoadProgress) => void;
  /** What the calling thread does while others load weights, if the device has others; what it throws ends loading. */
  readonly meanwhile?: () => Promise<void>;
  /**
   * True: a node without a kernel runs on the CPU between kernels, by its reference, instead of being an
   * error. Default false.
   */
  readonly hostSteps?: boolean;
  /**
   * True: the same kernels compute a row whatever the number of rows of its step and the length of the others' texts, so
   * that its bits do not hang on them. Costs most where there are many. Default false.
   */
  readonly rowByRow?: boolean;
  /** Of device gpu: where kernels over virtual tensors keep them; default: by gpu/storage_choice.ts. */
  readonly storages?: KernelStorages | undefined;
  /** The output of whose rows a run may want the best values alone; absent: all outputs are wanted whole. */
  readonly ranked?: RankedOutput | undefined;
}

/** An output f32[rows, columns] that is looked at by its largest values, and how one run follows from it. */
export interface RankedOutput {
  /** Its name. */
  readonly output: string;
  /** Input i32[rows] that takes the column of a row's best value in the run behind it. */
  readonly fed: string;
  /** Input i32[rows] that grows by 1 from run to run; it is where a run's row goes in every state. */
  readonly counted: string;
}

/** What a run is asked for of the ranked output, and what may follow it. */
export interface RankedWish {
  /** By row, so many of its best values; below 1: all of it. */
  readonly best: Int32Array;
  /**
   * So many runs may follow, each with the columns of the best values fed back and all other inputs as they are: a
   * device may compute them before they are asked for.
   */
  readonly repeats: number;
  /** Of a run of one row: its best value may be that of these columns alone, by bit; absent: of all. */
  readonly allowed?: Uint32Array | undefined;
}

/** Some rows of an output. */
export interface OutputRows {
  readonly first: number;
  readonly count: number;
}

/** The best values of a row. The arrays are the device's: the next run overwrites them. */
export interface BestLogits {
  /** Columns (token ids), best first, equal values by lower column. */
  readonly ids: Uint32Array;
  /** Values, parallel to `ids`; a NaN in the row comes first. */
  readonly logits: Float32Array;
  /** How many there are. */
  readonly count: number;
}

/**
 * The pages of a group of states (pages/groups.ts). Pages have numbers; at what address their rows of a state lie, the
 * device knows. Its kernels find row `position` of a slot in page `table[slot · pagesPerSlot + position / PAGE_ROWS]`.
 */
export interface PageMemory {
  /** Says in which page the rows of a slot from `index` · PAGE_ROWS on lie, or that they lie nowhere (NO_PAGE). */
  map(at: { readonly slot: number; readonly index: number }, page: number): void;
  /** Copies the leading rows of a page over those of another. */
  copy(from: { readonly page: number; readonly rows: number }, to: number): void;
}

/**
 * What streamed weights cost in some steps.
 * @category Models
 */
export interface StreamingFigures {
  /** Runs of the plan. */
  readonly steps: number;
  /** Milliseconds that loading took. */
  readonly loadMs: number;
  /** Milliseconds during which steps waited for it. */
  readonly waitedMs: number;
  /** The part of loading that nobody waited for, 0 to 1. */
  readonly hidden: number;
  /** Of mixtures: experts that were there when they were chosen, and that had to be loaded. */
  readonly experts?: { readonly hits: number; readonly misses: number };
}

/** What holds a device's memory for a plan. */
export interface Loaded {
  /** The plan it was made from. */
  readonly plan: Plan;
  /** Threads in use, the calling one included; absent: one. */
  readonly threads?: number;
  /** Names of the chosen kernels, in order of execution; `host:` and the op for a node of `hostNodes`. */
  readonly kernels?: readonly string[];
  /** Nodes that another than the device computes; absent: nothing is known of that. */
  readonly hostNodes?: readonly Node[];
  /** What the device had to do without; one sentence each. */
  readonly notes?: readonly string[];
  /** Bytes by use: weights, arena, states of one slot at its longest and of all slots, program and tables. */
  readonly memory: {
    readonly weights: number;
    readonly arena: number;
    readonly statePerSlot: number;
    readonly states: number;
    readonly other: number;
    /** Of weights and other, what lies in textures; absent: nothing. */
    readonly textures?: number;
    /** Of weights, what comes and goes; absent: all stay. */
    readonly streamed?: StreamedBytes;
  };
  /**
   * The pages of each group, where `PrepareOptions.pages` asked for pools: slots are opened and closed without any page,
   * and before a run rows must have one. Absent: every slot has memory of its own.
   */
  readonly pages?: readonly PageMemory[];
  /** Takes a free slot (zero-filled where it has memory of its own); throws ResourceError when all are taken. */
  openSlot(): number;
  /** Gives a slot back. */
  closeSlot(slot: number): void;
  /**
   * Copies `count` leading rows (tokens) of every state of a slot out of the device, in the order of
   * `plan.graph.states`; `writeState` puts them back. Rows without a page are zero, and nothing is written to them.
   */
  readState(slot: number, count: number): Promise<Uint8Array> | Uint8Array;
  /** Puts back what `readState` gave. @throws {RangeError} If the length is another. */
  writeState(slot: number, count: number, bytes: Uint8Array): Promise<void> | void;
  /** Time by kernel name since the last call, when profiling was asked for. */
  profile?(): readonly { readonly name: string; readonly calls: number; readonly ms: number }[];
  /** Figures of streamed weights since the last call; absent: none are. */
  streaming?(): StreamingFigures;
  /**
   * Puts others in the place of devices that are gone, after a run that failed with a DeviceError and while none is under
   * way; slots are as they were, all rows of states are lost. Absent: what is gone stays so.
   *
   * @returns False if none was gone, or one cannot be replaced.
   */
  replace?(): Promise<boolean>;
  /** Frees the device memory; nothing may be used afterwards. */
  dispose(): void;
}

/** Inputs and outputs of a run that may be under way beside others. */
export interface Lane {
  /** View of a graph input, at its maximum size; write before `run`. */
  input(name: string): HostData;
  /**
   * Runs once; bindings must not exceed the plan's limits. A device may stop a long run between two pieces of it when the
   * signal fires: it then rejects with its reason, what it has written means nothing, and the next run is as any other.
   */
  run(bindings: DimEnv, wish?: RankedWish, signal?: AbortSignal): void | Promise<void>;
  /** View of a graph output after `run`, at its maximum size; valid until the next run of the lane. */
  output(name: string): HostData;
  /** What the last run found of a row of the ranked output; absent or undefined: look at all of it. */
  best?(row: number): BestLogits | undefined;
  /** Whether a row of which the best were wished for is no longer to be had; absent: all are. */
  isGone?(row: number): boolean;
}

/** A plan made ready to run on a device. */
export interface PreparedPlan extends Loaded, Lane {
  /** Runs that may be under way at once, where there are several; the first is the plan's own. */
  readonly lanes?: readonly Lane[];
  /** So many of them keep all devices at work; default: all. */
  readonly leastLanes?: number;
  /** More of them, for the leading rows of a run that goes in chunks (row_chunks.ts); absent: none does. */
  readonly chunkLanes?: readonly Lane[];
  /** Whether what `run` starts is computed while this thread does something else. */
  readonly runsAside?: boolean;
  /** Whether a run of which nothing is looked at is queued: it is over before the device has computed it. */
  readonly queues?: boolean;
  /** Whether results are taken without a pause of the event loop; absent or false: each wait for some may be long. */
  readonly readsAtOnce?: boolean;
  /** Whether a run lets events through before it waits for the device. */
  readonly pauses?: boolean;
  /** Whether a run of one row may give the best of what is allowed ({@linkcode RankedWish.allowed}) in place of its best few. */
  readonly picksAllowed?: boolean;
  /** Holds values on the device from run to run; absent: all inputs and outputs are the host's. */
  readonly holder?: Holder | undefined;
  /** Whether `output` is at hand where only the best were wished for; absent: it may have to be fetched. */
  readonly keepsRows?: boolean;
  /**
   * View of a graph output after `run`, at its maximum size; valid until the next run.
   *
   * @param rows Those of the ranked output that will be looked at; default: all that are there.
   * @throws {TypeError} If one of `rows` is gone.
   */
  output(name: string, rows?: OutputRows): HostData;
}

/** One engine. */
export interface Backend {
  /** As `--device` takes it. */
  readonly name: DeviceName;
  /** Its kernels; the reference needs none. */
  readonly kernels: KernelTable;
  /** Loads the weights, chooses kernels and allocates everything. */
  prepare(plan: Plan, options: PrepareOptions): Promise<PreparedPlan>;
  /**
   * Starts what takes time and needs no plan, for the next `prepare`; absent: nothing does.
   *
   * @returns What ends it if there is no such call.
   */
  warm?(): Disposable;
  /** Says that at least so many bytes of weights will come; absent: that is of no use to the device. */
  expect?(bytes: number): Promise<void>;
  /**
   * Begins to load the weights of a graph from which the plan of the next `prepare` will be made: the device does it
   * while the caller plans. To a device that is warm; whether it is of use is left to the device.
   */
  preload?(graph: Graph): Promise<void>;
  /** Which nodes it has kernels for; absent or undefined: `prepare` says what is wrong. */
  takes?(wish: KernelWish): Promise<((node: Node) => boolean) | undefined>;
  /**
   * Planned bytes of each memory that a plan takes with states of such sizes; absent where there is one kind of memory
   * and no limit to it but the system's.
   *
   * @throws {ResourceError} If a memory does not hold what cannot be cut.
   */
  memories?(plan: Plan, sizes: StateSizes): readonly number[];
  /**
   * What all weights of a plan would take in memory where some are streamed; absent or undefined: none are. With
   * `least` as few as can be are held, whatever memory there is.
   *
   * @throws {ResourceError} If the plan does not fit even so.
   */
  streams?(
    plan: Plan,
    sizes: StateSizes,
    how?: { readonly least: boolean },
  ): { readonly weights: number; readonly streamed: StreamedBytes } | undefined;
}

/**
 * Number formats of keys and values, as GGUF writes them.
 * @category Models
 */
export type KvFormat = "F16" | "F32" | "Q8_0";
