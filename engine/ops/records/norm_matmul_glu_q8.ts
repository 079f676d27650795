// norm_matmul_glu_q8: norm_matmul_q8 and its gate in one: all that a feed-forward block does before its last product.
// Made by a pass (engine/plan/passes/fuse_norm.ts).

import { ACTIVATION_NAMES, activations } from "../activations.ts";
import { choice, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { HostTensor } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { gluOfHalves, halfOf } from "./glu_halves.ts";
import { matmulRows } from "./matmul.ts";
import { inferNormMatmul, normalized, normMatmulCases } from "./norm_matmul_q8.ts";
import { inferQ8, quantizeGroups } from "./quantize_q8.ts";

/** (x f32[…, K], gain [K]?, weight [2F, K], bias [2F]?) → q8[…, F]. */
export const normMatmulGluQ8: OpRecord = defineOp({
  name: "norm_matmul_glu_q8",
  summary: "matmul_glu_q8(rms_norm_q8(x, gain), weight, bias)",
  attributes: { epsilon: number(), base: number(0), activation: choice(ACTIVATION_NAMES) },
  infer: (inputs) => [inferQ8(halfOf(inferNormMatmul(inputs)))],
  reference({ inputs: [x, gain, weight, bias], outputs: [out], attributes }) {
    const product: HostTensor = {
      dtype: "f32",
      shape: [...out!.shape.slice(0, -1), weight!.shape[0]!],
      data: new Float32Array(2 * out!.data.length),
    };
    matmulRows(normalized(x!, gain, attributes), weight!, bias, product);
    gluOfHalves(product, out!, activations[attributes.activation]);
    quantizeGroups(out!, out!);
  },
  cases: (random) =>
    normMatmulCases(random).map((opCase, i) => ({
      ...opCase,
      attributes: {
        ...opCase.attributes,
        activation: ACTIVATION_NAMES[i % ACTIVATION_NAMES.length]!,
      },
    })),
  tolerance: {
    ofLargest: 1 / 50,
    reason: "one 8-bit step of the result, and those of activations before the gate",
  },
});
