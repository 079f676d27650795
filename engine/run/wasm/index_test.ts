// Indices that leave their dim: an error before the step where a graph input holds them, after it where the
// graph computes them, and the machine lives on in both cases.

import { assertEquals, assertThrows } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { plan } from "../../plan/planner.ts";
import { createWasmBackend } from "./backend.ts";

const TABLE = Float32Array.of(0, 1, 2, 3, 4, 5);

function pickRows(shift: boolean): Graph {
  const builder = createGraphBuilder("rows", getOp);
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

Deno.test("a whole number divided by 0 is an error, and the next run works", async () => {
  const builder = createGraphBuilder("quotients", getOp);
  const [x, y] = ["x", "y"].map((name) => builder.input(name, [3], "i64"));
  builder.output("z", builder.op("binary", [x!, y!], { kind: "div" }, "divide")[0]!);
  const backend = createWasmBackend({ threads: 1 });
  const executable = await backend.prepare(plan(builder.build(), { limits: {} }), { slots: 1 });
  try {
    const divisors = executable.input("y") as BigInt64Array;
    (executable.input("x") as BigInt64Array).set([-7n, -(2n ** 63n), 9n]);
    divisors.set([2n, -1n, 0n]);
    assertThrows(() => executable.run({}), Error, "Cannot divide whole numbers by 0");
    divisors.set([2n, -1n, -4n]);
    executable.run({});
    assertEquals([...executable.output("z")], [-3n, -(2n ** 63n), -2n]);
  } finally {
    executable.dispose();
  }
});

Deno.test("a target that is ignored may be no class, another one may not", async () => {
  const builder = createGraphBuilder("loss", getOp);
  const x = builder.input("x", [2, 3], "f32"), target = builder.input("target", [2], "i64");
  const attributes = { reduction: "sum", ignores: true, ignore_index: -100 };
  builder.output("loss", builder.op("nll_loss", [x, target], attributes, "loss")[0]!);
  const backend = createWasmBackend({ threads: 1 });
  const executable = await backend.prepare(plan(builder.build(), { limits: {} }), { slots: 1 });
  try {
    executable.input("x").set(TABLE as never);
    const targets = executable.input("target") as BigInt64Array;
    targets.set([2n, 3n]);
    assertThrows(() => executable.run({}), RangeError, "target[1] is 3 and must be in -3..2");
    targets.set([2n, -100n]);
    executable.run({});
    assertEquals([...executable.output("loss")], [-2]);
  } finally {
    executable.dispose();
  }
});
