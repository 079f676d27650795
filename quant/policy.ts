// Which tensor gets which number format: one object, pure data, shared by the tool that quantises and by
// whatever reports sizes. Rules are tried in order; the first that fits a tensor gives its format. Norms,
// biases, routers and tables stay as they are unless a rule names their role.
// A format whose blocks do not fill a row gives way to a stand-in, at last to F16; nobody is left to guess:
// the choice says so.

import type { NumberFormat } from "./format.ts";
import { findFormat, hasEncoder } from "./mod.ts";
import { layerOf, roleOf, type TensorRole } from "./tensor_roles.ts";

/**
 * Layers that a rule is for; several parts must all hold.
 * @category Number formats
 */
export interface LayerRange {
  /** The first so many. */
  readonly first?: number;
  /** The first `layers / share`, rounded down. */
  readonly firstShare?: number;
  /** Those that llama.cpp's mixes favour: the first and last eighth, and every third between. */
  readonly favoured?: true;
}

/**
 * One row of a policy.
 * @category Number formats
 */
export interface PolicyRule {
  /** Roles; default any that is a matrix to multiply by. */
  readonly roles?: readonly TensorRole[];
  /** Regular expression that the name must contain. */
  readonly pattern?: string;
  /** Layers; tensors outside any layer do not match. */
  readonly layers?: LayerRange;
  /** Only models with at least so many query heads a key head. */
  readonly queryGroup?: number;
  /** Only models with so many experts. */
  readonly experts?: number;
  /** Only tensors of fewer values than this. */
  readonly below?: number;
  /** Name of a format in either case, or `keep`. */
  readonly format: string;
  /** Share of outliers, instead of the policy's. */
  readonly outliers?: number;
}

/**
 * A policy.
 * @category Number formats
 */
export interface QuantPolicy {
  /** For messages and files. */
  readonly name: string;
  /** Tried in order. */
  readonly rules: readonly PolicyRule[];
  /** Format of matrices that no rule fits. */
  readonly format: string;
  /**
   * Share of weights, 0 to 0.05, that are kept apart in float32, those of greatest magnitude; of matrices to
   * multiply by only. Default 0.
   */
  readonly outliers?: number;
  /** Number that GGUF gives the mixture (general.file_type), where it has one. */
  readonly ggufFileType?: number;
}

/** What a policy may ask about a tensor. */
export interface TensorFacts {
  readonly name: string;
  /** Outermost dimension first. */
  readonly shape: readonly number[];
}

/** What a policy may ask about a model. */
export interface ModelFacts {
  readonly layers: number;
  /** Query heads a key head; default 1. */
  readonly queryGroup?: number;
  /** Experts; default 0. */
  readonly experts?: number;
  /** There is no output matrix of its own: the embedding is one too. */
  readonly tiedOutput?: boolean;
}

/** What a policy says of a tensor. */
export interface FormatChoice {
  /** The format to store it in; undefined: as it is. */
  readonly format: NumberFormat | undefined;
  /** The format that was wanted, where its blocks do not fill the rows. */
  readonly insteadOf?: string;
  /** How many weights are kept apart. */
  readonly outliers: number;
  /** Number of the rule that decides, from 1; 0 where none does. */
  readonly rule: number;
  /** Why, for people: `kept`, `rule 3`, or `no rule` where the policy's own format is taken. */
  readonly reason: string;
}

// Roles that stay as they are.
const KEPT: readonly TensorRole[] = ["norm", "bias", "router", "table"];

// What stands in for a format whose blocks do not fill a row, as in llama.cpp.
const STAND_INS: Readonly<Record<string, string>> = {
  Q2_K: "IQ4_NL",
  Q3_K: "IQ4_NL",
  IQ4_XS: "IQ4_NL",
  Q4_K: "Q5_0",
  Q5_K: "Q5_1",
  Q6_K: "Q8_0",
};

/**
 * The format of a tensor.
 *
 * @throws {RangeError} If the policy names a format that is unknown or cannot be encoded.
 */
