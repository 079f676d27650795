// Chunks that threads take some at a time, from both ends: each is computed once, whoever takes it, run after run.

import { assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import { getOp } from "../../ops/mod.ts";
import { plan } from "../../plan/planner.ts";
import { createWasmBackend } from "./backend.ts";

/** Elements: one chunk, a few, and hundreds that leave a rest. */
const COUNTS = [5, 20_000, 2 ** 20 + 77];
const RUNS = 20;

for (const threads of [1, 2, 3, 4]) {
  Deno.test(`small chunks are computed once each by ${threads} threads`, async () => {
    for (const count of COUNTS) {
      const builder = createGraphBuilder("chunks", getOp);
      const x = builder.input("x", [count], "f32");
      builder.output("y", builder.op("unary", [x], { kind: "neg" }, "n")[0]!);
      const backend = createWasmBackend({ threads });
      const made = await backend.prepare(plan(builder.build(), { limits: {} }), { slots: 0 });
      const input = made.input("x") as Float32Array, output = made.output("y") as Float32Array;
      for (let run = 0; run < RUNS; run++) {
        for (let i = 0; i < count; i++) input[i] = 1 + (i + run) % 1009;
        output.fill(0);
        await made.run({});
        const wrong = output.findIndex((value, i) => value !== -input[i]!);
        assertEquals(wrong, -1, `${count} elements, run ${run}: element ${wrong}`);
      }
      made.dispose();
    }
  });
}
