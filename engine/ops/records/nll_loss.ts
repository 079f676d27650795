// nll_loss: the negative of the entry that each target names, weighted by class; summed, averaged over
// the weights, or left as it is. Targets that are ignored count nothing.

import { choice, flag, integer } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { FLOATS } from "../host_numbers.ts";
import { elementCount, getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseDraft } from "../op_case.ts";
import { checkInputCount, optionalInput, refuseMisfit, requireInput } from "../shape_rules.ts";

/** (x [N, C, …], target i32|i64[N, …], weight [C]?) → [N, …] or []. */
export const nllLoss: OpRecord = defineOp({
  name: "nll_loss",
  summary: "negative log-likelihood of targets",
  attributes: {
    reduction: choice(["none", "sum", "mean"]),
    /** Whether `ignore_index` means something. */
    ignores: flag(false),
    ignore_index: integer(-(2 ** 53) + 1, 0),
  },
  infer(inputs, { reduction }) {
    checkInputCount(inputs, 3);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 2 });
    const target = requireInput(inputs, {
      index: 1,
      name: "target",
      dtype: ["i32", "i64"],
      rank: x.shape.length - 1,
    });
    const weight = optionalInput(inputs, { index: 2, name: "weight", dtype: x.dtype, rank: 1 });
    if (weight) {
      refuseMisfit(weight.shape[0]!, { sizes: [x.shape[1]!], what: "the number of weights" });
    }
    x.shape.toSpliced(1, 1).forEach((size, i) =>
      refuseMisfit(target.shape[i]!, { sizes: [size], what: `dim ${i} of target` })
    );
    return [{ dtype: x.dtype, shape: reduction === "none" ? target.shape : [] }];
  },
  reference({ inputs: [x, target, weight], outputs: [out], attributes }) {
    const classes = x!.shape[1]!, places = elementCount(x!.shape.slice(2));
    let sum = 0, total = 0;
    for (let i = 0; i < target!.data.length; i++) {
      const wanted = getElement(target!, i);
      if (attributes.ignores && wanted === attributes.ignore_index) continue;
      const named = wanted < 0 ? wanted + classes : wanted;
      if (named < 0 || named >= classes) {
        throw new RangeError(`Cannot use target ${wanted}: there are ${classes} classes`);
      }
      const at = (Math.floor(i / places) * classes + named) * places + i % places;
      const factor = weight ? getElement(weight, named) : 1;
      const loss = -getElement(x!, at) * factor;
      if (attributes.reduction === "none") setElement(out!, { index: i, value: loss });
      sum += loss;
      total += factor;
    }
    if (attributes.reduction === "sum") setElement(out!, { index: 0, value: sum });
    if (attributes.reduction === "mean") setElement(out!, { index: 0, value: sum / total });
  },
  cases: (random) =>
    (["none", "sum", "mean"] as const).flatMap((reduction): CaseDraft[] => [{
      inputs: [random.input([4, 5]), random.indices([0, 4, -1, 2]), random.input([5])],
      attributes: { reduction, ignores: true, ignore_index: 2 },
    }, {
      inputs: [random.input([4, 5]), random.indices([0, 4, 1, 2])],
      attributes: { reduction, ignores: false },
    }]),
});
