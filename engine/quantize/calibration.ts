// What the inputs of a model's matrices look like on a text: their Gram matrices Σ x xᵀ, from which calibrated
// rounding follows. The model's own graph computes them (calibration_graph.ts), exactly, on WASM, in windows as
// perplexity does.
//
// Gram matrices are large (columns squared), so they are made for as many tensors at a time as a limit allows, in
// the order in which they are asked for; the graph is cut off behind the last one of them. Encoder-decoders and
// stacked experts are left out: their tensors have no statistics and are rounded to nearest.

import { pause } from "../pause.ts";
import { UnsupportedError } from "../errors.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { type Device, openDevice } from "../run/devices.ts";
import { prepareExecutable } from "../run/executable.ts";
import { addRows, clearStep, createStep, WANTED } from "../run/step.ts";
import { type PreparedModel, prepareModel } from "../models/prepare.ts";
import { readTextParts } from "../text/text_parts.ts";
import { plan } from "../plan/planner.ts";
import {
  columnsOf,
  gramName,
  inputsOfMatrices,
  tensorKey,
  withGrams,
} from "./calibration_graph.ts";

/**
 * Options of {@linkcode openCalibration}.
 * @category Number formats
 */
export interface CalibrationOptions {
  /** Most tokens of the text, in windows spread over it. Default 8192. */
  readonly tokens?: number | undefined;
  /** Tokens that see each other. Default 512, or the model's context. */
  readonly window?: number | undefined;
  /** Most rows of a step, between two of which `signal` is looked at; of decoders only. Default 64. */
  readonly rows?: number | undefined;
  /** Bytes for Gram matrices. Default 1 GiB; a single one may take more. */
  readonly maxBytes?: number | undefined;
  /** CPU threads that run the model. Default: all. */
  readonly threads?: number | undefined;
  /** Stops between two steps. */
  readonly signal?: AbortSignal | undefined;
  /** Called after each window of each pass over the text. */
  readonly onWindow?: ((progress: CalibrationProgress) => void) | undefined;
}

/**
 * How far a pass over the text is.
 * @category Number formats
 */
export interface CalibrationProgress {
  /** Number of the pass, from 1. */
  readonly pass: number;
  /** Windows done. */
  readonly windows: number;
  /** Windows in all. */
  readonly of: number;
}

/** Inputs of a matrix on the text. */
export interface InputStatistics {
  readonly columns: number;
  /** Rows that were summed up. */
  readonly count: number;
  /** Σ x xᵀ, [columns, columns]; the same array for all matrices that read the same value. */
  readonly gram: Float32Array;
}

/** Statistics of the inputs of a model's matrices. */
export interface Calibration {
  /** Tokens of a pass. */
  readonly tokens: number;
  /** Most bytes that Gram matrices take at a time. */
  readonly bytes: number;
  /** The graph that is run, without what is added to it. */
  readonly graph: Graph;
  /**
   * Of one of the wanted tensors; undefined where its inputs are not known.
   *
   * @throws {RangeError} If it is none of them.
   */
  statisticsOf(tensor: TensorInfo): Promise<InputStatistics | undefined>;
}

const DEFAULT_TOKENS = 8192;
const DEFAULT_WINDOW = 512;
const DEFAULT_BYTES = 2 ** 30;
const DEFAULT_ROWS = 64;

/**
 * Prepares statistics of a text.
 *
 * @param choose Says of the graph which tensors will be asked for, in what order.
 * @throws {UnsupportedError} If the model cannot be run on a text by itself.
 * @throws {RangeError} If the text is too short.
 */
export async function openCalibration(
  file: WeightFile,
  { text, choose }: {
    readonly text: string;
    readonly choose: (graph: Graph) => readonly TensorInfo[];
  },
  options: CalibrationOptions = {},
): Promise<Calibration> {
  const device = await openDevice("wasm", { threads: options.threads });
  const prepared = await prepareForCalibration(file, device, options);
  const windows = await cutWindows(file, text, prepared, options);
  const graph = prepared.plan.graph;
  const sources = inputsOfMatrices(graph);
  const inputsOf = (tensor: TensorInfo) => sources.get(tensorKey(tensor)) ?? [];
  const maxBytes = options.maxBytes ?? DEFAULT_BYTES;
  const passes = planPasses(choose(graph).map(inputsOf), maxBytes);
  let known = new Map<Value, InputStatistics>();
  let pass = 0;
  return {
    tokens: windows.reduce((sum, { length }) => sum + length, 0),
    bytes: Math.max(0, ...passes.map(bytesOf)),
    graph,
    async statisticsOf(tensor) {
      const values = inputsOf(tensor);
      if (values.length === 0) return undefined;
      while (!values.every((value) => known.has(value))) {
        const next = passes[pass++];
        if (!next) throw new RangeError(`Cannot calibrate ${tensor.name}: it was not announced`);
        // Those of the pass before make room first.
        known = new Map();
        known = await runPass(device, { prepared, values: next, windows }, { ...options, pass });
      }
      return joined(values.map((value) => known.get(value)!));
    },
  };
}

