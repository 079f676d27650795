// glu: activation(gate) · up, the middle of a gated feed-forward block.

import { ACTIVATION_NAMES, type ActivationName, activations } from "../activations.ts";
import { choice } from "../attributes.ts";
import { elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { TensorType } from "../../graph/graph.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import { checkInputCount, requireEqual, requireInput } from "../shape_rules.ts";

/** (gate f32[…], up f32[…]) → f32[…]. */
export const glu: OpRecord = defineOp({
  name: "glu",
  summary: "activation(gate) · up",
  attributes: { activation: choice(ACTIVATION_NAMES) },
  byRows: true,
  infer(inputs) {
    return [{ dtype: "f32", shape: gluInput(inputs).shape }];
  },
  reference({ inputs: [gate, up], outputs: [out], attributes: { activation } }) {
    gluElements(gate!, up!, out!, activation);
  },
  cases: (random) =>
    elementwiseCases(random, 2, ACTIVATION_NAMES.map((activation) => ({ activation }))),
});

/** Checks the inputs of glu and of its fused form; returns the gate. */
export function gluInput(inputs: readonly (TensorType | undefined)[]): TensorType {
  checkInputCount(inputs, 2);
  const gate = requireInput(inputs, 0, "gate");
  const up = requireInput(inputs, 1, "up", { rank: gate.shape.length });
  gate.shape.forEach((dim, i) => requireEqual(dim, up.shape[i]!, "the dims of gate and up"));
  return gate;
}

/** The definition, for the fused form too. */
export function gluElements(
  gate: HostTensor,
  up: HostTensor,
  out: HostTensor,
  activation: ActivationName,
): void {
  const act = activations[activation];
  for (let i = 0; i < gate.data.length; i++) {
    setElement(out, i, act(getElement(gate, i)) * getElement(up, i));
  }
}
