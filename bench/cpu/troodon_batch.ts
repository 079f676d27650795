// What the executable alone does where one step takes a token of each session: no queue, no samplers, no text. It is what
// generations beside each other are held against.
//
// deno run -A bench/cpu/troodon_batch.ts MODEL THREADS CONTEXT PRECISION ROWS

import { openModel } from "../../engine/models/open_model.ts";
import { openDevice } from "../../engine/run/devices.ts";
import { prepareExecutable } from "../../engine/run/executable.ts";
import { addRows, clearStep, createStep } from "../../engine/run/step.ts";
import type { Precision } from "../../engine/decode/model.ts";
import { prepareModel } from "../../engine/models/prepare.ts";
import { type Engine, serve } from "../support/runner.ts";

async function start(
  [path, threads, context, precision, rows]: readonly string[],
): Promise<Engine> {
  const loadStart = performance.now();
  const file = await openModel(path!);
  const device = await openDevice("wasm", { threads: Number(threads) });
  const limits = {
    contextLength: Number(context),
    precision: precision as Precision,
    sessions: Number(rows),
    logitRows: Number(rows),
  };
  const { plan } = await prepareModel(file, { options: limits, kernels: device });
  const executable = await prepareExecutable(device.backend, { plan, slots: limits.sessions });
  file.close();
  for (let slot = 0; slot < limits.sessions; slot++) executable.openSlot();
  const step = createStep(plan.limits.M as number);

  async function prefill(tokens: readonly number[], slot: number): Promise<void> {
    clearStep(step);
    addRows(step, { tokens, slot });
    await executable.run(step);
  }

  return {
    loadMs: performance.now() - loadStart,
    batch: async (prompts, count) => {
      for (const [slot, prompt] of prompts.entries()) await prefill(prompt.slice(0, -1), slot);
      const start = performance.now();
      const next = prompts.map((prompt) => [prompt.at(-1)!]);
      for (let i = 0; i < count; i++) {
        clearStep(step);
        for (const [slot, tokens] of next.entries()) {
          addRows(step, { tokens, position: prompts[slot]!.length - 1 + i, slot, wanted: 1 });
        }
        await executable.run(step);
        for (const [row, tokens] of next.entries()) tokens[0] = executable.best(row)!.ids[0]!;
      }
      return { ms: performance.now() - start };
    },
    close: () => Promise.resolve(executable.dispose()),
  };
}

if (import.meta.main) await serve(await start(Deno.args));
