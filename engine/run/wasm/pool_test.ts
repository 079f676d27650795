import { assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import { getOp } from "../../ops/mod.ts";
import { plan } from "../../plan/planner.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createWasmBackend } from "./backend.ts";

const SHAPE = [2, 3, 21, 23] as const;

Deno.test("the largest of a window with NaN is NaN, and -Infinity where there is nothing else", async () => {
  for (const [size, stride, pad] of [[3, 2, 1], [2, 2, 0], [3, 1, 1], [5, 3, 2]] as const) {
    const builder = createGraphBuilder("pool", getOp), x = builder.input("x", SHAPE, "f32");
    const window = { kernel: [size, size], strides: [stride, stride], pads: Array(4).fill(pad) };
    builder.output("y", builder.op("max_pool", [x], window, "pool")[0]!);
    const made = plan(builder.build(), { limits: {} });
    const [expected, got] = await Promise.all(
      [createReferenceBackend(), createWasmBackend({ threads: 1 })].map(async (backend) => {
        const executable = await backend.prepare(made, { slots: 0 });
        const input = executable.input("x") as Float32Array;
        input.forEach((_, i) =>
          input[i] = i % 97 === 5 ? NaN : i % 23 < 6 ? -Infinity : Math.sin(i) - 2
        );
        await executable.run({});
        return [...executable.output("y") as Float32Array];
      }),
    );
    assertEquals([NaN, -Infinity].map((value) => expected!.includes(value)), [true, true]);
    assertEquals(got, expected);
  }
});
