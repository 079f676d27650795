// What the inputs of a model's matrices look like on a text: their Gram matrices Σ x xᵀ, from which calibrated
// rounding follows. The model's own graph computes them: behind every value that such a matrix reads one more
// product, x transposed times x, becomes an output; nothing else of the graph is touched. It runs
// exactly, on WASM, in windows as perplexity does.
//
// Gram matrices are large (columns squared), so they are made for as many tensors at a time as a limit allows, in
// the order in which they are asked for; the graph is cut off behind the last one of them. Encoder-decoders and
// stacked experts are left out: their tensors have no statistics and are rounded to nearest.

import { UnsupportedError } from "../errors.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import { getOp } from "../graph/ops/mod.ts";
import { type Device, openDevice } from "../models/devices.ts";
import { type PreparedModel, prepareModel } from "../models/prepare.ts";
import { readTextParts } from "../models/text_parts.ts";
import type { Executable } from "../plan/backend.ts";
import { plan } from "../plan/planner.ts";

/** Options of {@linkcode openCalibration}. */
export interface CalibrationOptions {
  /** Most tokens of the text, in windows spread over it. Default 8192. */
  readonly tokens?: number | undefined;
  /** Tokens that see each other. Default 512, or the model's context. */
  readonly window?: number | undefined;
  /** Bytes for Gram matrices. Default 1 GiB; a single one may take more. */
  readonly maxBytes?: number | undefined;
  readonly threads?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called after each window of each pass over the text. */
  readonly onWindow?: ((progress: CalibrationProgress) => void) | undefined;
}

/** How far a pass over the text is. */
export interface CalibrationProgress {
  /** Number of the pass, from 1. */
  readonly pass: number;
  /** Windows done and in all. */
  readonly windows: number;
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

/**
 * Prepares statistics of a text.
 *
 * @param choose Says of the graph which tensors will be asked for, in what order.
 * @throws {UnsupportedError} If the model cannot be run on a text by itself.
 * @throws {RangeError} If the text is too short.
 */
export async function openCalibration(
  file: WeightFile,
  text: string,
  choose: (graph: Graph) => readonly TensorInfo[],
  options: CalibrationOptions = {},
): Promise<Calibration> {
  const device = await openDevice("wasm", { threads: options.threads });
  const prepared = await prepareForCalibration(file, device, options);
  const windows = await cutWindows(file, text, prepared, options);
  const graph = prepared.plan.graph;
  const sources = inputsOfMatrices(graph);
  const inputsOf = (tensor: TensorInfo) => sources.get(keyOf(tensor)) ?? [];
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
        known = await runPass(device, prepared, next, windows, { ...options, pass });
      }
      return joined(values.map((value) => known.get(value)!));
    },
  };
}

async function prepareForCalibration(
  file: WeightFile,
  device: Device,
  { window = DEFAULT_WINDOW }: CalibrationOptions,
): Promise<PreparedModel> {
  // Without fused forms every matrix has a node of its own, with its input.
  const kernels = { ...device, hasIntegerKernel: () => false, hasKernel: () => false };
  const prepare = (rows: number) =>
    prepareModel(file, {
      ...{ precision: "exact", kvFormat: "F32" },
      ...{ contextLength: rows, batch: rows, logitRows: rows },
    }, kernels);
  const { info } = await prepareModel(file, { precision: "exact" }, kernels);
  if (info.network === "encoder-decoder") {
    throw new UnsupportedError(
      "models of an encoder and a decoder cannot be calibrated on a text",
      {
        file: file.name,
        remedy: "Quantise it without a text",
      },
    );
  }
  return await prepare(Math.min(window, info.trainedContextLength));
}

