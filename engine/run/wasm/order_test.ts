import { assertEquals, assertLess } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import { getOp } from "../../ops/mod.ts";
import { plan } from "../../plan/planner.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createWasmBackend } from "./backend.ts";

const WIDTH = 96, MOST = 200;

/** A post-norm, a sum, the next norm and its 8-bit form, another sum: all in one wave. */
function residual() {
  const M = symbol("M", { min: 1 });
  const b = createGraphBuilder("residual", getOp);
  const x = b.input("x", [M, WIDTH], "f32"), y = b.input("y", [M, WIDTH], "f32");
  const norm = (value: typeof x, name: string) =>
    b.op("norm", [value], { epsilon: 1e-5 }, name)[0]!;
  const sum = b.op("binary", [norm(x, "post"), y], { kind: "add" }, "sum")[0]!;
  const next = norm(sum, "next");
  b.output("sum", sum);
  b.output("out", b.op("binary", [next, sum], { kind: "add" }, "out")[0]!);
  return plan(b.build(), { limits: { M: MOST } });
}

async function results(
  made: ReturnType<typeof residual>,
  threads: number,
  exclude: readonly string[] = [],
) {
  const backend = threads === 0 ? createReferenceBackend() : createWasmBackend({ threads });
  const executable = await backend.prepare(made, {
    ...{ slots: 0, hostSteps: true, excludeKernels: new Set(exclude) },
  });
  const all: Float32Array[] = [];
  for (const rows of [1, 7, 64, MOST]) {
    for (const name of ["x", "y"]) {
      const shift = name === "x" ? 0.1 : 0.7;
      executable.input(name).set(
        Float32Array.from({ length: rows * WIDTH }, (_, i) => Math.sin(i * 0.37 + shift)) as never,
      );
    }
    executable.run({ M: rows });
    for (const name of ["sum", "out"]) {
      all.push((executable.output(name) as Float32Array).slice(0, rows * WIDTH));
    }
  }
  executable.dispose();
  return all;
}

Deno.test("a chain gives the reference's results, the same on any number of threads", async () => {
  const made = residual();
  assertEquals(made.waves, 1);
  const expected = await results(made, 0);
  const alone = await results(made, 1);
  assertEquals(await results(made, 2), alone);
  assertEquals(await results(made, 3), alone);
  for (const [i, values] of alone.entries()) assertLess(distance(values, expected[i]!), 1e-5);
});

Deno.test("links whose kernel cuts otherwise, or that the host runs, wait for what they read", async () => {
  const made = residual();
  const expected = await results(made, 0);
  for (const exclude of [["binary_flat_f32"], ["rms_norm_f32"]]) {
    const values = await results(made, 2, exclude);
    values.forEach((one, i) => assertLess(distance(one, expected[i]!), 1e-5));
  }
});

function distance(a: Float32Array, b: Float32Array): number {
  return a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);
}
