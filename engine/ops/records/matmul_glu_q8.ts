// matmul_glu_q8: the joined product before a gate, the gate, and the quantisation of its result in one, so that the widest
// rows of a layer are never stored. Made by a pass (engine/plan/passes/fuse_gated.ts).

import { getFormat } from "../../../quant/mod.ts";
import { ACTIVATION_NAMES, activations } from "../activations.ts";
import { choice } from "../attributes.ts";
import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import type { CaseInput, CaseRandom, OpCase } from "../op_case.ts";
import { requireInput } from "../shape_rules.ts";
import { gluOfHalves, halfOf } from "./glu_halves.ts";
import { inferMatmul, matmulRows } from "./matmul.ts";
import { inferQ8, quantizeGroups } from "./quantize_q8.ts";

/** (x q8[…, K], weight [2F, K], bias [2F]?) → q8[…, F]; the weight has the rows of the gate, then the others. */
export const matmulGluQ8: OpRecord = defineOp({
  name: "matmul_glu_q8",
  summary: "glu_halves_q8(matmul_q8(x, weight, bias))",
  attributes: { activation: choice(ACTIVATION_NAMES) },
  infer(inputs) {
    const x = requireInput(inputs, 0, "x", { dtype: "q8", minRank: 1 });
    return [inferQ8(halfOf(inferMatmul(inputs, x)))];
  },
  reference({ inputs: [x, weight, bias], outputs: [out], attributes: { activation } }) {
    const shape = [...out!.shape.slice(0, -1), 2 * out!.shape.at(-1)!];
    const product = {
      dtype: "f32" as const,
      shape,
      data: new Float32Array(2 * out!.data.length),
    };
    matmulRows(x!, weight!, bias, product);
    gluOfHalves(product, out!, activations[activation]);
    quantizeGroups(out!, out!);
  },
  cases: gluCases,
  tolerance: {
    ofLargest: 1 / 60,
    reason: "one 8-bit step of the result, and one of an activation before the gate",
  },
});

const FORMATS = ["Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K"];

function gluCases(random: CaseRandom): OpCase[] {
  return FORMATS.flatMap((format, f) =>
    [[0, 32], [1, 32], [1, 96], [3, 64], [6, 32], [13, 64]].map(([rows, width], i) => {
      const columns = getFormat(format).blockSize * (1 + i % 2);
      const x = random.input([ROWS, columns], { M: rows! });
      return {
        name: `${format}, [${rows}, ${columns}] · [2 · ${width}, ${columns}]ᵀ`,
        inputs: [
          { ...x, role: "quantized" } as CaseInput,
          random.weight(format, [2 * width!, columns]),
          i % 2 ? random.weight("F32", [2 * width!]) : undefined,
        ],
        attributes: { activation: ACTIVATION_NAMES[(f + i) % ACTIVATION_NAMES.length]! },
        bindings: { M: rows! },
      };
    })
  );
}
