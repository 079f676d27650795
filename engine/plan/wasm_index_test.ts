// Indices that leave their dim: an error before the step where a graph input holds them, after it where the
// graph computes them, and the machine lives on in both cases.

import { assertEquals, assertThrows } from "@std/assert";
import { createGraphBuilder } from "../graph/builder.ts";
import type { Graph } from "../graph/graph.ts";
import { plan } from "./planner.ts";
import { createWasmBackend } from "./wasm_backend.ts";

const TABLE = Float32Array.of(0, 1, 2, 3, 4, 5);

function pickRows(shift: boolean): Graph {
  const builder = createGraphBuilder("rows");
  const x = builder.input("x", [3, 2], "f32"), given = builder.input("ids", [2], "i64");
  const one = builder.constant("one", BigInt64Array.of(1n), [], "i64");
  const ids = shift ? builder.op("binary", [given, one], { kind: "add" }, "shift")[0]! : given;
  builder.output("rows", builder.op("gather", [x, ids], { axis: 0 }, "pick")[0]!);
  return builder.build();
}

const cases = [
  {
    what: "given",
    shift: false,
    good: [2n, -3n],
    bad: 3n,
    message: "ids[1] is 3 and must be in -3..2",
  },
  { what: "computed", shift: true, good: [1n, -4n], bad: 2n, message: "outside its dim" },
];

for (const { what, shift, good, bad, message } of cases) {
  Deno.test(`an index outside its dim that is ${what} is an error, and the next run works`, async () => {
    const backend = createWasmBackend({ threads: 2 });
    const executable = await backend.prepare(plan(pickRows(shift), { limits: {} }), { slots: 1 });
    try {
      executable.input("x").set(TABLE as never);
      const ids = executable.input("ids") as BigInt64Array;
      ids.set([0n, bad]);
      assertThrows(() => executable.run({}), Error, message);
      ids.set(good);
      executable.run({});
      assertEquals(Array.from(executable.output("rows") as Float32Array), [4, 5, 0, 1]);
    } finally {
      executable.dispose();
    }
  });
}
