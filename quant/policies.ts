// The policies that have names: llama.cpp's usual mixtures, LlamaF's W8A8, ML Drift's q8 and 8/4/4,
// Inferflow's rule of a threshold, and for any other format the one that gives it to every matrix.
// llama.cpp's rows are those of its quantiser for models other than Falcon, without an importance matrix.

import type { PolicyRule, QuantPolicy } from "./policy.ts";
import { encodedNames, hasEncoder, isFormatName } from "./mod.ts";

const output: PolicyRule = { roles: ["output"], format: "Q6_K" };
const favoured = { layers: { favoured: true } } as const;
const eightExperts: readonly PolicyRule[] = [
  { roles: ["attention_k", "attention_v"], experts: 8, format: "Q8_0" },
  { roles: ["attention_output"], experts: 8, format: "Q5_K" },
];

function mixture(
  name: string,
  format: string,
  ggufFileType: number,
  rules: readonly PolicyRule[] = [],
): QuantPolicy {
  return { name, format, rules: [output, ...rules], ggufFileType };
}

const mixtures: readonly QuantPolicy[] = [
  { name: "F16", format: "F16", rules: [], ggufFileType: 1 },
  { name: "BF16", format: "BF16", rules: [], ggufFileType: 32 },
  { name: "F32", format: "F32", rules: [], ggufFileType: 0 },
  mixture("Q4_0", "Q4_0", 2),
  mixture("Q4_1", "Q4_1", 3),
  { name: "Q8_0", format: "Q8_0", rules: [], ggufFileType: 7 },
  mixture("Q5_0", "Q5_0", 8),
  mixture("Q5_1", "Q5_1", 9),
  mixture("Q2_K", "Q2_K", 10, [
    ...eightExperts,
    { roles: ["attention_v"], queryGroup: 4, format: "Q4_K" },
    { roles: ["attention_v", "attention_output", "ffn_down"], format: "Q3_K" },
  ]),
  mixture("Q3_K_S", "Q3_K", 11, eightExperts),
  mixture("Q3_K_M", "Q3_K", 12, [
    ...eightExperts,
    { roles: ["attention_v"], layers: { first: 2 }, format: "Q5_K" },
    { roles: ["ffn_down"], layers: { firstShare: 16 }, format: "Q5_K" },
    { roles: ["attention_v", "ffn_down", "attention_output", "attention_qkv"], format: "Q4_K" },
  ]),
  mixture("Q3_K_L", "Q3_K", 13, [
    ...eightExperts,
    { roles: ["attention_v", "ffn_down", "attention_output"], format: "Q5_K" },
    { roles: ["attention_qkv"], format: "Q4_K" },
  ]),
  mixture("Q4_K_S", "Q4_K", 14, [
    ...eightExperts,
    { roles: ["attention_v"], layers: { first: 4 }, format: "Q5_K" },
    { roles: ["ffn_down"], layers: { firstShare: 8 }, format: "Q5_K" },
  ]),
  mixture("Q4_K_M", "Q4_K", 15, [
    ...eightExperts,
    { roles: ["attention_v", "ffn_down"], ...favoured, format: "Q6_K" },
    { roles: ["attention_qkv"], format: "Q5_K" },
  ]),
  mixture("Q5_K_S", "Q5_K", 16),
  mixture("Q5_K_M", "Q5_K", 17, [
    { roles: ["attention_k", "attention_v"], experts: 8, format: "Q8_0" },
    { roles: ["attention_v", "ffn_down"], ...favoured, format: "Q6_K" },
    { roles: ["attention_qkv"], format: "Q6_K" },
  ]),
  mixture("Q6_K", "Q6_K", 18),
  mixture("IQ4_NL", "IQ4_NL", 25, [{ roles: ["attention_v"], queryGroup: 4, format: "Q5_K" }]),
  mixture("IQ4_XS", "IQ4_XS", 30, [{ roles: ["attention_v"], queryGroup: 4, format: "Q5_K" }]),
];

// LlamaF: every matrix, the embedding too, in groups of 256; the norms in float.
const lf8: QuantPolicy = { name: "LF8", format: "LF8", rules: [] };

// ML Drift: per output channel.
const q8: QuantPolicy = { name: "Q8", format: "I8PC", rules: [] };
const mixed844: QuantPolicy = {
  name: "8/4/4",
  format: "I8PC",
  rules: [{ roles: ["embedding", "output", "ffn_gate", "ffn_up", "ffn_down"], format: "I4PC" }],
};

