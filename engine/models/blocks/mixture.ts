// A sparse mixture of experts (spec IF-16): a router scores all experts for each row, the best few are
// computed and summed by their weights; a shared expert may see every row. Experts that no row chose are
// never read. M rows, E experts, k of them chosen, F channels inside one.

import type { Value } from "../../graph/graph.ts";
import { sizeOf } from "../sizes.ts";
import { adaptedExperts } from "./adapted.ts";
import { type BlockContext, linear, needed, weight } from "./context.ts";
import { gated, glu } from "./gated.ts";

/** Whether a layer is a mixture: the first ones may be dense, or listed ones, or all but each n-th. */
export function isSparse({ params }: BlockContext, layer: number): boolean {
  const { denseLayers = 0, denseOnly = [], sparsePeriod = 1 } = params;
  return layer >= denseLayers && !denseOnly.includes(layer) && (layer + 1) % sparsePeriod === 0;
}

/** f32[M, hidden] → f32[M, hidden]. */
export function mixture(
  context: BlockContext,
  { x, layer }: { readonly x: Value; readonly layer: number },
): Value {
  const { builder, params, spec } = context;
  const { hidden } = params;
  const { experts, expertsUsed, expertFeedForward: inner } = needed(context, [
    "experts",
    "expertsUsed",
    "expertFeedForward",
  ]);
  const path = `layers.${layer}.feed_forward`;
  const [chosen, weights] = route(context, x, layer);
  context.observe(`layers.${layer}.experts`, chosen);

  function each(
    role: string,
    { rows, outputs, columns }: {
      readonly rows: Value;
      readonly outputs: number;
      readonly columns: number;
    },
  ): Value {
    const shape = [experts, outputs, columns];
    const matrices = weight(context, { role, shape, layer });
    const bias = expertBias(context, { role, shape: [experts, outputs], layer });
    const inputs = bias ? [rows, matrices, chosen, bias] : [rows, matrices, chosen];
    const name = `${path}.${role}`;
    const y = builder.op("expert_matmul", inputs, {}, name)[0]!;
    return adaptedExperts(context, { x: rows, y, chosen }, { role, name, shape, layer });
  }

  const single = builder.op("reshape", [x], { shape: ["M", "1", `${hidden}`] }, `${path}.rows`)[0]!;
  const product = glu(
    context,
    {
      gate: each("experts_gate", { rows: single, outputs: inner, columns: hidden }),
      up: each("experts_up", { rows: single, outputs: inner, columns: hidden }),
      name: `${path}.experts_glu`,
    },
  ); // f32[M, k, F]
  const results = each("experts_down", { rows: product, outputs: hidden, columns: inner }); // f32[M, k, hidden]
  const sum = builder.op("weighted_sum", [results, weights], {}, `${path}.experts`)[0]!;
  const { shared } = spec.feedForward;
  if (!shared || expertsUsed === 0) return sum;
  const width = sizeOf(shared.inner, { params, place: "feedForward.shared.inner" });
  if (width === 0) return sum;
  const common = gated(context, x, { layer, inner: width, prefix: "shared_" });
  const weighed = shared.gated ? weighShared(context, { x, common, layer }) : common;
  return builder.op("binary", [sum, weighed], { kind: "add" }, `${path}.sum`)[0]!;
}

/** The chosen experts i32[M, k] and their weights f32[M, k]. */
function route(context: BlockContext, x: Value, layer: number): [Value, Value] {
  const { builder, params, spec, tensors } = context;
  const { experts, expertsUsed: count } = needed(context, ["experts", "expertsUsed"]);
  const router = spec.feedForward.router!;
  const path = `layers.${layer}.feed_forward`;
  const logits = linear(context, x, {
    role: "router",
    name: `${path}.router`,
    rows: experts,
    columns: params.hidden,
    layer,
    bias: router.bias,
  });
  const correction = router.correction && tensors.has("router_correction", layer)
    ? weight(context, { role: "router_correction", shape: [experts], layer })
    : undefined;
  const groups = params.expertGroups || 1;
  const [chosen, weights] = builder.op(
    "route",
    correction ? [logits, correction] : [logits],
    {
      score: router.score,
      count,
      groups,
      groupCount: groups === 1 ? 1 : params.expertGroupsUsed || groups,
      groupScore: router.groupScore ?? "best",
      normalize: params.expertNormalize ?? false,
      scale: params.expertScale ?? 1,
    },
    `${path}.route`,
  );
  return [chosen!, weights!];
}

/** Biases of all experts as one row: f32[E · outputs]. */
function expertBias(
  context: BlockContext,
  { role, shape, layer }: {
    readonly role: string;
    readonly shape: readonly [number, number];
    readonly layer: number;
  },
): Value | undefined {
  const { builder, spec, tensors } = context;
  const { bias } = spec.feedForward;
  const wanted = bias === "required" || (bias === "present" && tensors.has(`${role}_bias`, layer));
  if (!wanted) return undefined;
  const tensor = tensors.get(`${role}_bias`, shape, layer);
  return builder.weight(tensor.name, { ...tensor, shape: [shape[0] * shape[1]] });
}

function weighShared(
  context: BlockContext,
  { x, common, layer }: { readonly x: Value; readonly common: Value; readonly layer: number },
): Value {
  const { builder, params: { hidden } } = context;
  const path = `layers.${layer}.feed_forward`;
  const role = "shared_weight";
  const name = `${path}.${role}`;
  const logit = linear(context, x, { role, name, rows: 1, columns: hidden, layer }); // f32[M, 1]
  const share = builder.op("unary", [logit], { kind: "sigmoid" }, `${path}.shared_share`)[0]!;
  return builder.op("binary", [common, share], { kind: "mul" }, `${path}.shared`)[0]!;
}
