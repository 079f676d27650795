import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { adapterNeed } from "../../tests/support/gpu.ts";
import { testGpu } from "../../tests/support/gpu_cases.ts";
import { testWith } from "../../tests/support/skip.ts";
import { TOY_LIMITS, toyDecoder } from "../../tests/support/toy_decoder.ts";
import { plan } from "../plan/planner.ts";
import type { Backend, DeviceName } from "./backend.ts";
import { type Executable, prepareExecutable } from "./executable.ts";
import { createGpuBackend } from "./gpu/backend.ts";
import { createReferenceBackend } from "./reference/reference_backend.ts";
import { addRows, clearStep, createStep, type RowRun, WANTED } from "./step.ts";
import { createWasmBackend } from "./wasm/backend.ts";

const BACKENDS: Readonly<Record<DeviceName, () => Promise<Backend>>> = {
  reference: () => Promise.resolve(createReferenceBackend()),
  wasm: () => Promise.resolve(createWasmBackend({ threads: 2 })),
  gpu: async () => createGpuBackend({ gpu: await testGpu() }),
};

function onEach(name: string, test: (executable: Executable) => Promise<void>): void {
  for (const device of ["reference", "wasm", "gpu"] as const) {
    testWith(device === "gpu" ? [adapterNeed] : [], `${device}: ${name}`, async () => {
      const made = plan(toyDecoder(), { limits: TOY_LIMITS });
      const executable = await prepareExecutable(await BACKENDS[device](), {
        plan: made,
        slots: 3,
      });
      try {
        await test(executable);
      } finally {
        executable.dispose();
      }
    });
  }
}

const step = createStep(TOY_LIMITS.M);

async function run(executable: Executable, ...runs: readonly RowRun[]): Promise<void> {
  clearStep(step);
  for (const one of runs) addRows(step, one);
  await executable.run(step);
}

/** The best of a row, whether the device has found them or all are there. */
function bestOf(executable: Executable, row: number, count: number): number[] {
  const found = executable.best(row);
  if (found) return [...found.ids.subarray(0, count)];
  const logits = executable.logits(row);
  return [...logits.keys()].sort((a, b) => logits[b]! - logits[a]! || a - b).slice(0, count);
}

function assertRows(actual: Float32Array, expected: Float32Array): void {
  assertEquals(actual.length, expected.length);
  for (const [i, value] of actual.entries()) assertAlmostEquals(value, expected[i]!, 1e-5);
}

onEach(
  "a prompt's chunk, an answer's token and what nobody looks at share a step",
  async (executable) => {
    const [a, b, c] = [executable.openSlot(), executable.openSlot(), executable.openSlot()];
    // Alone, in another slot than later.
    await run(executable, { tokens: [3, 1, 4, 1], slot: c, wanted: WANTED.logits });
    const prompt = executable.logits(3).slice();
    await run(executable, { tokens: [7, 8, 9], slot: b, wanted: WANTED.logits });
    const before = bestOf(executable, 2, 1)[0]!;
    await run(executable, { tokens: [before], position: 3, slot: b, wanted: 5 });
    const answer = bestOf(executable, 0, 5), logits = executable.logits(0).slice();

    await run(executable, { tokens: [3, 1], slot: a });
    await run(
      executable,
      { tokens: [9, 9], slot: c },
      { tokens: [3, 1, 4, 1], from: 2, position: 2, slot: a, wanted: WANTED.logits },
      { tokens: [before], position: 3, slot: b, wanted: 5 },
    );
    assertRows(executable.logits(3), prompt);
    assertEquals(bestOf(executable, 4, 5), answer);
    assertRows(executable.logits(4), logits);
  },
);

onEach("tokens of many slots are fed back together as they would be alone", async (executable) => {
  const prompts = [[3, 1, 4], [1, 5]];
  const alone: number[][] = [];
  for (const prompt of prompts) {
    const slot = executable.openSlot();
    const ids: number[] = [];
    await run(executable, { tokens: prompt, slot, wanted: 1 });
    for (let row = prompt.length - 1; ids.length < 6; row = 0) {
      ids.push(bestOf(executable, row, 1)[0]!);
      const position = prompt.length + ids.length - 1;
      await run(executable, { tokens: ids.slice(-1), position, slot, wanted: 1 });
    }
    alone.push(ids);
    executable.closeSlot(slot);
  }
  const slots = prompts.map(() => executable.openSlot());
  await run(executable, ...prompts.map((tokens, i) => ({ tokens, slot: slots[i]!, wanted: 1 })));
  let rows = [2, 4];
  const together: number[][] = [[], []];
  while (together[0]!.length < 6) {
    rows.forEach((row, i) => together[i]!.push(bestOf(executable, row, 1)[0]!));
    rows = [0, 1];
    await run(
      executable,
      ...together.map((ids, i) => ({
        ...{ tokens: ids.slice(-1), position: prompts[i]!.length + ids.length - 1 },
        ...{ slot: slots[i]!, wanted: 1 },
      })),
    );
  }
  assertEquals(together, alone);
});

Deno.test("a row that was left on the device is its slot's until others take its place", async () => {
  const made = plan(toyDecoder(), { limits: TOY_LIMITS });
  const executable = await prepareExecutable(await BACKENDS.wasm(), { plan: made, slots: 2 });
  const kept: number[][] = [];
  const [a, b] = [executable.openSlot((logits) => kept.push([...logits])), executable.openSlot()];
  await run(executable, { tokens: [3, 1], slot: a, wanted: 1 });
  const row = [...executable.leftLogits(a)!];
  assertEquals(row.indexOf(Math.max(...row)), executable.best(1)!.ids[0]);
  assertEquals(executable.leftLogits(b), undefined);
  await run(executable, { tokens: [2], slot: b, wanted: WANTED.logits });
  assertEquals(kept, [row]);
  assertEquals([executable.leftLogits(a), executable.leftLogits(b)], [undefined, undefined]);
  // A slot that goes on needs its last row no more.
  await run(executable, { tokens: [4], position: 2, slot: a, wanted: 1 });
  await run(executable, { tokens: [5], position: 3, slot: a, wanted: 1 }, { tokens: [6], slot: b });
  assertEquals(kept.length, 1);
  assert(executable.leftLogits(a));
  executable.closeSlot(a);
  assertEquals(executable.leftLogits(a), undefined);
  executable.dispose();
});