const named: ReadonlyMap<string, QuantPolicy> = new Map(
  [...mixtures, lf8, q8, mixed844].map((policy) => [policy.name, policy]),
);

/**
 * Names of the policies that are more than one format for everything.
 * @category Number formats
 */
export const policyNames: readonly string[] = [...named.keys()];

/**
 * The policy of a name in either case: a named one (`q4_k_m`, `8/4/4`, and `q8` is ML Drift's), or any
 * format, which then goes to every matrix.
 *
 * @throws {RangeError} If there is none, or nothing can be stored in it; the message lists those there are.
 *
 * @example
 * ```ts
 * import { getPolicy, policyNames } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(policyNames.includes("Q4_K_M"), true);
 * assertEquals(getPolicy("q4_k_m").format, "Q4_K");
 * ```
 * @category Number formats
 */
export function getPolicy(name: string): QuantPolicy {
  const upper = name.toUpperCase();
  const policy = named.get(upper) ?? named.get(`${upper}_M`);
  if (policy) return policy;
  const names = [...new Set([...policyNames, ...encodedNames()])];
  const known = names.join(", ");
  if (!isFormatName(name)) {
    const plain = (text: string) => text.replace(/[^A-Z0-9]/g, "");
    const meant = names.find((other) => plain(other) === plain(upper)) ??
      names.find((other) => plain(other) === `${plain(upper)}M`);
    const guess = meant === undefined ? "" : `did you mean ${meant}? `;
    throw new RangeError(`Cannot quantise to "${name}": ${guess}known are ${known}`);
  }
  if (hasEncoder(name)) return { name: upper, format: upper, rules: [] };
  throw new RangeError(
    `Cannot quantise to "${name}": it has no public encoder, those that have one are ${known}`,
  );
}

/** Whether a policy is one of {@linkcode policyNames}, with its rules as they are. */
export function isNamedPolicy({ name, rules }: QuantPolicy): boolean {
  return named.get(name)?.rules === rules;
}

/** Names that Inferflow's configurations have for tensors of a layer. */
const INFERFLOW_ROLES = {
  attn_wq: "attention_q",
  attn_wk: "attention_k",
  attn_wv: "attention_v",
  attn_wo: "attention_output",
  ffn_w1: "ffn_gate",
  ffn_w2: "ffn_down",
  ffn_w3: "ffn_up",
} as const;

/** Names of tensors that may have formats of their own there. */
export const INFERFLOW_TENSORS: readonly string[] = Object.keys(INFERFLOW_ROLES);

/** Settings of Inferflow's configuration that choose formats. */
export interface InferflowWeights {
  /** `device_weight_data_type`, or `keep`. */
  readonly format: string;
  /** `device_weight_data_type.attn_wq` and so on. */
  readonly tensors?: Readonly<Partial<Record<keyof typeof INFERFLOW_ROLES, string>>>;
  /** `tensor_quant_threshold`, in values: matrices of fewer stay F16. Default 4,000,000. */
  readonly threshold?: number;
  /** `delta_tensor_ratio`. Default 0. */
  readonly outliers?: number;
}

/**
 * Inferflow's policy: embeddings, norms and biases in F16, and whatever is below the threshold. Where most are kept,
 * that goes for the tensors that have formats of their own only.
 */
export function inferflowPolicy(
  { format, tensors = {}, threshold = 4_000_000, outliers = 0 }: InferflowWeights,
): QuantPolicy {
  const own = Object.entries(INFERFLOW_ROLES).flatMap(([name, role]): PolicyRule[] => {
    const chosen = tensors[name as keyof typeof INFERFLOW_ROLES];
    return chosen === undefined ? [] : [{ roles: [role], format: chosen }];
  });
  const small: PolicyRule = format === "keep"
    ? { roles: own.flatMap(({ roles = [] }) => roles), below: threshold, format: "F16" }
    : { below: threshold, format: "F16" };
  const vectors: PolicyRule = { roles: ["embedding", "norm", "bias"], format: "F16" };
  const rules = [...format === "keep" ? [] : [vectors], small, ...own];
  return { name: `Inferflow ${format}`, format, rules, outliers };
}