export function chooseFormat(
  policy: QuantPolicy,
  tensor: TensorFacts,
  model: ModelFacts,
): FormatChoice {
  const { name, shape } = tensor;
  const named = roleOf(name, shape);
  const role = roleIn(policy, tensor, model);
  const rule = policy.rules.find((candidate) => ruleFits(candidate, policy, tensor, model));
  const number = rule ? policy.rules.indexOf(rule) + 1 : 0;
  const isKept = !rule && (KEPT.includes(role) || shape.length < 2);
  const wanted = rule?.format ?? policy.format;
  const part = role === named ? "" : `, as ${role}`;
  const why = isKept ? "kept" : rule ? `rule ${number}` : "no rule";
  const reason = why + part;
  const facts = { rule: number, reason };
  if (isKept || wanted === "keep") return { format: undefined, outliers: 0, ...facts };
  const choice = standIn(wanted, shape.at(-1) ?? 1);
  const share = rule?.outliers ?? policy.outliers ?? 0;
  // A table is looked up, a stack of matrices has no sparse product, and a plain float loses next to nothing.
  const isMatrix = named !== "embedding" && !KEPT.includes(role) && shape.length === 2 &&
    choice.format!.blockSize > 1;
  return { ...choice, outliers: isMatrix ? Math.floor(share * countOf(tensor)) : 0, ...facts };
}

/** The role that rules go by: an embedding that is the output matrix too is that, if a rule speaks of it. */
function roleIn(policy: QuantPolicy, { name, shape }: TensorFacts, model: ModelFacts): TensorRole {
  const role = roleOf(name, shape);
  return role === "embedding" && model.tiedOutput && hasRule(policy, "output") ? "output" : role;
}

function hasRule({ rules }: QuantPolicy, role: TensorRole): boolean {
  return rules.some(({ roles }) => roles?.includes(role));
}

/** Whether a rule of a policy fits a tensor, whatever rules stand before it. */
export function ruleFits(
  rule: PolicyRule,
  policy: QuantPolicy,
  tensor: TensorFacts,
  model: ModelFacts,
): boolean {
  const role = roleIn(policy, tensor, model);
  const { roles, pattern, layers, queryGroup, experts, below } = rule;
  const { name, shape } = tensor;
  if (roles ? !roles.includes(role) : KEPT.includes(role) || shape.length < 2) return false;
  if (pattern !== undefined && !new RegExp(pattern).test(name)) return false;
  if (layers && !isInRange(layers, layerOf(name), model.layers)) return false;
  if (queryGroup !== undefined && (model.queryGroup ?? 1) < queryGroup) return false;
  if (experts !== undefined && model.experts !== experts) return false;
  return below === undefined || countOf(tensor) < below;
}

function isInRange(
  { first, firstShare, favoured }: LayerRange,
  layer: number | undefined,
  layers: number,
): boolean {
  if (layer === undefined) return false;
  if (first !== undefined && layer >= first) return false;
  if (firstShare !== undefined && layer >= Math.floor(layers / firstShare)) return false;
  const eighth = Math.floor(layers / 8);
  const isFavoured = layer < eighth || layer >= Math.floor(7 * layers / 8) ||
    (layer - eighth) % 3 === 2;
  return !favoured || isFavoured;
}

function countOf({ shape }: TensorFacts): number {
  return shape.reduce((product, size) => product * size, 1);
}

function standIn(wanted: string, columns: number): Pick<FormatChoice, "format" | "insteadOf"> {
  const fitting = (name: string): NumberFormat | undefined => {
    try {
      const format = findFormat(name, columns);
      return columns % format.blockSize === 0 ? format : undefined;
    } catch (error) {
      // A row format that cannot have such rows; unknown names are found before anything is stored.
      if (error instanceof RangeError && !error.message.includes("known are")) return undefined;
      throw error;
    }
  };
  if (!hasEncoder(wanted)) {
    throw new RangeError(
      `Cannot store weights as ${wanted.toUpperCase()}: it has no public encoder`,
    );
  }
  const format = fitting(wanted);
  if (format) return { format };
  const other = STAND_INS[wanted.toUpperCase()];
  const instead = (other !== undefined && fitting(other)) || findFormat("F16", columns);
  return { format: instead, insteadOf: wanted.toUpperCase() };
}
