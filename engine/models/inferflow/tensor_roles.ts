// Names of tensors by role, from names by Inferflow's standard. Fused ones are cut, and experts stacked.

import { fail, FFN, type Given, type Network } from "./given.ts";

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

/** Roles that differ in encoders: what is in front of the head is a block there. */
const ENCODER_ROLES: Readonly<Record<string, string>> = {
  "output_transform": "transform",
  "output_transform.post_norm": "transform_norm",
};

/** For `names.tensors` of a spec. @throws {FormatError} For a standard name that there is none. */
export function tensorsOf({ network, isEncoder, names, file }: Given): Record<string, unknown> {
  const tensors: Record<string, unknown> = {};
  for (const [standard, name] of names) {
    const [, base, part] = /^(.*)\.(weight|bias)$/.exec(standard) ?? [];
    const suffix = part === "bias" ? "_bias" : "";
    const role = (isEncoder ? ENCODER_ROLES[base ?? ""] : undefined) ?? ROLES[base ?? ""];
    if (role !== undefined) {
      const stacked = standard.includes("{j}");
      tensors[role + suffix] = stacked ? { name, stack: "experts" } : name;
    } else if (base === "dec.{i}.self_attn.qkv") {
      Object.assign(tensors, fusedAttention(name, suffix, network, file));
    } else if (base === "dec.{i}.feed_forward.w1n3" || base === "dec.{i}.feed_forward.w1") {
      const isFused = base.endsWith("w1n3") || network.activation_function === "glu_silu";
      Object.assign(
        tensors,
        isFused ? fusedGate(name, suffix) : {
          [(names.has(FFN("w3")) ? "gate" : "up") + suffix]: name,
        },
      );
    } else {
      fail(file, "tensor_name_mapping", `"${standard}" is no standard name of a tensor`);
    }
  }
  return tensors;
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
