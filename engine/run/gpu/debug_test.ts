import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { attentionList } from "../../ops/attention_inputs.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { testGpu } from "../../../tests/support/gpu_cases.ts";
import { TOY, TOY_LIMITS, toyDecoder } from "../../../tests/support/toy_decoder.ts";
import { createSampler } from "../../decode/sampling/sampler.ts";
import { DeviceError } from "../../errors.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import type { Graph } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import type { PreparedPlan } from "../backend.ts";
import { createGpuBackend } from "./backend.ts";
import { plan } from "../../plan/planner.ts";

async function open(graph: Graph, debug: boolean, limits = {}): Promise<PreparedPlan> {
  const backend = createGpuBackend({ gpu: await testGpu(), debug, warmUp: true });
  const executable = await backend.prepare(plan(graph, { limits }), { slots: 1 });
  if (graph.states.length > 0) executable.openSlot();
  return executable;
}

/** x · x + x: overflows in the middle. */
function squares(): Graph {
  const builder = createGraphBuilder("squares", getOp);
  const x = builder.input("x", [1, 4], "f32");
  const square = builder.op("binary", [x, x], { kind: "mul" }, "blocks.3.square")[0]!;
  builder.output("y", builder.op("binary", [square, x], { kind: "add" }, "late")[0]!);
  return builder.build();
}

/** Attention over a float16 cache, a key head of four channels. */
function cached(): Graph {
  const builder = createGraphBuilder("cached", getOp);
  const M = symbol("M", { max: 4 });
  const x = builder.input("x", [M, 1, 4], "f32");
  const v = builder.input("v", [M, 1, 4], "f32");
  const positions = builder.input("positions", [M], "i32");
  const slots = builder.input("slots", [M], "i32");
  const append = (name: string, rows: typeof x) =>
    builder.op(
      "kv_append",
      [builder.state(name, [8, 1, 4], "f16"), rows, positions, slots],
      {},
      name,
    )[0]!;
  const caches = { k: append("keys", x), v: append("values", v) };
  const inputs = attentionList({ q: x, ...caches, positions, slots });
  builder.output("logits", builder.op("attention", inputs, { scale: 1 }, "layer.7.attention")[0]!);
  return builder.build();
}

async function attend(executable: PreparedPlan, x: number[], v: number[]): Promise<Float32Array> {
  executable.input("x").set(x as never);
  executable.input("v").set(v as never);
  executable.input("positions").set([0, 1] as never);
  await executable.run({ M: 2 });
  return (executable.output("logits") as Float32Array).slice(0, 8);
}

gpuTest("checked steps give the numbers of usual ones", async () => {
  const [usual, checked] = [
    await open(toyDecoder(), false, TOY_LIMITS),
    await open(toyDecoder(), true, TOY_LIMITS),
  ];
  for (const tokens of [[3, 1, 4], [1], [5]]) {
    const logits: number[][] = [];
    for (const executable of [usual, checked]) {
      executable.input("tokens").set(tokens as never);
      executable.input("positions").set(tokens.map((_, i) => i) as never);
      await executable.run({ M: tokens.length, L: 1 });
      logits.push([...executable.output("logits").subarray(0, TOY.vocabulary)] as number[]);
    }
    assertEquals(logits[1], logits[0]);
  }
  usual.dispose();
  checked.dispose();
});

gpuTest("in debug mode, the first number that is none is named by step and node", async () => {
  const executable = await open(squares(), true);
  executable.input("x").set([1, 2, 3, 4] as never);
  await executable.run({});
  assertEquals([...executable.output("y")], [2, 6, 12, 20]);
  executable.input("x").set([1, 2, 3e30, 4] as never);
  const error = await assertRejects(async () => await executable.run({}), DeviceError);
  assert(
    /^blocks\.3\.square: step 2, node 1 of 2 \(\w+\): value 2 of .* is Infinity\. Try /
      .test((error as Error).message),
    (error as Error).message,
  );
  executable.dispose();
});

gpuTest(
  "a value that does not fit a float16 cache is an error, and not a wrong number",
  async () => {
    const usual = await open(cached(), false, { M: 4 });
    const right = await attend(usual, [1, 2, 3, 4, 1, 0, 1, 0], [5, 6, -65504, 65519, 1, 2, 3, 4]);
    assert(right.every(Number.isFinite), right.join());
    const sampler = createSampler({ temperature: 0 });
    const history = { tokens: [], length: 0, promptLength: 0 };
    for (const bad of [65520, -70_000, Infinity]) {
      const logits = await attend(usual, [1, bad, 3, 4, 1, 0, 1, 0], [5, 6, 7, 8, 1, 2, 3, 4]);
      assertThrows(() => sampler.sample(logits, history), RangeError, "is NaN");
      assertThrows(
        () => createSampler({ seed: 1, topK: 2 }).sample(logits, history),
        RangeError,
        "is NaN",
      );
      const values = await attend(usual, [1, 2, 3, 4, 1, 0, 1, 0], [5, 6, bad, 8, 1, 2, 3, 4]);
      assertThrows(() => sampler.sample(values, history), RangeError, "is NaN");
    }
    const checked = await open(cached(), true, { M: 4 });
    await assertRejects(
      () => attend(checked, [1, 70_000, 3, 4, 1, 0, 1, 0], [5, 6, 7, 8, 1, 2, 3, 4]),
      DeviceError,
      "layer.7.attention: step 1",
    );
    usual.dispose();
    checked.dispose();
  },
);
