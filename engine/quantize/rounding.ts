// How the tensors of a quantised file are rounded: to the nearest level, or by what is known of their inputs
// from a text. Statistics are asked for in the order of writing, so that they need not all be in memory.

import { factorGram, type InputFactor } from "../../quant/gptq.ts";
import { findBadImportance } from "../../quant/importance.ts";
import type { EncodeOptions, NumberFormat } from "../../quant/mod.ts";
import { hasGrid } from "../../quant/rounding.ts";
import { runSteps } from "../pause.ts";
import { FormatError } from "../errors.ts";
import type { ImportanceMatrix } from "../formats/imatrix.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import type { Graph } from "../graph/graph.ts";
import type { EncodeJob } from "./encode_run.ts";
import { rangeOf } from "./quant_error.ts";
import {
  type Calibration,
  type CalibrationOptions,
  importanceOf,
  type InputStatistics,
  openCalibration,
} from "./calibration.ts";
import type { PlannedTensor, QuantizePlan } from "./plan.ts";
import {
  applyScales,
  chooseScales,
  findScalableInputs,
  planScaled,
  type ScalableInputs,
  type Scaling,
} from "./scaling.ts";

/**
 * `nearest`; `importance`: scales are chosen by how large the inputs of each column are, in the formats whose
 * encoders can; `gptq`: as quant/gptq.ts says, scales by importance too; `awq`: to nearest, after columns
 * were multiplied as quant/awq.ts says.
 * @category Number formats
 */
export type RoundingMethod = "nearest" | "importance" | "gptq" | "awq";

/**
 * A text to round by.
 * @category Number formats
 */
export interface CalibrationRequest extends CalibrationOptions {
  /** The text itself. */
  readonly text: string;
  /** What is made of it. Default `gptq`. */
  readonly method?: "gptq" | "awq" | "importance" | undefined;
}

/** How a tensor is encoded. */
export interface TensorEncoder {
  readonly method: RoundingMethod;
  /** Changes a run of values, the first of which has the index `start`, to what is to be stored. */
  change?(start: number, values: Float32Array): void;
  /** What is then done with runs of whole rows, on any thread. */
  readonly job: EncodeJob;
}

/** Ways to round the tensors of a plan. */
export interface Rounding {
  /** The plan's, and what has to be written anew beside them. */
  readonly tensors: readonly PlannedTensor[];
  /** What was read for calibration. */
  readonly calibration: { readonly tokens: number; readonly bytes: number } | undefined;
  /** The encoder of a tensor that has a target. They must be asked for in the order of `tensors`. */
  encoderOf(planned: PlannedTensor): Promise<TensorEncoder>;
}

/** Options of {@linkcode openRounding}; see `QuantizeModelOptions`. */
export interface RoundingOptions {
  readonly levels?: EncodeOptions["levels"];
  readonly calibration?: CalibrationRequest;
  readonly importance?: ImportanceMatrix;
  readonly signal?: AbortSignal;
}

/** Prepares the rounding of a plan's tensors. */
export async function openRounding(
  file: WeightFile,
  { tensors }: QuantizePlan,
  { levels, calibration: request, importance: given, signal }: RoundingOptions,
): Promise<Rounding> {
  const optionsOf = async ({ tensor, target }: PlannedTensor): Promise<EncodeOptions> => {
    const range = target!.scope === "tensor" ? await rangeOf(tensor, signal) : undefined;
    return { ...levels && { levels }, ...range && { range } };
  };
  const toNearest: Rounding["encoderOf"] = async (planned) => {
    const options = await optionsOf(planned);
    return { method: "nearest", job: { format: planned.target!.name, options } };
  };
  const byImportance = async (
    planned: PlannedTensor,
    importance: Float32Array,
  ): Promise<TensorEncoder> => {
    const format = planned.target!;
    const options = { ...await optionsOf(planned), importance };
    return {
      method: format.usesImportance ? "importance" : "nearest",
      job: { format: format.name, options },
    };
  };
  if (given) refuseIdle(tensors, "an importance matrix", ({ usesImportance }) => !!usesImportance);
  if (!request) {
    return {
      tensors,
      calibration: undefined,
      async encoderOf(planned) {
        const importance = isCalibrated(planned) ? given?.get(planned.tensor.name) : undefined;
        if (!importance) return await toNearest(planned);
        checkImportance(planned, importance);
        return await byImportance(planned, importance);
      },
    };
  }
  const open = (choose: (graph: Graph) => readonly TensorInfo[]) =>
    openCalibration(file, { text: request.text, choose }, { ...request, ...signal && { signal } });
  if (request.method === "awq") {
    return await scaledRounding(tensors, toNearest, { open, ...signal && { signal } });
  }

  const byText = (format: NumberFormat) =>
    !!format.usesImportance || (request.method !== "importance" && hasGrid(format));
  refuseIdle(tensors, `a text by ${request.method ?? "gptq"}`, byText);
  const calibration = await open(() => tensors.filter(isCalibrated).map(({ tensor }) => tensor));
  const factors = createFactorCache(Math.max(calibration.bytes, 2 ** 28), signal);
  return {
    tensors,
    calibration,
    async encoderOf(planned) {
      const statistics = isCalibrated(planned)
        ? await calibration.statisticsOf(planned.tensor)
        : undefined;
      if (!statistics) return await toNearest(planned);
      const format = planned.target!;
      const importance = importanceOf(statistics);
      if (request.method === "importance" || !hasGrid(format)) {
        return await byImportance(planned, importance);
      }
      const options = { ...await optionsOf(planned), importance };
      const factor = await guarded(planned, () => factors(statistics, format.blockSize));
      return { method: "gptq", job: { format: format.name, options, factor } };
    },
  };
}

