import { assertEquals, assertRejects } from "@std/assert";
import { formatBytes, getFormat } from "../../../quant/mod.ts";
import { FormatError } from "../../errors.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { getOp } from "../../ops/mod.ts";
import { tensorInMemory } from "../case_graph.ts";
import { plan } from "../../plan/planner.ts";
import { createWasmBackend } from "./backend.ts";

/** A chain of products with weights `w0`, `w1`, …; `damaged` has a scale that is not finite. */
function chain(count: number, damaged?: number) {
  const builder = createGraphBuilder("chain", getOp);
  let x = builder.input("x", [1, 64], "f32");
  for (let i = 0; i < count; i++) {
    const bytes = new Uint8Array(formatBytes(getFormat("Q8_0"), 64 * 64)).fill(1);
    if (i === damaged) bytes[35] = 0x7c;
    const tensor = tensorInMemory(`w${i}`, { format: "Q8_0", shape: [64, 64], bytes });
    x = builder.op("matmul", [x, builder.weight(`w${i}`, tensor)], {}, `y${i}`)[0]!;
  }
  builder.output("y", x);
  return plan(builder.build(), { limits: {} });
}

Deno.test("a damaged weight is named, though others are read while it is packed", async () => {
  for (const threads of [1, 2]) {
    const backend = createWasmBackend({ threads });
    for (const damaged of [0, 3, 4]) {
      const error = await assertRejects(
        () => backend.prepare(chain(5, damaged), { slots: 1 }),
        FormatError,
      );
      assertEquals(error.place, `w${damaged}`);
      assertEquals(error.file, `memory of w${damaged}`);
    }
    const whole = await backend.prepare(chain(5), { slots: 1 });
    whole.dispose();
  }
});
