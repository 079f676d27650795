// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, §2.1) in its absorbed form. A token leaves one
// narrow row: the normed latent of rank R and one rotated key of d channels, whatever the number of
// heads. Instead of making keys and values of all heads from every cached latent, the up-projections move to the
// query's side and behind the attention:
//
//   score(h) = q_plain(h) · K_h c + q_rot(h) · k_rot = (K_hᵀ q_plain(h), q_rot(h)) · (c, k_rot)
//   value(h) = V_h Σ p c
//
// so it is attention with one shared head of R + d channels whose values are its first R. A DeepSeek-V3 layer
// keeps 1,088 numbers a token this way instead of 40,960.

import type { Value } from "../../graph/graph.ts";
import { attend, type AttentionOptions, remember } from "./attention.ts";
import { type BlockContext, linear, needed, norm, weight } from "./context.ts";
import { ropeStyle } from "./rope_style.ts";

/** f32[M, hidden] → f32[M, hidden]. */
export function latentAttention(
  context: BlockContext,
  x: Value,
  { layer, kind }: AttentionOptions,
): Value {
  const { builder, spec, params } = context;
  const { heads, hidden, valueDim, ropeDim } = params;
  const { keyRank: rank, plainDim: plain } = needed(context, ["keyRank", "plainDim"]);
  const path = `layers.${layer}.attention`;
  const { bias, outputBias } = spec.attention;

  function project(
    from: Value,
    { role, rows, columns }: {
      readonly role: string;
      readonly rows: number;
      readonly columns: number;
    },
  ): Value {
    return linear(context, from, { role, name: `${path}.${role}`, rows, columns, layer, bias });
  }
  function asHeads(flat: Value, count: number, width: number): Value {
    const shape = ["M", `${count}`, `${width}`];
    return builder.op("reshape", [flat], { shape }, `${flat.name}.heads`)[0]!;
  }
  function rotate(role: string, rows: Value): Value {
    const table = context.ropeTable(kind)!;
    return builder.op("rope", [rows, table], ropeStyle(context), `${path}.${role}_rope`)[0]!;
  }
  function perHead(role: string, rows: Value, shape: readonly number[]): Value {
    const matrices = weight(context, { role, shape, layer });
    return builder.op("expert_matmul", [rows, matrices], {}, `${path}.${role}`)[0]!;
  }
  function join(name: string, parts: readonly Value[]): Value {
    return builder.op("join_columns", parts, {}, `${path}.${name}`)[0]!;
  }

  // The query comes from a latent of its own in large models.
  const queryRank = params.queryRank;
  const source = queryRank === undefined ? x : norm(
    context,
    project(x, { role: "query_down", rows: queryRank, columns: hidden }),
    { role: "query_down_norm", name: `${path}.query_down_norm`, size: queryRank, layer },
  );
  const columns = queryRank ?? hidden;
  const role = queryRank === undefined ? "query" : "query_up";
  const queryPlain = asHeads(
    project(source, { role: `${role}_plain`, rows: heads * plain, columns }),
    heads,
    plain,
  );
  const queryRotated = rotate(
    "query",
    asHeads(
      project(source, { role: `${role}_rotated`, rows: heads * ropeDim, columns }),
      heads,
      ropeDim,
    ),
  );
  const absorbed = perHead("key_up", queryPlain, [heads, rank, plain]); // f32[M, H, R]
  const query = join("query_row", [absorbed, queryRotated]); // f32[M, H, R + d]

  const latent = asHeads(
    norm(context, project(x, { role: "latent", rows: rank, columns: hidden }), {
      role: "latent_norm",
      name: `${path}.latent_norm`,
      size: rank,
      layer,
    }),
    1,
    rank,
  );
  const key = rotate(
    "key",
    asHeads(project(x, { role: "key_rotated", rows: ropeDim, columns: hidden }), 1, ropeDim),
  );
  const keys = remember(context, join("key_row", [latent, key]), { path, name: "keys" });
  const values = remember(context, latent, { path, name: "values" });

  const scale = (params.attentionScale ?? (plain + ropeDim) ** -0.5) *
    (spec.attention.ropeTemperature ? ropeTemperature(params.ropeScaling) ** 2 : 1);
  const mixed = attend(context, { query, keys, values, scale, layer, kind }); // f32[M, H·R]
  const valued = perHead("value_up", asHeads(mixed, heads, rank), [heads, valueDim, rank]);
  const flat = builder.op("reshape", [valued], {
    shape: ["M", `${heads * valueDim}`],
  }, `${path}.mixed`)[0]!;
  return linear(context, flat, {
    role: "attention_output",
    name: `${path}.output`,
    rows: hidden,
    columns: heads * valueDim,
    layer,
    bias: outputBias,
  });
}

/** Growth of scores that a stretched rotation asks for: 1 + 0.1 · weight · ln(factor). */
function ropeTemperature(scaling: Readonly<Record<string, unknown>> | undefined): number {
  const { factor, mscale_all_dim: given, yarn_log_multiplier: multiplier } = scaling ?? {};
  // GGUF files hold a tenth of it.
  const weight = typeof multiplier === "number" ? 10 * multiplier : given;
  if (typeof factor !== "number" || typeof weight !== "number" || factor <= 1) return 1;
  return 0.1 * weight * Math.log(factor) + 1;
}
