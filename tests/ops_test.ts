// Every op and every kernel on every device, on the cases that the ops offer. An op, a kernel or a
// device is added without touching this file: devices come from the list below, the rest from records.

import { assert, assertEquals, assertGreater } from "@std/assert";
import { createCaseRandom } from "../engine/graph/case_random.ts";
import { ops } from "../engine/graph/ops/mod.ts";
import { runCase } from "../engine/plan/case_run.ts";
import { createReferenceBackend } from "../engine/plan/reference_backend.ts";

const SEED = 1;

for (const op of ops.values()) {
  if (op.view) continue;
  Deno.test(`${op.name} has cases and its reference gives finite numbers on all of them`, async () => {
    const cases = op.cases?.(createCaseRandom(SEED)) ?? [];
    assertGreater(cases.length, 0);
    let computed = 0;
    for (const opCase of cases) {
      const results = await runCase(createReferenceBackend(), op, opCase);
      for (const [name, values] of results) {
        assert(values.every(Number.isFinite), `${opCase.name}: ${name} is not finite`);
        computed += values.filter((value) => value !== 0).length;
      }
    }
    assertGreater(computed, 0, "all results are zero");
    assertEquals(new Set(cases.map(({ name }) => name)).size, cases.length, "a case name twice");
  });
}
