// Names of tensors by role, from names by Inferflow's standard. Fused ones are cut, and experts stacked. names.json has
// the roles of standard names, but for `w1` and the fused ones, which depend on others; a decoder behind an encoder has
// further ones, and in an encoder alone what is in front of the head is a block.

import { fail, FFN, type Given, type Network, refuse } from "./given.ts";
import tables from "./names.json" with { type: "json" };

type Roles = Readonly<Record<string, string>>;
const ROLES: Roles = tables.roles;
const CROSS_ROLES: Roles = tables.crossRoles;
const ENCODER_ROLES: Roles = tables.encoderRoles;

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
      fail({ file, key: "tensor_name_mapping" }, `"${standard}" is no standard name of a tensor`);
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
      { file, key: "tensor_name_mapping" },
      `fuses tensors of an encoder in ${name}, which is not built`,
    );
  }
  if (isAttention) return fusedAttention(name, { suffix, network, file });
  if (isFused) return fusedGate(name, suffix);
  const third = FFN("w3").replace("dec.", isSource ? "enc." : "dec.");
  return { [(names.has(third) ? "gate" : "up") + suffix]: name };
}

function fusedAttention(
  name: string,
  { suffix, network: { qkv_format: format = 0 }, file }: {
    readonly suffix: string;
    readonly network: Network;
    readonly file: string;
  },
): Record<string, unknown> {
  if (format !== 0 && format !== 1) {
    fail({ file, key: "qkv_format" }, `is ${format}: it is 0 or 1`);
  }
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
