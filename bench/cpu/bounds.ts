// What a model could reach on this machine at most: every kernel of a step at the nearer of the two limits that were
// measured on the same threads in the same run. Headers are enough, so nothing is loaded.

import { openModel } from "../../engine/models/open_model.ts";
import { openDevice } from "../../engine/run/devices.ts";
import { chooseKernel } from "../../engine/run/kernel_choice.ts";
import { LEAST_WASM, WASM_KERNELS } from "../../engine/run/wasm/kernel_table.ts";
import { prepareModel } from "../../engine/models/prepare.ts";
import type { Precision } from "../../engine/decode/model.ts";
import type { Plan } from "../../engine/plan/plan.ts";
import { leastMs, type Limits } from "../support/limits.ts";
import { workByKernel } from "../support/work.ts";

/** Bounds of a model with some threads, in tokens a second. */
export interface Bounds {
  /** Of decoding at a position; of so many answers together. */
  decode(position: number, answers?: number): number;
  /** Of a prompt, in the steps that the plan takes. */
  prefill(length: number): number;
}

/** Bounds of a model under limits. */
export async function boundsOf(
  path: string,
  { threads, precision }: { readonly threads: number; readonly precision: Precision },
  limits: Limits,
): Promise<Bounds> {
  const file = await openModel(path);
  try {
    const device = await openDevice("wasm", { threads });
    const { plan } = await prepareModel(file, { options: { precision }, kernels: device });
    return {
      decode: (position, answers = 1) =>
        1000 * answers / stepMs(plan, limits, { rows: answers, logits: answers, position }),
      prefill(length) {
        const batch = plan.limits.M as number;
        let ms = 0;
        for (let position = 0; position < length; position += batch) {
          ms += stepMs(plan, limits, {
            rows: Math.min(batch, length - position),
            logits: 1,
            position,
          });
        }
        return length / ms * 1000;
      },
    };
  } finally {
    file.close();
  }
}

function stepMs(
  plan: Plan,
  limits: Limits,
  { rows, logits, position }: {
    readonly rows: number;
    readonly logits: number;
    readonly position: number;
  },
): number {
  const kernels = plan.steps.map(({ node }) =>
    chooseKernel(WASM_KERNELS, { ...LEAST_WASM, node })?.name ?? node.op
  );
  const work = workByKernel(plan, kernels, { bindings: { M: rows, L: logits }, position });
  return [...work.values()].reduce((sum, each) => sum + leastMs(each, limits), 0);
}
