// Attention on contexts that are cut into segments, which the ops' own cases are too short for.

import { assert, assertEquals } from "@std/assert";
import {
  ATTENTION_SHAPES,
  attentionCase,
  compareAttention,
} from "../../../tests/support/attention_cases.ts";
import { joinedNodes } from "../../../tests/support/joining.ts";
import { probeCapabilities } from "../../../wasm/probe.ts";
import { getOp } from "../../ops/mod.ts";
import { difference, runCase } from "../case_run.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createWasmBackend } from "./backend.ts";

const CASES = new URL("../../../tests/support/attention_cases.ts", import.meta.url).pathname;

for (const shape of ATTENTION_SHAPES) {
  const { positions, heads, kvHeads, dtype } = shape;
  const name = `${dtype}, positions ${positions}, ${heads}/${kvHeads} heads`;
  Deno.test(`attention in segments equals the reference on any threads: ${name}`, async () => {
    const op = getOp("attention");
    const opCase = attentionCase(shape);
    const expected = await runCase(createReferenceBackend(), { op, opCase });
    // The query is rounded to 16 bit where keys are codes.
    const ofLargest = dtype === "q8_0" ? 5e-5 : 5e-6;
    for (const variant of ["baseline", "relaxed"] as const) {
      const one = await runCase(createWasmBackend({ threads: 1, variant }), { op, opCase });
      const two = await runCase(createWasmBackend({ threads: 2, variant }), { op, opCase });
      assertEquals(difference(one, expected, { ofLargest, reason: "float32" }), undefined);
      assertEquals(two, one);
    }
  });
}

Deno.test("attention by kernels that V8 joins to 256 bits has the bits of the others", async () => {
  await compareAttention();
});

// A new V8 may have another opinion of a kernel: then its text is the slower one.
Deno.test("V8 joins the loops of 1 to 4 queries, and they have the same bits", async () => {
  if (!probeCapabilities().hasWideVectors) return;
  for (const dtype of ["f16", "q8_0"]) {
    const large = (await joinedNodes(CASES, [dtype])).filter((nodes) => nodes > 30);
    // Scores and values, each for so many queries.
    assert(large.length >= 8, `${dtype}: ${large.length} loops are joined`);
  }
});
