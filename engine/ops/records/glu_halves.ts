// glu_halves: glu of a row whose first half is the gate and whose second half is what it gates, as a joined product
// gives them. Made by a pass (engine/plan/passes/fuse_gated.ts).

import { ACTIVATION_NAMES, activations } from "../activations.ts";
import { choice } from "../attributes.ts";
import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { exactDiv } from "../../graph/dim/mod.ts";
import type { TensorType } from "../../graph/graph.ts";
import { getElement, type HostTensor, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseRandom, OpCase } from "../op_case.ts";
import { checkInputCount, lastDim, requireInput } from "../shape_rules.ts";

/** (x f32[…, 2F]) → f32[…, F]. */
export const gluHalves: OpRecord = defineOp({
  name: "glu_halves",
  summary: "activation(first half) · second half of each row",
  attributes: { activation: choice(ACTIVATION_NAMES) },
  infer: (inputs) => [halfOf(inputs)],
  reference({ inputs: [x], outputs: [out], attributes: { activation } }) {
    gluOfHalves(x!, out!, activations[activation]);
  },
  cases: (random) => halvesCases(random, [4, 5, 20, 33, 96]),
});

/** Shape rule of both forms. */
export function halfOf(inputs: readonly (TensorType | undefined)[]): TensorType {
  checkInputCount(inputs, 1);
  const x = requireInput(inputs, 0, "x", { minRank: 1 });
  const half = exactDiv(lastDim(x), 2);
  if (half === undefined) throw new RangeError("the last dim of x must be even");
  return { dtype: "f32", shape: [...x.shape.slice(0, -1), half] };
}

/** The definition, for both forms. */
export function gluOfHalves(
  x: HostTensor,
  out: HostTensor,
  activation: (value: number) => number,
): void {
  const width = out.shape.at(-1)!;
  for (let i = 0; i < out.data.length; i++) {
    const gate = i + Math.floor(i / width) * width;
    setElement(out, i, activation(getElement(x, gate)) * getElement(x, gate + width));
  }
}

/** Cases of both forms. */
export function halvesCases(random: CaseRandom, widths: readonly number[]): OpCase[] {
  return widths.flatMap((width, i) =>
    [0, 1, 3].map((rows) => {
      const activation = ACTIVATION_NAMES[(i + rows) % ACTIVATION_NAMES.length]!;
      return {
        name: `${activation}, [${rows}, 2 · ${width}]`,
        inputs: [random.input([ROWS, 2 * width], { M: rows })],
        attributes: { activation },
        bindings: { M: rows },
      };
    })
  );
}
