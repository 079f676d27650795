// What users of ONNX graphs see of them.

import type { GpuProvider } from "../../../gpu/capabilities.ts";
import type { Precision, SourceOptions } from "../../decode/model.ts";
import type { DeviceName } from "../../run/backend.ts";
import type { PriorityOptions } from "../../run/pacer.ts";
import type { Arena } from "./arena.ts";
import type { GraphValue, TensorData } from "./graph_tensor.ts";

/**
 * Options of `loadGraph`.
 * @category ONNX graphs
 */
export interface LoadGraphOptions extends SourceOptions, PriorityOptions {
  /**
   * Where it runs; default `auto`, which is wasm: many ops have no GPU kernel yet, and a graph that changes
   * sides at every other node is slower than on either. `gpu` computes the rest beside the GPU.
   */
  readonly device?: DeviceName | "auto" | undefined;
  /** Who gives the adapter of device `gpu`; default: `navigator.gpu`. */
  readonly gpu?: GpuProvider | undefined;
  /** Threads of WASM; default: all processors, at most 16. */
  readonly threads?: number | undefined;
  /**
   * Largest values of the symbols in input shapes, e.g. `{ batch: 4, N: 512 }`: memory is planned for them
   * once. Without, it is planned for what comes and again when something larger comes.
   */
  readonly limits?: Readonly<Record<string, number>> | undefined;
  /**
   * `exact` (default): floats stay floats. `fast`: products with large constant matrices take activations in 8
   * bit and weights in 7 or 8. That is for encoders and vision: vectors keep a cosine of about 0.999. Not for
   * language models, whose own output comes back to them: seven bits cost 2.7 % of perplexity.
   */
  readonly precision?: Precision | undefined;
  /**
   * Memory for activations that several graphs share, of `createArena`. Their runs
   * must not overlap.
   */
  readonly arena?: Arena | undefined;
  /**
   * Names of kernels that must not be used, because `troodon doctor` found them wrong on this machine. A node that
   * no other kernel takes is computed by its reference.
   */
  readonly excludeKernels?: readonly string[] | undefined;
  /** Measure time by kernel on WASM, see {@linkcode LoadedGraph.profile}. */
  readonly profile?: boolean | undefined;
  /** Most bytes that activations may take; default 4 GiB. */
  readonly maxActivationBytes?: number | undefined;
}

/**
 * Options of one run.
 * @category ONNX graphs
 */
export interface RunGraphOptions {
  /** Names of the results that are wanted; default: all. */
  readonly outputs?: readonly string[] | undefined;
  /**
   * Arrays that results are written into, by name, at least as long as the result: a loop of runs then
   * allocates none. The result's `data` is the leading part of the array.
   */
  readonly into?: Readonly<Record<string, Exclude<TensorData, readonly string[]>>> | undefined;
  /**
   * Names of results that stay on the device, each a {@linkcode KeptTensor}: an input of this or of another graph on the
   * same device without a way through the host. On devices that are the host it is an array like any other.
   */
  readonly keep?: readonly string[] | undefined;
  /** Stops between two pieces of a long run, and between trips of a loop, with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * An input or output.
 * @category ONNX graphs
 */
export interface GraphPort {
  /** As the file calls it. */
  readonly name: string;
  /** Element type, e.g. `float32`; `sequence`, `map`, `optional` or `unknown` for what is no tensor. */
  readonly type: string;
  /** Declared sizes: a number, a symbol or expression of symbols, or `undefined`; absent: not declared. */
  readonly dims?: readonly (number | string | undefined)[];
  /** False for an input that has a default in the file. */
  readonly required: boolean;
}

/**
 * A loaded graph.
 * @category ONNX graphs
 */
export interface LoadedGraph extends Disposable {
  /** What runs take. */
  readonly inputs: readonly GraphPort[];
  /** What runs give. */
  readonly outputs: readonly GraphPort[];
  /** Where it runs. */
  readonly device: DeviceName;
  /**
   * What the device had to do without, or does slowly, one sentence each: known from the first run on, which
   * makes the graph ready.
   */
  readonly notes: readonly string[];
  /** What the exporter wrote beside the graph, e.g. class names; not interpreted. */
  readonly metadata: ReadonlyMap<string, string>;
  /**
   * Runs the graph once; calls while another one runs wait for their turn.
   *
   * @throws {TypeError | RangeError} If an input is missing, unknown, or of another type or shape; the
   *   message names it, what was given and what the model expects.
   * @throws {TypeError} If another graph runs in the same arena.
   * @throws {ResourceError} If the arena is too small; the message names the bytes.
   */
  run(
    inputs: Readonly<Record<string, GraphValue>>,
    options?: RunGraphOptions,
  ): Promise<Record<string, GraphValue>>;
  /**
   * What a run at given sizes takes: values of the symbols in `inputs`, e.g. `{ batch: 1, N: 128 }`.
   *
   * @throws {RangeError} If a symbol has no value, or the sizes do not fit.
   */
  plan(bind?: Readonly<Record<string, number>>): GraphMemory;
  /**
   * Time by kernel since the last call, most first; on WASM.
   *
   * @throws {TypeError} If the graph was loaded without `profile: true`.
   */
  profile(): GraphProfileEntry[];
  /** Frees memory and closes the file. */
  dispose(): void;
}

/**
 * What a run takes.
 * @category ONNX graphs
 */
export interface GraphMemory {
  /** Sizes of the results. */
  readonly outputs: Readonly<Record<string, readonly number[]>>;
  /** Steps that compute. */
  readonly steps: number;
  /** Bytes of activations as they are laid out. */
  readonly arenaBytes: number;
  /** Bytes that any layout takes. */
  readonly lowerBoundBytes: number;
  /** Bytes with a buffer for each. */
  readonly naiveBytes: number;
  /** What deriving assumed, e.g. `lastSum := sumN - N`. */
  readonly assumptions: readonly string[];
  /** Why the plan ends before the graph does: control flow, sizes that depend on data. */
  readonly split: readonly string[];
}

/**
 * Time of one kernel.
 * @category ONNX graphs
 */
export interface GraphProfileEntry {
  /** Name of the kernel, or `host:` and an op. */
  readonly name: string;
  /** How often it ran. */
  readonly calls: number;
  /** Milliseconds of all calls. */
  readonly ms: number;
}
