// How the tensors of a quantised file are rounded: to the nearest level, or by what is known of their inputs
// from a text. Statistics are asked for in the order of writing, so that they need not all be in memory.

import { factorGram, type InputFactor, roundByGptq } from "../../quant/gptq.ts";
import type { EncodeOptions } from "../../quant/mod.ts";
import { createRoundingGrid, hasGrid } from "../../quant/rounding.ts";
import { FormatError } from "../errors.ts";
import type { WeightFile } from "../formats/source.ts";
import { rangeOf } from "./quant_error.ts";
import {
  type CalibrationOptions,
  importanceOf,
  type InputStatistics,
  openCalibration,
} from "./quantize_calibration.ts";
import type { PlannedTensor, QuantizePlan } from "./quantize_plan.ts";

/**
 * `nearest`; `importance`: scales are chosen by how large the inputs of each column are, in the formats whose
 * encoders can; `gptq`: as quant/gptq.ts says, scales by importance too.
 */
export type RoundingMethod = "nearest" | "importance" | "gptq";

/** Methods that need a text. */
export const CALIBRATED_METHODS = ["gptq", "importance"] as const;

/** A text to round by. */
export interface CalibrationRequest extends CalibrationOptions {
  readonly text: string;
  /** Default `gptq`. */
  readonly method?: typeof CALIBRATED_METHODS[number] | undefined;
}

/** Encodes whole rows of a tensor. */
export interface TensorEncoder {
  readonly method: RoundingMethod;
  encode(values: Float32Array, out: Uint8Array): void;
}

/** Ways to round the tensors of a plan. */
export interface Rounding {
  /** What was read for calibration. */
  readonly calibration: { readonly tokens: number; readonly bytes: number } | undefined;
  /** The encoder of a tensor that has a target. Tensors must come in the order of the plan. */
  encoderOf(planned: PlannedTensor): Promise<TensorEncoder>;
}

/** Options of {@linkcode openRounding}; see `QuantizeOptions`. */
export interface RoundingOptions {
  readonly levels?: EncodeOptions["levels"];
  readonly calibration?: CalibrationRequest;
  readonly signal?: AbortSignal;
}

/** Prepares the rounding of a plan's tensors. */
export async function openRounding(
  file: WeightFile,
  { tensors }: QuantizePlan,
  { levels, calibration: request, signal }: RoundingOptions,
): Promise<Rounding> {
  const optionsOf = async ({ tensor, target }: PlannedTensor): Promise<EncodeOptions> => {
    const range = target!.scope === "tensor" ? await rangeOf(tensor) : undefined;
    return { ...levels && { levels }, ...range && { range } };
  };
  const toNearest = async (planned: PlannedTensor): Promise<TensorEncoder> => {
    const options = await optionsOf(planned);
    return {
      method: "nearest",
      encode: (values, out) => planned.target!.encode!(values, out, options),
    };
  };
  if (!request) return { calibration: undefined, encoderOf: toNearest };

  const wanted = tensors.filter(isCalibrated).map(({ tensor }) => tensor);
  const { method = "gptq", text } = request;
  const calibration = await openCalibration(file, text, wanted, {
    ...request,
    ...signal && { signal },
  });
  const factors = createFactorCache(Math.max(calibration.bytes, 2 ** 28));
  return {
    calibration: { tokens: calibration.tokens, bytes: calibration.bytes },
    async encoderOf(planned) {
      const statistics = isCalibrated(planned)
        ? await calibration.statisticsOf(planned.tensor)
        : undefined;
      if (!statistics) return await toNearest(planned);
      const format = planned.target!;
      const importance = importanceOf(statistics);
      const options = { ...await optionsOf(planned), importance };
      if (method === "importance" || !hasGrid(format)) {
        return {
          method: format.usesImportance ? "importance" : "nearest",
          encode: (values, out) => format.encode!(values, out, options),
        };
      }
      const grid = createRoundingGrid(format);
      const factor = guarded(planned, () => factors(statistics, grid.group));
      return { method, encode: (values, out) => roundByGptq(grid, values, factor, out, options) };
    },
  };
}

// Floats of 16 bits and more have nothing to gain.
function isCalibrated({ tensor, target }: PlannedTensor): boolean {
  return target !== undefined && target.blockSize > 1 && tensor.shape.length === 2;
}

function guarded<T>({ tensor: { name, source } }: PlannedTensor, action: () => T): T {
  try {
    return action();
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
): (statistics: InputStatistics, group: number) => InputFactor {
  const known: { gram: Float32Array; group: number; factor: InputFactor }[] = [];
  const bytes = () => known.reduce((sum, { factor }) => sum + factor.unit.byteLength, 0);
  return ({ columns, gram }, group) => {
    const found = known.find((entry) => entry.gram === gram && entry.group === group);
    if (found) return found.factor;
    while (known.length > 0 && bytes() + 8 * columns ** 2 > maxBytes) known.shift();
    const factor = factorGram(gram, { columns, group });
    known.push({ gram, group, factor });
    return factor;
  };
}
