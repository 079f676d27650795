// `deno task bench profile`: where the time of a step goes, by kernel, for decode and for prefill. The
// clock readings cost a little, so the sum is a bit more than an unmeasured step.

import { openModel } from "../engine/formats/open_model.ts";
import { openDevice } from "../engine/models/devices.ts";
import { prepareModel } from "../engine/models/prepare.ts";
import type { Executable } from "../engine/plan/backend.ts";
import { createWasmBackend } from "../engine/plan/wasm_backend.ts";
import { machineName } from "./support/figures.ts";
import type { BenchModel } from "./support/models.ts";

/** What to profile. */
export interface ProfileOptions {
  readonly models: readonly BenchModel[];
  readonly threads: readonly number[];
  readonly rounds: number;
  readonly prompts: readonly number[];
  readonly precision: "fast" | "exact";
}

const CONTEXT = 1024;

/** Steps of `rows` tokens from position `position`; the profile of all of them. */
async function profileSteps(
  executable: Executable,
  slot: number,
  { ids, rows, position, steps }: {
    readonly ids: readonly number[];
    readonly rows: number;
    readonly position: number;
    readonly steps: number;
  },
): Promise<readonly { readonly name: string; readonly calls: number; readonly ms: number }[]> {
  const inputs = ["tokens", "positions", "slots", "logit_rows"].map((name) =>
    executable.input(name) as Int32Array
  );
  const [tokens, positions, slots, logitRows] = inputs as [
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  const step = async (): Promise<void> => {
    for (let row = 0; row < rows; row++) {
      tokens[row] = ids[row % ids.length]!;
      positions[row] = position + row;
      slots[row] = slot;
    }
    logitRows[0] = rows - 1;
    await executable.run({ M: rows, L: 1 });
  };
  for (let i = 0; i < 3; i++) await step();
  executable.profile!();
  for (let i = 0; i < steps; i++) await step();
  return executable.profile!();
}

function show(
  title: string,
  entries: Awaited<ReturnType<typeof profileSteps>>,
  steps: number,
): string {
  const total = entries.reduce((sum, { ms }) => sum + ms, 0);
  const rows = entries.toSorted((a, b) => b.ms - a.ms).map(({ name, calls, ms }) =>
    `  ${name.padEnd(28)}${String(calls / steps).padStart(6)} calls ` +
    `${(ms / steps).toFixed(3).padStart(9)} ms ${(ms / total * 100).toFixed(1).padStart(6)} %`
  );
  return [`${title}: ${(total / steps).toFixed(2)} ms a step`, ...rows].join("\n");
}

/** Prints a table (or a JSON line) for every model, thread count and kind of step. */
export async function profileBench(options: ProfileOptions, json: boolean): Promise<void> {
  if (!json) console.log(machineName());
  for (const { name, path, ids } of options.models) {
    for (const threads of options.threads) {
      const file = await openModel(path);
      const load = { contextLength: CONTEXT, precision: options.precision };
      const prepared = await prepareModel(file, load, await openDevice("wasm", { threads }));
      const backend = createWasmBackend({ threads, profile: true });
      const executable = await backend.prepare(prepared.plan, { slots: 1 });
      const slot = executable.openSlot();
      const batch = prepared.plan.limits.M as number;
      const runs = [
        { kind: "decode", rows: 1, position: 64, steps: options.rounds * 10 },
        { kind: `prefill ${batch}`, rows: batch, position: 0, steps: options.rounds },
      ];
      for (const { kind, ...run } of runs) {
        const entries = await profileSteps(executable, slot, { ids, ...run });
        const title = `${kind} ${name} ${threads} threads`;
        if (json) console.log(JSON.stringify({ bench: "profile", case: title, ...run, entries }));
        else console.log(`\n${show(title, entries, run.steps)}`);
      }
      executable.dispose();
      file.close();
    }
  }
}
