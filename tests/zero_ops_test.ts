// Every op on every device with sizes of 0 wherever its shape rule takes them: devices give what the reference gives,
// and where it refuses (an index into nothing) no device is lost.

import { assertEquals, assertGreater } from "@std/assert";
import { createQuickRandom } from "../engine/ops/case_random.ts";
import type { OpRecord } from "../engine/ops/op.ts";
import type { OpCase } from "../engine/ops/op_case.ts";
import { ops } from "../engine/ops/mod.ts";
import type { Backend } from "../engine/run/backend.ts";
import { type CaseResult, difference, runCase } from "../engine/run/case_run.ts";
import { kernelNames } from "../engine/run/kernel_choice.ts";
import { createGpuBackend } from "../engine/run/gpu/backend.ts";
import { createReferenceBackend } from "../engine/run/reference/reference_backend.ts";
import { createWasmBackend } from "../engine/run/wasm/backend.ts";
import { DeviceError, UnsupportedError } from "../mod.ts";
import { adapterNeed } from "./support/gpu.ts";
import { testGpu } from "./support/gpu_cases.ts";
import { holdMachine } from "./support/hold_machine.ts";
import { testWith } from "./support/skip.ts";
import { zeroCases } from "./support/zero_cases.ts";

/** Whose operands are checked by those who build its graphs: entries without the rows that name them are no case. */
const CHECKED_BEFORE: ReadonlySet<string> = new Set(["sparse_add"]);

/** What cases hold is of no weight here, since nothing is left of it. */
const cases = (op: OpRecord) => op.cases?.(createQuickRandom(1)) ?? [];
const taken = [...ops.values()].filter(({ name, view }) => !view && !CHECKED_BEFORE.has(name));

/** What the reference gives; undefined where it refuses an index or a place. */
async function expectedOf(op: OpRecord, one: OpCase): Promise<CaseResult | undefined> {
  try {
    return await runCase(createReferenceBackend(), { op, opCase: one });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Runs a case with each kernel that takes it, and gives what is wrong. */
async function faults(backend: Backend, op: OpRecord, one: OpCase): Promise<string[]> {
  const expected = await expectedOf(op, one);
  const found: string[] = [];
  for (const kernel of kernelNames(backend.kernels, op.name)) {
    const place = `${kernel} on ${one.name}`;
    try {
      const actual = await runCase(backend, { op, opCase: one, kernel });
      const { tolerance = { ofLargest: 1e-5, reason: "" } } = op;
      const reason = expected && difference(actual, expected, tolerance);
      if (reason) found.push(`${place}: ${reason}`);
    } catch (error) {
      // A device that is lost would fail on the next case.
      const isRefused = !expected && (error instanceof RangeError || error instanceof DeviceError);
      if (!isRefused && !(error instanceof UnsupportedError)) found.push(`${place}: ${error}`);
    }
  }
  return found;
}

async function checkOps(backend: Backend, most: number): Promise<void> {
  let count = 0;
  const found: string[] = [];
  for (const op of taken) {
    for (const one of zeroCases(op, cases(op), most)) {
      found.push(...await faults(backend, op, one));
      count++;
    }
  }
  assertEquals(found, []);
  assertGreater(count, 2 * taken.length);
}

Deno.test("every op takes sizes of 0 on WASM", async () => {
  const backend = createWasmBackend({ threads: 1, shared: true });
  const held = await holdMachine(backend);
  await checkOps(backend, 12);
  held.dispose();
});

testWith([adapterNeed], "every op takes sizes of 0 on the GPU", async () => {
  await checkOps(createGpuBackend({ gpu: await testGpu() }), 3);
});
