// quantize() and quantError(): number formats for scripts. A model's name in, as load() takes it, and what
// `troodon quantize` and `quant-error` do. The work is in quantize.ts and quant_error.ts, which are imported
// when they are called for.

import { pathOf } from "../io.ts";
import { closing } from "../byte_source.ts";
import type { QuantPolicy } from "../../quant/policy.ts";
import { getPolicy } from "../../quant/policies.ts";
import { checkPolicy } from "./policy_file.ts";
import type { ImportanceMatrix } from "../formats/imatrix.ts";
import type { WeightFile } from "../formats/source.ts";
import { SOURCE_KEYS } from "../formats/hub/source_keys.ts";
import type { SourceOptions } from "../decode/model.ts";
import type { ModelQuantError } from "./quant_error.ts";
import type { QuantizedTensor, QuantizeResult } from "./quantize.ts";
import type { CalibrationRequest } from "./rounding.ts";
import { checkOptionKeys, type OptionKeys } from "../option_keys.ts";

/**
 * Options of {@linkcode quantize}.
 * @category Number formats
 */
export interface QuantizeOptions extends SourceOptions {
  /**
   * A mixture (`q4_k_m`, `8/4/4`), a format for every matrix (`e0m4_g64`), or a policy that says which tensor gets which
   * format.
   */
  readonly format: string | QuantPolicy;
  /** Levels of Inferflow's blocks and of LF8: those of the paper or of its program. Default `paper`. */
  readonly levels?: "paper" | "upstream";
  /** Stores NaN as 0 and infinities as the greatest 16-bit float instead of refusing them. Default false. */
  readonly saturate?: boolean;
  /** Threads that encode: what is written does not depend on them. Default: all processors, 4 at most. */
  readonly threads?: number;
  /** A text to round by (GPTQ, AWQ or importance); without it every value is rounded to the nearest. */
  readonly calibration?: CalibrationRequest;
  /** Path of an importance matrix of llama.cpp (GGUF or .dat), by which scales are chosen; instead of a text. */
  readonly importance?: string;
  /** Called after each tensor. */
  readonly onTensor?: (tensor: QuantizedTensor) => void;
}

/**
 * Options of {@linkcode quantError}.
 * @category Number formats
 */
export interface QuantErrorOptions extends SourceOptions {
  /** A mixture, a format or a policy to try, as for {@linkcode quantize}; or else `other`. */
  readonly format?: string | QuantPolicy;
  /** Another file of the same model, whose weights are compared. */
  readonly other?: string;
  /** As of {@linkcode QuantizeOptions}. */
  readonly levels?: "paper" | "upstream";
  /** Only tensors of such names. */
  readonly only?: RegExp;
  /** Threads that encode. Default: all processors, 4 at most. */
  readonly threads?: number;
}

const QUANTIZE_KEYS: OptionKeys<QuantizeOptions> = {
  format: true,
  levels: true,
  saturate: true,
  threads: true,
  calibration: true,
  importance: true,
  onTensor: true,
  ...SOURCE_KEYS,
};

/**
 * Writes a model anew in another number format, tensor by tensor: memory does not grow with the file. Needs
 * permission to write where `path` lies.
 *
 * @param model As for `load`.
 * @param path Must not exist. A GGUF file becomes GGUF where ggml has the formats (`.gguf`), else safetensors
 * (`.safetensors`); a Hugging Face folder becomes a folder.
 * @throws {RangeError} If the format is unknown, a policy cannot be followed, or the ending is wrong.
 * @throws {SourceError} If the model is not to be had, or something is at `path`.
 * @throws {FormatError} If a file is broken, a weight is not finite, or does not fit the format.
 *
 * @example
 * ```ts
 * import { quantize } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const folder = await Deno.makeTempDir();
 * const { container, tensors } = await quantize(
 *   "model.gguf",
 *   `${folder}/small.gguf`,
 *   { format: "q4_0" },
 * );
 * assertEquals([container, tensors.find(({ name }) => name === "blk.0.ffn_up.weight")!.to], ["gguf", "Q4_0"]);
 * await Deno.remove(folder, { recursive: true });
 * ```
 * @category Number formats
 */
export async function quantize(
  model: string | URL,
  path: string | URL,
  given: QuantizeOptions,
): Promise<QuantizeResult> {
  checkOptionKeys(given, { of: "quantize()", known: QUANTIZE_KEYS });
  given.signal?.throwIfAborted();
  const { format, importance, ...options } = given;
  const policy = policyOf(format);
  const { quantizeModel } = await import("./quantize.ts");
  const matrix = importance === undefined ? undefined : await readImportance(pathOf(importance));
  return await withModel(
    model,
    options,
    (file) =>
      quantizeModel(file, { path: pathOf(path), policy }, {
        ...options,
        ...matrix && { importance: matrix },
      }),
  );
}

const ERROR_KEYS: OptionKeys<QuantErrorOptions> = {
  format: true,
  other: true,
  levels: true,
  only: true,
  threads: true,
  ...SOURCE_KEYS,
};

/**
 * How far a number format is from the weights of a model, or one file of a model from another.
 *
 * @param model As for `load`.
 * @throws {RangeError} Unless either `format` or `other` is given, or if the format is unknown.
 * @throws {SourceError} If a model is not to be had.
 * @throws {FormatError} If a file is broken, a weight is not finite, or a tensor of `other` is missing.
 *
 * @example
 * ```ts
 * import { quantError } from "@troodon/troodon";
 * import { assertLess } from "@std/assert";
 *
 * const model = "model.gguf";
 * const { total: five } = await quantError(model, { format: "q5_0" });
 * const { total: four } = await quantError(model, { format: "q4_0" });
 * assertLess(five.relative, four.relative);
 * ```
 * @category Number formats
 */
export async function quantError(
  model: string | URL,
  given: QuantErrorOptions,
): Promise<ModelQuantError> {
  checkOptionKeys(given, { of: "quantError()", known: ERROR_KEYS });
  const { format, other, ...options } = given;
  if ((format === undefined) === (other === undefined)) {
    throw new RangeError("Cannot compare: give either format or other");
  }
  const policy = format === undefined ? undefined : policyOf(format);
  const { fileError, policyError } = await import("./quant_error.ts");
  return await withModel(model, options, async (file) => {
    if (policy) return await policyError(file, policy, options);
    return await withModel(other!, options, (twin) => fileError(file, twin, options));
  });
}

function policyOf(format: string | QuantPolicy): QuantPolicy {
  return typeof format === "string" ? getPolicy(format) : checkPolicy(format);
}

async function withModel<T>(
  model: string | URL,
  options: SourceOptions,
  work: (file: WeightFile) => Promise<T>,
): Promise<T> {
  const { fetchModel } = await import("../formats/hub/pull.ts");
  const { openModel } = await import("../models/open_model.ts");
  const file = await openModel(await fetchModel(model, options));
  using _file = closing(file);
  return await work(file);
}

/** An importance matrix of llama.cpp. */
export async function readImportance(path: string): Promise<ImportanceMatrix> {
  const { readImatrix } = await import("../formats/imatrix.ts");
  const { openFile } = await import("../io.ts");
  const source = openFile(path);
  using _source = closing(source);
  return await readImatrix(source);
}
