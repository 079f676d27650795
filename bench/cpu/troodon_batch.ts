// Our side of the case of several rows: one step takes a token of each session, every row in a cache of its
// own. Sessions take steps of their own in the public API until the serving part joins them, so this drives
// the executable.
//
// deno run -A bench/cpu/troodon_batch.ts MODEL THREADS CONTEXT PRECISION ROWS

import { openModel } from "../../engine/models/open_model.ts";
import { openDevice } from "../../engine/run/devices.ts";
import type { Precision } from "../../engine/decode/model.ts";
import { prepareModel } from "../../engine/models/prepare.ts";
import { type Engine, serve } from "../support/runner.ts";

function indexOfLargest(values: ArrayLike<number>, from: number, count: number): number {
  let best = from;
  for (let i = from + 1; i < from + count; i++) if (values[i]! > values[best]!) best = i;
  return best - from;
}

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
  const { plan } = await prepareModel(file, limits, device);
  const executable = await device.backend.prepare(plan, { slots: limits.sessions });
  file.close();
  for (let slot = 0; slot < limits.sessions; slot++) executable.openSlot();
  const input = (name: string) => executable.input(name) as Int32Array;
  const tokens = input("tokens"), positions = input("positions"), slots = input("slots");
  const wanted = input("logit_rows");
  const logits = executable.output("logits") as Float32Array;
  const vocabulary = logits.length / (plan.limits.L as number);

  async function prefill(prompt: readonly number[], slot: number): Promise<void> {
    prompt.forEach((id, row) => {
      tokens[row] = id;
      positions[row] = row;
      slots[row] = slot;
    });
    await executable.run({ M: prompt.length, L: 0 });
  }

  return {
    loadMs: performance.now() - loadStart,
    batch: async (prompts, count) => {
      for (const [slot, prompt] of prompts.entries()) await prefill(prompt.slice(0, -1), slot);
      const start = performance.now();
      const next = prompts.map((prompt) => prompt.at(-1)!);
      for (let step = 0; step < count; step++) {
        for (const [row, id] of next.entries()) {
          tokens[row] = id;
          positions[row] = prompts[row]!.length - 1 + step;
          slots[row] = wanted[row] = row;
        }
        await executable.run({ M: prompts.length, L: prompts.length });
        for (const row of next.keys()) {
          next[row] = indexOfLargest(logits, row * vocabulary, vocabulary);
        }
      }
      return { ms: performance.now() - start };
    },
    close: () => Promise.resolve(executable.dispose()),
  };
}

if (import.meta.main) await serve(await start(Deno.args));
