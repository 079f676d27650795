// The 35 configurations that Inferflow ships, each by the spec that serves it here: norm, activation, position
// and what is special, as its documentation has them.

import { assertEquals } from "@std/assert";
import type { WeightFile } from "../engine/formats/source.ts";
import { specializeSpec } from "../engine/models/hparams.ts";
import type { ModelSpec } from "../engine/models/spec.ts";
import { chooseSpec } from "../engine/models/specs/mod.ts";
import { type Config, INFERFLOW_CONFIGURATIONS } from "./support/inferflow_configurations.ts";

function summary(spec: ModelSpec, config: Config): string {
  const { norm, attention, embedding, feedForward, layer, head, residual } = spec;
  const activation = feedForward.activation ?? config.hidden_act ?? config.activation_function ??
    spec.defaults?.activation;
  const kind = attention.kinds[attention.pattern.kind]!;
  const place = kind.theta
    ? `rope${attention.ropeStyle === "interleaved" ? " interleaved" : ""}`
    : kind.alibi
    ? "alibi"
    : embedding.positions
    ? "learnt"
    : "sinusoidal";
  const parallel = layer.some(({ from }) => from === "layer");
  const norms = new Set(layer.map(({ before }) => before)).size;
  const sums = layer.some(({ sum }) => sum) && !spec.network;
  return [
    `${norm.kind}/${activation}/${place}`,
    parallel && `parallel, ${norms === 1 ? "one norm" : "two norms"}`,
    sums && "norm of sums",
    feedForward.kind === "mixture" && "mixture",
    feedForward.shared && "shared expert",
    embedding.norm && !spec.network && "embedding normed",
    embedding.scale !== 1 && !spec.network && "embedding scaled",
    residual !== undefined && "branches scaled",
    head?.scale !== undefined && !spec.network && "logits scaled",
    norm.base && `base ${norm.base}`,
    head?.unitRows && "unit rows",
    head?.bias === "present" && !spec.network && "head bias",
  ].filter((part) => part).join(", ");
}

Deno.test("all 35 of Inferflow's configurations have a spec with their atoms", () => {
  assertEquals(INFERFLOW_CONFIGURATIONS.length, 35);
  for (const [name, config, expected] of INFERFLOW_CONFIGURATIONS) {
    const kind = config.model_type ? "safetensors" : "gguf";
    const file: WeightFile = {
      ...{ kind, name, tensors: new Map(), close: () => {} },
      metadata: new Map(Object.entries(config)),
    };
    const { resolved, architecture } = chooseSpec(file);
    const { spec } = specializeSpec(resolved, { file, architecture });
    assertEquals(summary(spec, config), expected, name);
  }
});
