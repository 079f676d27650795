// matmul_add: a product that is added to something, as at the end of every block. Made by a pass
// (engine/plan/passes/fuse_residual.ts).

import { defineOp } from "../define_op.ts";
import type { TensorType } from "../../graph/graph.ts";
import { getElement, type HostTensor, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseRandom, OpCase } from "../op_case.ts";
import { checkInputCount, requireEqual, requireInput } from "../shape_rules.ts";
import { inferMatmul, matmul, matmulRows } from "./matmul.ts";

/** (x f32[…, K], weight [N, K], bias [N]?, residual f32[…, N]) → f32[…, N]. */
export const matmulAdd: OpRecord = defineOp({
  name: "matmul_add",
  summary: "residual + x · weightᵀ + bias with float32 activations",
  attributes: {},
  infer: (inputs) => inferMatmulAdd(inputs, requireInput(inputs, 0, "x", { minRank: 1 })),
  reference: ({ inputs, outputs: [out] }) => addProduct(inputs, out!),
  cases: (random) => withResidual(random, matmul.cases!(random)),
});

/** Shape rule of both forms; `x` is input 0. */
export function inferMatmulAdd(
  inputs: readonly (TensorType | undefined)[],
  x: TensorType,
): TensorType[] {
  checkInputCount(inputs, 4);
  const [type] = inferMatmul(inputs.slice(0, 3), x) as [TensorType];
  const residual = requireInput(inputs, 3, "residual", { rank: type.shape.length });
  type.shape.forEach((dim, i) =>
    requireEqual(dim, residual.shape[i]!, "the dims of the product and the residual")
  );
  return [type];
}

/** The definition, for both forms. */
export function addProduct(
  [x, weight, bias, residual]: readonly (HostTensor | undefined)[],
  out: HostTensor,
): void {
  matmulRows(x!, weight!, bias, out);
  for (let i = 0; i < out.data.length; i++) {
    setElement(out, i, getElement(out, i) + getElement(residual!, i));
  }
}

/** Cases of products, with something to add to them. */
export function withResidual(random: CaseRandom, cases: readonly OpCase[]): OpCase[] {
  return cases.map(({ inputs: [x, weight, bias], ...rest }) => ({
    ...rest,
    inputs: [x, weight, bias, random.input([x!.shape[0]!, weight!.shape[0]!], rest.bindings)],
  }));
}
