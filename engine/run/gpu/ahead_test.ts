import { assert, assertEquals } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { withStrictMapping } from "../../../tests/support/gpu_strict.ts";
import { TOY, TOY_LIMITS, toyDecoder, wishFor } from "../../../tests/support/toy_decoder.ts";
import { openGpu } from "../../../gpu/gpu.ts";
import type { PreparedPlan } from "../backend.ts";
import { RANKED } from "../executable.ts";
import { createGpuBackend } from "./backend.ts";
import { plan } from "../../plan/planner.ts";

/** Greedy tokens up to the end of the cache. */
async function greedy(executable: PreparedPlan): Promise<number[]> {
  const slot = executable.openSlot();
  const tokens = [3];
  for (let position = 0; position < TOY.capacity; position++) {
    executable.input("tokens")[0] = tokens.at(-1)!;
    executable.input("positions")[0] = position;
    executable.input("slots")[0] = slot;
    executable.input("logit_rows")[0] = 0;
    await executable.run({ M: 1, L: 1 }, wishFor(0, TOY.capacity - 1 - position));
    const logits = executable.output("logits").subarray(0, TOY.vocabulary) as Float32Array;
    tokens.push(logits.indexOf(Math.max(...logits)));
  }
  return tokens;
}

gpuTest(
  "where mappings must be awaited, tokens are the same, with several readbacks in flight",
  async () => {
    const made = plan(toyDecoder(), { limits: TOY_LIMITS });
    const [usual, gpu] = [await openGpu(), await openGpu()];
    const strict = withStrictMapping(gpu);
    const expected = await createGpuBackend({ gpu: usual, stepsAhead: 0 })
      .prepare(made, { slots: 1, ranked: RANKED });
    const executable = await createGpuBackend({ gpu: strict, stepsAhead: 4 })
      .prepare(made, { slots: 1, ranked: RANKED });
    assertEquals(await greedy(executable), await greedy(expected));
    assert(executable.foreseenSteps > 15, `${executable.foreseenSteps} steps were foreseen`);
    assert(strict.overlapping > 2, `${strict.overlapping} submissions did not wait`);
    usual.dispose();
    gpu.dispose();
  },
);
