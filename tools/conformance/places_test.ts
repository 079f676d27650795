import { assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../engine/graph/builder.ts";
import type { Graph } from "../../engine/graph/graph.ts";
import { getOp } from "../../engine/ops/mod.ts";
import { plan } from "../../engine/plan/planner.ts";
import { GPU_KERNELS } from "../../engine/run/gpu/kernel_table.ts";
import { createReferenceBackend } from "../../engine/run/reference/reference_backend.ts";
import { createWasmBackend } from "../../engine/run/wasm/backend.ts";
import {
  counting,
  describePlaces,
  noPlaces,
  type Places,
  whyElsewhere,
  whyEvaluated,
} from "./places.ts";

/** A product, which has a kernel, and a determinant, which has none. */
function mixed(): Graph {
  const builder = createGraphBuilder("mixed", getOp);
  const x = builder.input("x", [2, 2], "f32");
  const twice = builder.op("binary", [x, x], { kind: "mul" }, "twice")[0]!;
  builder.output("y", builder.op("det", [twice], {}, "det")[0]!);
  return builder.build();
}

Deno.test("nodes are counted where they are computed, whoever makes the plan ready", async () => {
  const made = plan(mixed(), { limits: {} });
  const onWasm = noPlaces(), onReference = noPlaces();
  const options = { slots: 1, hostSteps: true };
  const device = createWasmBackend({ threads: 1 });
  const wasm = await counting(device, { device, places: onWasm }).prepare(made, options);
  wasm.dispose();
  await counting(createReferenceBackend(), { device, places: onReference }).prepare(made, options);
  assertEquals([onWasm.device, [...onWasm.elsewhere]], [1, ["no kernel: det"]]);
  assertEquals(onReference.device, 0);
});

Deno.test("a test with one node elsewhere is not wholly on the device, nor is one without nodes", () => {
  const places = (device: number, ...elsewhere: string[]): Places => ({
    device,
    elsewhere: new Set(elsewhere),
  });
  const { whole, lines } = describePlaces([
    ...[places(3), places(1), places(0), places(2, "control flow")],
    places(0, "control flow", "strings"),
  ]);
  assertEquals(whole, 2);
  assertEquals(lines, [
    "wholly on the device: 2; nothing to compute, all being known from shapes: 1",
    "in part: 1; not at all: 1; why (a test may have several reasons):",
    "  2 control flow",
    "  1 strings",
  ]);
});

Deno.test("a reason is an element type only where the op has kernels for others", () => {
  const builder = createGraphBuilder("types", getOp);
  const wide = builder.input("wide", [2, 2], "f64");
  builder.output("sum", builder.op("binary", [wide, wide], { kind: "add" }, "sum")[0]!);
  builder.output("det", builder.op("det", [wide], {}, "det")[0]!);
  const whole = builder.input("whole", [2], "i32");
  builder.output("rest", builder.op("binary", [whole, whole], { kind: "mod" }, "rest")[0]!);
  const gpu = { name: "gpu", kernels: GPU_KERNELS } as const;
  const [sum, det, rest] = builder.build().nodes;
  assertEquals(whyElsewhere(rest!, gpu), "quotients of whole numbers and computed indices");
  assertEquals(whyElsewhere(sum!, gpu), "floats of 64 bits");
  assertEquals(whyElsewhere(det!, gpu), "no kernel: det");
  assertEquals(["Loop", "Unique", "SequenceAt", "Equal"].map(whyEvaluated), [
    ...["control flow", "results whose size depends on data", "sequences and optional values"],
    "strings",
  ]);
});