async function cutWindows(
  file: WeightFile,
  text: string,
  { tokenization, limits }: PreparedModel,
  { tokens: most = DEFAULT_TOKENS }: CalibrationOptions,
): Promise<number[][]> {
  const tokenizer = (await readTextParts(file, null, tokenization)).tokenizer();
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

const keyOf = ({ source, offset, byteLength }: TensorInfo): string =>
  `${source.name}:${offset}:${byteLength}`;

/** By tensor: the values that it is multiplied by. Tensors that anything else reads are not among them. */
function inputsOfMatrices({ nodes }: Graph): Map<string, Value[]> {
  const found = new Map<string, Value[]>();
  const others = new Set<string>();
  for (const { op, inputs } of nodes) {
    inputs.forEach((value, i) => {
      if (!value?.tensor) return;
      const key = keyOf(value.tensor);
      const x = inputs[0];
      const isProduct = op === "matmul" && i === 1 && x?.role === "activation" &&
        x.dtype === "f32" && x.shape.length === 2 && typeof x.shape[1] === "number";
      if (!isProduct) others.add(key);
      else found.set(key, [...new Set([...found.get(key) ?? [], x])]);
    });
  }
  for (const key of others) found.delete(key);
  return found;
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

const columnsOf = ({ shape }: Value): number => shape[1] as number;

async function runPass(
  device: Device,
  prepared: PreparedModel,
  values: ReadonlySet<Value>,
  windows: readonly (readonly number[])[],
  { signal, onWindow, pass }: CalibrationOptions & { readonly pass: number },
): Promise<Map<Value, InputStatistics>> {
  const list = [...values];
  const graph = withGrams(prepared.plan.graph, list);
  const executable = await device.backend.prepare(
    plan(graph, { limits: prepared.plan.limits }),
    { slots: 1, ...signal && { signal } },
  );
  try {
    const slot = graph.states.length > 0 ? executable.openSlot() : 0;
    const grams = list.map((value) => new Float32Array(columnsOf(value) ** 2));
    let count = 0;
    for (const [i, tokens] of windows.entries()) {
      signal?.throwIfAborted();
      writeInputs(executable, tokens, slot);
      const rows = tokens.length;
      await executable.run(
        Object.fromEntries(Object.keys(prepared.plan.limits).map((name) => [name, rows])),
      );
      grams.forEach((gram, g) => addTo(gram, executable.output(gramName(g)) as Float32Array));
      count += rows;
      onWindow?.({ pass, windows: i + 1, of: windows.length });
    }
    return new Map(
      list.map((value, g) => [value, { columns: columnsOf(value), count, gram: grams[g]! }]),
    );
  } finally {
    executable.dispose();
  }
}

const gramName = (index: number): string => `gram.${index}`;

/** The graph up to the last of the values, with their Gram matrices for outputs. */
function withGrams(graph: Graph, values: readonly Value[]): Graph {
  const op = getOp("matmul_nd");
  const attributes = op.attributes({ transpose_a: true });
  const last = graph.nodes.findLastIndex(({ outputs }) =>
    outputs.some((value) => values.includes(value))
  );
  const made = graph.nodes.flatMap(({ outputs }) => outputs);
  const firstId = 1 + Math.max(
    ...[...graph.inputs, ...graph.states, ...made].map(({ id }) => id),
    ...graph.nodes.flatMap(({ inputs }) => inputs.map((value) => value?.id ?? 0)),
  );
  const nodes = values.map((value, i): Node => ({
    id: graph.nodes.length + i,
    op: op.name,
    name: gramName(i),
    inputs: [value, value],
    outputs: [{
      ...{ id: firstId + i, name: gramName(i), role: "activation", dtype: "f32" },
      shape: [columnsOf(value), columnsOf(value)],
    }],
    attributes,
  }));
  return Object.freeze({
    ...graph,
    nodes: [...graph.nodes.slice(0, last + 1), ...nodes],
    outputs: nodes.flatMap(({ outputs }) => outputs),
  });
}

function writeInputs(executable: Executable, tokens: readonly number[], slot: number): void {
  const count = tokens.length;
  for (const { name } of executable.plan.graph.inputs) {
    const data = executable.input(name) as Int32Array;
    const fill = INPUTS[name];
    if (!fill) {
      throw new UnsupportedError(
        `its graph has an input "${name}" that a text alone does not give`,
        {
          file: executable.plan.graph.name,
          remedy: "Quantise it without a text",
        },
      );
    }
    for (let row = 0; row < count; row++) data[row] = fill({ tokens, row, count, slot });
  }
}

interface RowFacts {
  readonly tokens: readonly number[];
  readonly row: number;
  readonly count: number;
  readonly slot: number;
}

const INPUTS: Readonly<Record<string, (facts: RowFacts) => number>> = {
  tokens: ({ tokens, row }) => tokens[row]!,
  positions: ({ row }) => row,
  slots: ({ slot }) => slot,
  logit_rows: ({ row }) => row,
  spans: ({ count }) => count,
  starts: () => 0,
  ends: ({ count }) => count,
  types: () => 0,
};

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
