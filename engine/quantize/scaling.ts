// Where a model lets inputs of matrices be divided by scales at no cost (AWQ): the weight of a norm, or the rows of
// the matrix whose result is multiplied by a gate, take the division in, if nothing but products reads
// the inputs and no weight involved is used twice. Where that does not hold the inputs stay as they are: the output
// of attention, whose heads are shared, and models whose norms have a bias of their own as a node.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { searchScales } from "../../quant/awq.ts";
import { runSteps } from "../pause.ts";
import { readOutliers } from "../formats/outliers.ts";
import type { TensorInfo } from "../formats/source.ts";
import { addSparseRows } from "../../quant/outliers.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import { producersOf, readersOf } from "../plan/passes/rewrite.ts";
import { tensorKey } from "./calibration_graph.ts";
import { isFloatFormat, type PlannedTensor } from "./plan.ts";
import type { InputStatistics } from "./calibration.ts";

/** Inputs that can be scaled, and whom it concerns. */
export interface ScalableInputs {
  /** Matrices that read them: columns are multiplied. */
  readonly matrices: readonly PlannedTensor[];
  /** What makes them: rows, or the values of a vector, are divided. */
  readonly makers: readonly PlannedTensor[];
  /** Added to the values of a maker that is a norm's weight before they are divided (Gemma's 1 + w). */
  readonly base: number;
}

/** Finds all inputs that can be scaled; those to which nothing is rounded are left out. */
export function findScalableInputs(
  graph: Graph,
  tensors: readonly PlannedTensor[],
): ScalableInputs[] {
  const planned = new Map(tensors.map((entry) => [tensorKey(entry.tensor), entry]));
  const readers = readersOf(graph);
  const producers = producersOf(graph);
  const uses = new Map<string, number>();
  for (const { inputs } of graph.nodes) {
    for (const value of inputs) {
      if (!value?.tensor) continue;
      uses.set(tensorKey(value.tensor), (uses.get(tensorKey(value.tensor)) ?? 0) + 1);
    }
  }
  /** The plan of a weight that may be changed. */
  const own = (value: Value | undefined): PlannedTensor | undefined => {
    if (!value?.tensor || uses.get(tensorKey(value.tensor)) !== 1) return undefined;
    const entry = planned.get(tensorKey(value.tensor));
    const isWhole = entry?.tensor.shape.join() === value.shape.join();
    const canChange = entry && (entry.target !== undefined || isPlainFloat(entry.tensor));
    return isWhole && canChange ? entry : undefined;
  };
  return [...readers].flatMap(([x, nodes]) => {
    if (x.role !== "activation" || graph.outputs.includes(x)) return [];
    const matrices = nodes.map((node) =>
      node.op === "matmul" && node.inputs[0] === x && node.inputs[1] !== x
        ? own(node.inputs[1])
        : undefined
    );
    const makers = makersOf(producers.get(x), { producers, readers, own });
    if (!makers || !matrices.every((entry) => entry !== undefined)) return [];
    if (!matrices.some(({ target }) => target && target.blockSize > 1)) return [];
    return [{ matrices, ...makers }];
  });
}

function makersOf(
  maker: Node | undefined,
  { producers, readers, own }: {
    readonly producers: ReadonlyMap<Value, Node>;
    readonly readers: ReadonlyMap<Value, readonly Node[]>;
    readonly own: (value: Value | undefined) => PlannedTensor | undefined;
  },
): Pick<ScalableInputs, "makers" | "base"> | undefined {
  const weights = (values: readonly (Value | undefined)[]) => {
    const makers = values.filter((value) => value !== undefined).map(own);
    return makers.every((entry) => entry !== undefined) ? makers : undefined;
  };
  if (maker?.op === "norm") {
    const makers = maker.inputs[1] && weights(maker.inputs.slice(1));
    return makers && { makers, base: maker.attributes.base as number };
  }
  // A clamped gate adds to what it gates: no factor of that goes through it.
  if (maker?.op !== "glu" || maker.attributes.activation === "clamped") return undefined;
  const up = maker.inputs[1]!;
  const product = producers.get(up);
  if (product?.op !== "matmul" || readers.get(up)!.length !== 1) return undefined;
  const makers = weights(product.inputs.slice(1));
  return makers && { makers, base: 0 };
}

function isPlainFloat({ format }: TensorInfo): boolean {
  return isFloatFormat(format) && getFormat(format).blockSize === 1;
}

/**
 * The plan in which everything that scales change is written anew. Vectors become F32: what is divided has no
 * reason to fit the few bits of a BF16.
 */
export function planScaled(
  tensors: readonly PlannedTensor[],
  inputs: readonly ScalableInputs[],
): PlannedTensor[] {
  const changed = new Set(
    inputs.flatMap(({ matrices, makers }) => [...matrices, ...makers]).map(({ tensor }) =>
      tensorKey(tensor)
    ),
  );
  return tensors.map((entry) => {
    if (entry.target || !changed.has(tensorKey(entry.tensor))) return entry;
    const { tensor } = entry;
    const target = getFormat(tensor.shape.length === 1 ? "F32" : tensor.format);
    const count = tensor.shape.reduce((product, size) => product * size, 1);
    return { ...entry, target, format: target, byteLength: formatBytes(target, count) };
  });
}

// Rows of each matrix by which scales are chosen.
const SAMPLE = 32;

/**
 * The scales of inputs, by a sample of the rows of their matrices.
 *
 * @param signal Stops the search.
 */
export async function chooseScales(
  { matrices }: ScalableInputs,
  { statistics: { columns, gram }, signal }: {
    readonly statistics: InputStatistics;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<Float32Array> {
  const samples = [];
  for (const { tensor, target } of matrices) {
    // A float is scaled without loss, and has no say.
    if (!target || target.blockSize === 1) continue;
    samples.push({ format: target, values: await sampleRows(tensor) });
  }
  return (await runSteps(searchScales(samples, gram, columns), signal)).scales;
}

async function sampleRows(tensor: TensorInfo): Promise<Float32Array> {
  const { source, offset, shape } = tensor;
  const [rows, columns] = shape as readonly [number, number];
  const format = getFormat(tensor.format);
  const outliers = await readOutliers(tensor);
  const count = Math.min(rows, SAMPLE);
  const values = new Float32Array(count * columns);
  const bytes = new Uint8Array(formatBytes(format, columns));
  for (let i = 0; i < count; i++) {
    const row = Math.floor(i * rows / count);
    const part = values.subarray(i * columns, (i + 1) * columns);
    await source.readInto(offset + row * bytes.length, bytes);
    format.decode(bytes, part);
    if (outliers) addSparseRows(part, columns, outliers, row);
  }
  return values;
}

/** How scales are applied to a run of a tensor's values. */
export interface Scaling {
  /** Index of the run's first value. */
  readonly start: number;
  /** Values of a row; of a vector 1. */
  readonly columns: number;
  readonly scales: Float32Array;
  /** See {@linkcode ScalableInputs}. */
  readonly base: number;
  /** Columns are multiplied; rows are divided. */
  readonly side: "columns" | "rows";
}

/** Applies scales to a run of a tensor's values. */
export function applyScales(
  values: Float32Array,
  { start, columns, scales, base, side }: Scaling,
): void {
  for (let i = 0; i < values.length; i++) {
    const at = start + i;
    if (side === "columns") values[i]! *= scales[at % columns]!;
    else values[i] = (values[i]! + base) / scales[Math.floor(at / columns)]! - base;
  }
}
