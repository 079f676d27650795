// Names of tensors by role, from names by Inferflow's standard. Fused ones are cut, and experts stacked.

import { fail, FFN, type Given, type Network, refuse } from "./given.ts";

/** Roles by standard name; `w1` and the fused ones depend on others. */
const ROLES: Readonly<Record<string, string>> = {
  "dec.token_embeddings": "embedding",
  "dec.pos_embeddings": "positions",
  "dec.token_type_embeddings": "token_types",
  "dec.input_norm": "embedding_norm",
  "dec.output_norm": "output_norm",
  "output": "head",
  "input_transform": "embedding_in",
  "output_transform": "embedding_out",
  "dec.{i}.self_attn.pre_norm": "attention_norm",
  "dec.{i}.self_attn.post_norm": "attention_post_norm",
  "dec.{i}.self_attn.wq": "query",
  "dec.{i}.self_attn.wk": "key",
  "dec.{i}.self_attn.wv": "value",
  "dec.{i}.self_attn.wo": "attention_output",
  "dec.{i}.feed_forward.pre_norm": "feed_forward_norm",
  "dec.{i}.feed_forward.post_norm": "feed_forward_post_norm",
  "dec.{i}.feed_forward.w2": "down",
  "dec.{i}.feed_forward.w3": "up",
  "dec.{i}.moe.gate": "router",
  "dec.{i}.moe.expert.{j}.w1": "experts_gate",
  "dec.{i}.moe.expert.{j}.w2": "experts_down",
  "dec.{i}.moe.expert.{j}.w3": "experts_up",
  "dec.{i}.moe.shared_expert.w1": "shared_gate",
  "dec.{i}.moe.shared_expert.w2": "shared_down",
  "dec.{i}.moe.shared_expert.w3": "shared_up",
};

/** Roles of what only a decoder behind an encoder has. */
const CROSS_ROLES: Readonly<Record<string, string>> = {
  "dec.{i}.cross_attn.pre_norm": "cross_norm",
  "dec.{i}.cross_attn.post_norm": "cross_post_norm",
  "dec.{i}.cross_attn.wq": "cross_query",
  "dec.{i}.cross_attn.wk": "cross_key",
  "dec.{i}.cross_attn.wv": "cross_value",
  "dec.{i}.cross_attn.wo": "cross_output",
};

/** Roles that differ in encoders: what is in front of the head is a block there. */
const ENCODER_ROLES: Readonly<Record<string, string>> = {
  "output_transform": "transform",
  "output_transform.post_norm": "transform_norm",
};

/** For `names.tensors` of a spec. @throws {FormatError} For a standard name that there is none. */
export function tensorsOf(given: Given): Record<string, unknown> {
  const { isEncoder, hasSource, names, file } = given;
  const tensors: Record<string, unknown> = {};
  for (const [standard, name] of names) {
    const [, base = "", part] = /^(.*)\.(weight|bias)$/.exec(standard) ?? [];
    const suffix = part === "bias" ? "_bias" : "";
    // The encoder in front of a decoder has the roles of a stack, with its name before them.
    const isSource = hasSource && base.startsWith("enc.");
    const plain = isSource ? base.replace(/^enc\./, "dec.") : base;
    const role = (isEncoder ? ENCODER_ROLES[base] : undefined) ??
      (hasSource ? CROSS_ROLES[base] : undefined) ?? ROLES[plain];
    const outer = isSource ? "encoder_" : "";
    if (role !== undefined) {
      const stacked = standard.includes("{j}");
      tensors[outer + role + suffix] = stacked ? { name, stack: "experts" } : name;
      continue;
    }
    const fused = fusedTensors(plain, { name, suffix, given, isSource });
    if (fused === undefined) {
      fail(file, "tensor_name_mapping", `"${standard}" is no standard name of a tensor`);
    }
    for (const [key, rule] of Object.entries(fused!)) tensors[outer + key] = rule;
  }
  return tensors;
}

interface FusedInput {
  readonly name: string;
  readonly suffix: string;
  readonly given: Given;
  readonly isSource: boolean;
}

/** What a tensor holds that may be several in one; undefined if there is no such name. */
function fusedTensors(
  base: string,
  { name, suffix, given: { network, names, file }, isSource }: FusedInput,
): Record<string, unknown> | undefined {
  const isAttention = base === "dec.{i}.self_attn.qkv";
  const isPair = base === "dec.{i}.feed_forward.w1n3";
  if (!isAttention && !isPair && base !== "dec.{i}.feed_forward.w1") return undefined;
  const isFused = isAttention || isPair || network.activation_function === "glu_silu";
  if (isFused && isSource) {
    refuse(
      file,
      "tensor_name_mapping",
      `fuses tensors of an encoder in ${name}, which is not built`,
    );
  }
  if (isAttention) return fusedAttention(name, suffix, network, file);
  if (isFused) return fusedGate(name, suffix);
  const third = FFN("w3").replace("dec.", isSource ? "enc." : "dec.");
  return { [(names.has(third) ? "gate" : "up") + suffix]: name };
}

function fusedAttention(
  name: string,
  suffix: string,
  { qkv_format: format = 0 }: Network,
  file: string,
): Record<string, unknown> {
  if (format !== 0 && format !== 1) fail(file, "qkv_format", `is ${format}: it is 0 or 1`);
  const [query, groups] = format === 0 ? ["heads // kvHeads", "kvHeads"] : ["heads", "1"];
  const [key, stride] = format === 0
    ? ["headDim", "(heads // kvHeads + 2) * headDim"]
    : ["kvHeads * headDim", "(heads + 2 * kvHeads) * headDim"];
  const width = `${query} * headDim`;
  const rule = (start: string, count: string) => ({ name, rows: { start, count, groups, stride } });
  return {
    [`query${suffix}`]: rule("0", width),
    [`key${suffix}`]: rule(width, key),
    [`value${suffix}`]: rule(`${width} + ${key}`, key),
  };
}

function fusedGate(name: string, suffix: string): Record<string, unknown> {
  const rule = (start: string) => ({
    name,
    rows: { start, count: "feedForward", stride: "2 * feedForward" },
  });
  return { [`gate${suffix}`]: rule("0"), [`up${suffix}`]: rule("feedForward") };
}
