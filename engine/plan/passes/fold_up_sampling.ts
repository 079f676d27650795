// fold_up_sampling: a convolution reads each element several times by itself, where the device has a kernel for that, and
// the up-sampled planes are never stored (spec MD-9):
//   conv(resize(x, each element r × s times), W, b)  →  conv(x, W, b) with repeats [r, s]

import type { Node } from "../../graph/graph.ts";
import { repeatsOf } from "../../ops/resize_repeats.ts";
import { type MatchContext, soleMaker, WHOLE } from "./match.ts";
import {
  defineReplacement,
  draftOf,
  makeDraft,
  type NodeDraft,
  type Pass,
  type PassContext,
} from "./pass.ts";

/** Moves up-samplings into the convolutions behind them. */
export const foldUpSampling: Pass = defineReplacement({
  name: "fold_up_sampling",
  reads: { conv: WHOLE, resize: WHOLE },
  suits: ({ hasKernel }) => hasKernel("conv"),
  match,
  replace: makeDraft,
});

function match(
  node: Node,
  context: MatchContext,
  { takes }: PassContext,
): NodeDraft | undefined {
  const { op, inputs: [x, ...others], attributes } = node;
  if (op !== "conv" || (attributes.repeats as readonly number[]).length > 0) return undefined;
  const resized = soleMaker(x!, { name: "resize", context });
  const repeats = resized && x!.shape.length === 4 ? repeatsOf(resized) : undefined;
  if (!repeats) return undefined;
  const draft = draftOf("conv", {
    inputs: [resized!.inputs[0], ...others],
    given: { ...attributes, repeats },
  });
  return takes(draft) ? draft : undefined;
}