async function prepareForCalibration(
  file: WeightFile,
  device: Device,
  { window = DEFAULT_WINDOW, rows: most = DEFAULT_ROWS }: CalibrationOptions,
): Promise<PreparedModel> {
  // Without fused forms every matrix has a node of its own, with its input.
  const kernels = { ...device, hasKernel: () => false, takes: () => false };
  const { info } = await prepareModel(file, { options: { precision: "exact" }, kernels });
  if (info.network === "encoder-decoder") {
    throw new UnsupportedError(
      "models of an encoder and a decoder cannot be calibrated on a text",
      { file: file.name, remedy: "Quantise it without a text" },
    );
  }
  const contextLength = Math.min(window, info.trainedContextLength);
  // What reads whole sequences cannot take them in parts.
  const rows = info.network === "decoder" ? Math.min(most, contextLength) : contextLength;
  return await prepareModel(file, {
    options: {
      ...{ precision: "exact", kvFormat: "F32" },
      ...{ contextLength, batch: rows, logitRows: rows },
    },
    kernels,
  });
}

async function cutWindows(
  file: WeightFile,
  text: string,
  { tokenization, limits }: PreparedModel,
  { tokens: most = DEFAULT_TOKENS }: CalibrationOptions,
): Promise<number[][]> {
  const tokenizer = (await readTextParts(file, { template: null, tokenization })).tokenizer();
  const ids = tokenizer.encode(text, { addSpecial: false });
  const prefix = tokenizer.prefixIds;
  const length = limits.contextLength - prefix.length;
  if (ids.length < 2 || length < 1) {
    throw new RangeError(`Cannot calibrate on a text of ${ids.length} tokens: give a longer one`);
  }
  const count = Math.max(1, Math.floor(Math.min(most, ids.length) / length));
  const stride = Math.max(length, Math.floor(ids.length / count));
  return Array.from({ length: count }, (_, i) => [
    ...prefix,
    ...ids.slice(i * stride, i * stride + length),
  ]);
}

/** Cuts what is wanted into passes whose Gram matrices fit, the device's and ours. */
function planPasses(wanted: readonly (readonly Value[])[], maxBytes: number): Set<Value>[] {
  const passes: Set<Value>[] = [];
  let current = new Set<Value>();
  for (const values of wanted) {
    if (values.every((value) => current.has(value))) continue;
    const grown = new Set([...current, ...values]);
    if (current.size > 0 && bytesOf(grown) > maxBytes) {
      passes.push(current);
      current = new Set(values);
    } else current = grown;
  }
  return current.size > 0 ? [...passes, current] : passes;
}

function bytesOf(values: ReadonlySet<Value>): number {
  return [...values].reduce((sum, value) => sum + 2 * 4 * columnsOf(value) ** 2, 0);
}

async function runPass(
  device: Device,
  { prepared, values, windows }: {
    readonly prepared: PreparedModel;
    readonly values: ReadonlySet<Value>;
    readonly windows: readonly (readonly number[])[];
  },
  { signal, onWindow, pass }: CalibrationOptions & { readonly pass: number },
): Promise<Map<Value, InputStatistics>> {
  const list = [...values];
  const graph = withGrams(prepared.plan.graph, list);
  const executable = await prepareExecutable(device.backend, {
    plan: plan(graph, { limits: prepared.plan.limits }),
    slots: 1,
    ...signal && { signal },
  });
  const { batch } = prepared.limits;
  const step = createStep(batch);
  try {
    const slot = graph.states.length > 0 ? executable.openSlot() : 0;
    const grams = list.map((value) => new Float32Array(columnsOf(value) ** 2));
    let count = 0;
    for (const [i, tokens] of windows.entries()) {
      for (let from = 0; from < tokens.length; from += batch) {
        await pause();
        signal?.throwIfAborted();
        const to = Math.min(from + batch, tokens.length), wantedRows = to - from;
        clearStep(step);
        addRows(step, {
          ...{ tokens, from, to, position: from, slot },
          ...{ wanted: WANTED.logits, wantedRows },
        });
        await executable.run(step, signal);
        grams.forEach((gram, g) =>
          addTo(gram, executable.prepared.output(gramName(g)) as Float32Array)
        );
        count += wantedRows;
      }
      onWindow?.({ pass, windows: i + 1, of: windows.length });
    }
    return new Map(
      list.map((value, g) => [value, { columns: columnsOf(value), count, gram: grams[g]! }]),
    );
  } finally {
    executable.dispose();
  }
}

function addTo(sum: Float32Array, part: Float32Array): void {
  for (let i = 0; i < sum.length; i++) sum[i]! += part[i]!;
}

function joined(all: readonly InputStatistics[]): InputStatistics {
  const [first, ...rest] = all as [InputStatistics, ...InputStatistics[]];
  if (rest.length === 0) return first;
  const gram = first.gram.slice();
  for (const other of rest) addTo(gram, other.gram);
  return { ...first, count: all.reduce((sum, { count }) => sum + count, 0), gram };
}

/** Mean squares of each column of the inputs: what encoders call importance. */
export function importanceOf({ columns, count, gram }: InputStatistics): Float32Array {
  return Float32Array.from({ length: columns }, (_, i) => gram[i * columns + i]! / count);
}
