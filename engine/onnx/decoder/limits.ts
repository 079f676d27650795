// How large the steps and sessions of a decoder are: from options, from what the texts beside it state, and
// from what its graphs hold.

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { OnnxFile } from "../file/onnx_file.ts";
import type { ResolvedLimits } from "../../decode/load_options.ts";
import type { LoadOptions } from "../../decode/model.ts";
import type { DecoderConfig } from "./config.ts";
import { candidatesOf, type DecoderPorts } from "./ports.ts";
import type { DerivedStage } from "./stage.ts";
import { heldRows, type StepSizes } from "./step_sizes.ts";

const DEFAULT_CONTEXT = 4096;
const DEFAULT_BATCH = 256;

/** What limits depend on. */
export interface LimitsInput {
  readonly file: OnnxFile;
  readonly options: LoadOptions;
  readonly config: DecoderConfig;
  readonly derived: readonly DerivedStage[];
  readonly padTo: number;
  /** Steps are of one token each. */
  readonly oneToken: boolean;
}

/**
 * Completes the options.
 *
 * @throws {RangeError} If the context is longer than the files allow.
 * @throws {UnsupportedError} If the caches have another number format than asked for.
 */
export function limitsOf(
  { file, options, config, derived, padTo, oneToken }: LimitsInput,
): ResolvedLimits & { readonly trained: number } {
  const tables = derived.flatMap(({ positionLimit }) => positionLimit ?? []);
  const stated = config.context === undefined ? [] : [config.context];
  const trained = Math.min(...tables, ...stated);
  const contextLength = options.contextLength ?? Math.min(trained, DEFAULT_CONTEXT);
  if (contextLength > trained) {
    throw new RangeError(
      `Cannot use contextLength ${contextLength}: the model was made for ${trained}`,
    );
  }
  const batch = oneToken ? 1 : Math.min(options.batch ?? DEFAULT_BATCH, contextLength);
  const cached = derived.filter(({ ports }) => ports.caches.length > 0);
  const sizes = { contextLength, batch };
  for (const { ports, bind } of cached) bind(largestStep(ports, { pick: sizes, padTo }));
  const kvFormat = kvFormatOf(cached[0]!.ports, file, options);
  return {
    precision: options.precision ?? "fast",
    contextLength,
    sessions: options.sessions ?? 1,
    cacheTokens: contextLength * (options.sessions ?? 1),
    batch,
    logitRows: Math.min(options.logitRows ?? 1, batch),
    kvFormat,
    embeddings: false,
    trained: Number.isFinite(trained) ? trained : contextLength,
  };
}

/** The largest step, for which memory is planned. */
export function largestStep(
  ports: DecoderPorts,
  { pick: { contextLength, batch }, padTo }: {
    readonly pick: Pick<ResolvedLimits, "contextLength" | "batch">;
    readonly padTo: number;
  },
): StepSizes {
  return {
    rows: batch,
    length: contextLength,
    held: heldRows(ports, { length: contextLength, padTo }),
  };
}

function kvFormatOf({ caches }: DecoderPorts, { name }: OnnxFile, options: LoadOptions) {
  const { dtype } = caches[0]!;
  const kvFormat = dtype === "f16" ? "F16" : "F32";
  if (options.kvFormat === undefined || options.kvFormat === kvFormat) return kvFormat;
  throw new UnsupportedError(
    `has keys and values of ${kvFormat}, which option kvFormat cannot change`,
    { file: name, remedy: "Leave kvFormat out" },
  );
}

/** What a decoder gives out for a step. */
export interface LogitsFacts {
  readonly vocabulary: number;
  /** Whether any row may have logits, or the last one. */
  readonly rowsOfLogits: "all" | "last";
  /** So many best tokens have logits; undefined: all. */
  readonly best: number | undefined;
}

/** @throws {FormatError} If nothing says how many tokens there are. */
export function logitsOf(
  derived: readonly DerivedStage[],
  config: DecoderConfig,
  { file: { name: file }, oneToken }: Pick<LimitsInput, "file" | "oneToken">,
): LogitsFacts {
  const last = derived.at(-1)!;
  const { result, best } = last.ports;
  const sizes: StepSizes = { rows: oneToken ? 1 : 3, length: 0, held: 0 };
  const shape = last.shapeOf(result ?? best!.ids, sizes);
  const count = shape.reduce((a, b) => a * b, 1);
  if (result !== undefined) {
    const vocabulary = shape.at(-1)!;
    const given = count / vocabulary;
    const rowsOfLogits = last.picksRows || given === sizes.rows ? "all" : "last";
    return { vocabulary, rowsOfLogits, best: undefined };
  }
  const k = candidatesOf(last.ports, shape.at(-1)!)!;
  const rowsOfLogits = count / k === sizes.rows ? "all" : "last";
  if (config.vocabulary === undefined) {
    throw new FormatError("does not say how many tokens there are", {
      file,
      place: "config.json, vocab_size",
      remedy: "Put the model's config.json beside it",
    });
  }
  return { vocabulary: config.vocabulary, rowsOfLogits, best: k };
}