/** Rounds to nearest what scales were applied to. */
async function scaledRounding(
  planned: readonly PlannedTensor[],
  toNearest: Rounding["encoderOf"],
  { open, signal }: {
    readonly open: (choose: (graph: Graph) => readonly TensorInfo[]) => Promise<Calibration>;
    readonly signal?: AbortSignal;
  },
): Promise<Rounding> {
  let inputs: ScalableInputs[] = [];
  const has = (list: readonly PlannedTensor[], { tensor }: PlannedTensor) =>
    list.some((entry) => entry.tensor === tensor);
  const concerning = (entry: PlannedTensor) =>
    inputs.filter(({ matrices, makers }) => has(matrices, entry) || has(makers, entry));
  const asked = ({ matrices }: ScalableInputs) => matrices[0]!.tensor;
  const calibration = await open((graph) => {
    inputs = findScalableInputs(graph, planned);
    return planned.flatMap((entry) => concerning(entry).map(asked));
  });
  const known = new Map<ScalableInputs, Float32Array>();
  async function scalesOf(shared: ScalableInputs): Promise<Float32Array> {
    const scales = known.get(shared) ??
      await chooseScales(shared, {
        statistics: (await calibration.statisticsOf(asked(shared)))!,
        signal,
      });
    known.set(shared, scales);
    return scales;
  }
  return {
    tensors: planScaled(planned, inputs),
    calibration,
    async encoderOf(entry) {
      const encoder = await toNearest(entry);
      const changes: Omit<Scaling, "start">[] = [];
      for (const shared of concerning(entry)) {
        const side = has(shared.matrices, entry) ? "columns" as const : "rows" as const;
        const { shape } = entry.tensor;
        const columns = shape.length === 1 ? 1 : shape[1]!;
        changes.push({ scales: await scalesOf(shared), base: shared.base, side, columns });
      }
      if (changes.length === 0) return encoder;
      return {
        ...encoder,
        method: "awq",
        change: (start, values) =>
          changes.forEach((change) => applyScales(values, { start, ...change })),
      };
    },
  };
}

/** Refuses what would be read for nothing. */
function refuseIdle(
  tensors: readonly PlannedTensor[],
  source: string,
  isGuided: (format: NumberFormat) => boolean,
): void {
  if (tensors.some((entry) => isCalibrated(entry) && isGuided(entry.target!))) return;
  const names = [...new Set(tensors.map(({ format }) => format.name))].join(", ");
  throw new RangeError(
    `Cannot round by ${source}: no matrix gets a format whose codes it could guide, only ${names}`,
  );
}

// Floats of 16 bits and more have nothing to gain.
function isCalibrated({ tensor, target }: PlannedTensor): boolean {
  return target !== undefined && target.blockSize > 1 && tensor.shape.length === 2;
}

function checkImportance(
  { tensor: { name, shape, source } }: PlannedTensor,
  importance: Float32Array,
) {
  const columns = shape.at(-1), bad = findBadImportance(importance);
  if (importance.length === columns && bad < 0) return;
  const message = importance.length !== columns
    ? `has ${columns} columns, and the importance matrix has ${importance.length}`
    : `cannot be rounded by an importance of ${importance[bad]}, that of column ${bad}`;
  throw new FormatError(message, {
    file: source.name,
    place: `tensor ${JSON.stringify(name)}`,
    remedy: "Give the importance matrix of this model",
  });
}

async function guarded<T>(
  { tensor: { name, source } }: PlannedTensor,
  action: () => Promise<T>,
): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new FormatError(error.message, {
      file: source.name,
      place: `tensor ${JSON.stringify(name)}`,
      remedy: "Quantise it without a text, or look for weights that make activations overflow",
      cause: error,
    });
  }
}

/** Factors of the last inputs, since matrices that read the same value are seldom far apart in a file. */
function createFactorCache(
  maxBytes: number,
  signal: AbortSignal | undefined,
): (statistics: InputStatistics, group: number) => Promise<InputFactor> {
  const known: { gram: Float32Array; group: number; factor: InputFactor }[] = [];
  const bytes = () => known.reduce((sum, { factor }) => sum + factor.unit.byteLength, 0);
  return async ({ columns, gram }, group) => {
    const found = known.find((entry) => entry.gram === gram && entry.group === group);
    if (found) return found.factor;
    while (known.length > 0 && bytes() + 8 * columns ** 2 > maxBytes) known.shift();
    const factor = await runSteps(factorGram(gram, { columns, group }), signal);
    known.push({ gram, group, factor });
    return factor;
  };
}
