import { assert, assertEquals, assertLess, assertRejects, assertThrows } from "@std/assert";
import { type Gpu, openGpu } from "../../../gpu/gpu.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { TOY, TOY_LIMITS, toyDecoder, wishFor } from "../../../tests/support/toy_decoder.ts";
import { testGpu } from "../../../tests/support/gpu_cases.ts";
import { DeviceError, FormatError, UnsupportedError } from "../../errors.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { getOp } from "../../ops/mod.ts";
import { answersOf } from "../kernel_choice.ts";
import { GPU_KERNELS, LEAST_GPU } from "./kernel_table.ts";
import type { PreparedPlan, PrepareOptions } from "../backend.ts";
import { tensorInMemory } from "../case_graph.ts";
import { RANKED } from "../executable.ts";
import { createGpuBackend, type GpuPlan } from "./backend.ts";
import { optimize } from "../../plan/passes.ts";
import { plan } from "../../plan/planner.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";

interface ToyOptions {
  readonly kv?: "f16" | "f32";
  readonly format?: string;
  readonly precision?: "fast" | "exact";
  readonly prepare?: Partial<PrepareOptions>;
}

/** The toy as the GPU runs it. */
function toyPlan({ kv = "f16", format = "F32", precision = "exact" }: ToyOptions = {}) {
  const graph = optimize(toyDecoder(kv, format), {
    context: {
      precision,
      ...answersOf(GPU_KERNELS, LEAST_GPU),
    },
  });
  return plan(graph, { limits: TOY_LIMITS });
}

function toy(options: ToyOptions = {}): Promise<GpuPlan> {
  return createGpuBackend().prepare(toyPlan(options), { slots: 2, ...options.prepare });
}

/** Logits of the last token, `tokens` starting at `start` of a slot. */
async function step(
  executable: PreparedPlan,
  tokens: readonly number[],
  slot = 0,
  start = 0,
  repeats = 0,
): Promise<number[]> {
  executable.input("tokens").set(tokens as never);
  executable.input("positions").set(tokens.map((_, i) => start + i) as never);
  executable.input("slots").set(tokens.map(() => slot) as never);
  executable.input("logit_rows").set([tokens.length - 1] as never);
  await executable.run({ M: tokens.length, L: 1 }, repeats > 0 ? wishFor(0, repeats) : undefined);
  return [...executable.output("logits").subarray(0, TOY.vocabulary)] as number[];
}

function distance(a: readonly number[], b: readonly number[]): number {
  return Math.max(...a.map((value, i) => Math.abs(value - b[i]!)));
}

for (
  const [options, most] of [
    [{ kv: "f32" }, 1e-4],
    [{ kv: "f16", format: "Q8_0", precision: "fast" }, 0.02],
  ] as const
) {
  gpuTest(`a decoder with a ${options.kv} cache gives the reference's logits`, async () => {
    const reference = await createReferenceBackend().prepare(toyPlan(options), { slots: 2 });
    const executable = await toy(options);
    reference.openSlot();
    executable.openSlot();
    const prompt = [3, 1, 4, 1, 5];
    assertLess(distance(await step(executable, prompt), await step(reference, prompt)), most);
    for (const [i, token] of [9, 2, 6, 5].entries()) {
      const expected = await step(reference, [token], 0, 5 + i);
      assertLess(distance(await step(executable, [token], 0, 5 + i), expected), most);
    }
    executable.dispose();
  });
}

/** Most probable token. */
function best(logits: readonly number[]): number {
  return logits.indexOf(Math.max(...logits));
}

gpuTest("a device begins with a long step while the rest of it is encoded", async () => {
  const made = plan(toyDecoder("f32", "F32", { layers: 6 }), { limits: TOY_LIMITS });
  const gpu = await openGpu(), { queue } = gpu.device, { submit } = queue;
  const [executable, reference] = await Promise.all(
    [createGpuBackend({ gpu }), createReferenceBackend()].map((backend) =>
      backend.prepare(made, { slots: 1 })
    ),
  );
  let count = 0;
  queue.submit = (commands) => {
    count++;
    return submit.call(queue, commands);
  };
  for (const one of [executable!, reference!]) one.openSlot();
  const counts: number[] = [];
  for (const [start, tokens] of [[0, [3, 1, 4, 1]], [4, [5]], [5, [9]], [6, [2]]] as const) {
    count = 0;
    const logits = await step(executable!, tokens, 0, start);
    counts.push(count);
    assertLess(distance(logits, await step(reference!, tokens, 0, start)), 1e-4);
  }
  // What is done a third time was encoded before.
  assertEquals(counts, [2, 2, 2, 1]);
  executable!.dispose();
  gpu.dispose();
});

gpuTest("steps that were computed ahead are those that would have been computed", async () => {
  const made = toyPlan();
  const [plain, ahead] = await Promise.all(
    [0, 4].map((stepsAhead) =>
      createGpuBackend({ stepsAhead }).prepare(made, { slots: 2, ranked: RANKED })
    ),
  );
  const both = async (tokens: readonly number[], slot: number, start: number) => {
    const repeats = tokens.length === 1 ? TOY.capacity - start : 0;
    const [a, b] = [
      await step(plain!, tokens, slot, start, repeats),
      await step(ahead!, tokens, slot, start, repeats),
    ];
    assertEquals(b, a, `tokens ${tokens} at ${start} of slot ${slot}`);
    return best(a);
  };
  for (const executable of [plain!, ahead!]) [executable.openSlot(), executable.openSlot()];
  let token = await both([3, 1, 4], 0, 0);
  // Greedy up to the end of the cache, which cuts the last batch short.
  for (let at = 3; at < TOY.capacity; at++) token = await both([token], 0, at);
  // Back, greedy again, another choice in the middle of a batch, and a look at the other slot.
  token = await both([3, 1], 0, 0);
  for (let at = 2; at < 9; at++) token = await both([token], 0, at);
  token = await both([(token + 1) % TOY.vocabulary], 0, 9);
  for (let at = 10; at < 13; at++) token = await both([token], 0, at);
  await both([5, 6, 7], 1, 0);
  for (let at = 13; at < 22; at++) token = await both([token], 0, at);
  // What was foreseen is forgotten when a state is written.
  const saved = await plain!.readState(1, 3);
  for (const executable of [plain!, ahead!]) await executable.writeState(0, 3, saved);
  await both([token], 0, 22);
  assertEquals(plain!.foreseenSteps, 0);
  assert(ahead!.foreseenSteps > 30, `${ahead!.foreseenSteps} steps were foreseen`);
  plain!.dispose();
  ahead!.dispose();
});

gpuTest("two sessions in one step do not see each other", async () => {
  const executable = await toy();
  const [a, b] = [executable.openSlot(), executable.openSlot()];
  const alone = await step(executable, [7, 8, 9], a);
  await step(executable, [1, 2], b);
  executable.input("tokens").set([4, 9] as never);
  executable.input("positions").set([2, 2] as never);
  executable.input("slots").set([b, a] as never);
  executable.input("logit_rows").set([1] as never);
  await executable.run({ M: 2, L: 1 });
  const together = [...executable.output("logits").subarray(0, TOY.vocabulary)] as number[];
  assertLess(distance(together, alone), 1e-5);
  executable.dispose();
});

gpuTest("a closed slot is zero when it is opened again, and a saved state goes on", async () => {
  const executable = await toy();
  const slot = executable.openSlot();
  const first = await step(executable, [3, 1, 4], slot);
  const saved = await executable.readState(slot, 2);
  executable.closeSlot(slot);
  assertEquals(executable.openSlot(), slot);
  assert((await executable.readState(slot, 3)).every((byte) => byte === 0));
  await executable.writeState(slot, 2, saved);
  assertLess(distance(await step(executable, [4], slot, 2), first), 1e-5);
  assertThrows(() => executable.writeState(slot, 2, saved.subarray(1)), RangeError, "expected");
  executable.dispose();
});

gpuTest("wrong indices, bindings and names are refused, and the device lives on", async () => {
  const executable = await toy({ format: "Q8_0", precision: "fast" });
  await assertRejects(() => step(executable, [TOY.vocabulary]), RangeError, "tokens[0] is 50");
  await assertRejects(() => step(executable, [1]), RangeError, "slot 0: no session has it open");
  executable.openSlot();
  await assertRejects(() => step(executable, [1], 0, TOY.capacity), RangeError, "positions[0]");
  assertThrows(() => executable.run({ M: 9, L: 1 }), RangeError, "M = 9");
  assertThrows(() => executable.input("nothing"), RangeError, 'no input "nothing"');
  assertEquals((await step(executable, [1])).length, TOY.vocabulary);
  executable.dispose();
});

gpuTest("load, step and dispose leave no buffer behind, 50 times", async () => {
  const gpu = await openGpu();
  const backend = createGpuBackend({ gpu });
  const made = toyPlan();
  let pipelines = 0;
  for (let round = 0; round < 50; round++) {
    const executable = await backend.prepare(made, { slots: 1 });
    executable.openSlot();
    if (round < 2) await step(executable, [1, 2]);
    assert(gpu.liveBuffers > 0);
    executable.dispose();
    assertEquals(gpu.liveBuffers, 0);
    if (round === 0) pipelines = gpu.pipelines.count;
    assertThrows(() => executable.run({ M: 1, L: 1 }), TypeError, "disposed");
    assertThrows(() => executable.input("tokens"), TypeError, "disposed");
  }
  assertEquals(gpu.pipelines.count, pipelines); // one compilation serves all
  gpu.dispose();
});

gpuTest(
  "where pipelines compile in turn, those of long contexts and short prompts are there",
  async () => {
    const graph = optimize(toyDecoder("f16", "F32", { capacity: 600, rows: 32 }), {
      context: { precision: "exact", ...answersOf(GPU_KERNELS, LEAST_GPU) },
    });
    const made = plan(graph, { limits: { M: 32, L: 1 } });
    for (const compilesInTurn of [true, false]) {
      const opened = await openGpu();
      const more = { compilesInTurn, isSoftware: false };
      const capabilities = { ...opened.capabilities, ...more };
      const gpu: Gpu = Object.create(opened, { capabilities: { value: capabilities } });
      const executable = await createGpuBackend({ gpu }).prepare(made, { slots: 1 });
      const { count } = gpu.pipelines;
      executable.openSlot();
      await step(executable, [1], 0, 400);
      await step(executable, [1, 2, 3]);
      assertEquals(gpu.pipelines.count === count, compilesInTurn);
      gpu.dispose();
    }
  },
);

gpuTest("a failed load leaves no buffer behind and names tensor and file", async () => {
  const gpu = await openGpu();
  const builder = createGraphBuilder("broken", getOp);
  const x = builder.input("x", [1, 2], "f32");
  const bytes = new Uint8Array(new Float32Array([1, NaN]).buffer);
  const weight = builder.weight("w", tensorInMemory("norm", { format: "F32", shape: [2], bytes }));
  builder.output("y", builder.op("norm", [x, weight], { epsilon: 1e-5 }, "norm")[0]!);
  const made = plan(builder.build(), { limits: {} });
  await assertRejects(
    () => createGpuBackend({ gpu }).prepare(made, { slots: 0 }),
    FormatError,
    "memory of norm, norm: value 1 is NaN",
  );
  assertEquals(gpu.liveBuffers, 0);
  gpu.dispose();
});

gpuTest("a lost device is a DeviceError; the shared one is opened anew", async () => {
  const gpu = await openGpu();
  const executable = await createGpuBackend({ gpu }).prepare(toyPlan(), { slots: 1 });
  executable.openSlot();
  gpu.dispose();
  await assertRejects(() => step(executable, [1]), DeviceError, "has been disposed");
  executable.dispose();
});

gpuTest("an excluded kernel is not taken; without another the node is named", async () => {
  const excludeKernels = new Set(["gpu_rms_norm_f32"]);
  await assertRejects(() => toy({ prepare: { excludeKernels } }), UnsupportedError, "norm");
});

gpuTest("an abort while weights are read stops loading", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const prepare = { signal: controller.signal, onProgress: () => controller.abort(reason) };
  await assertRejects(() => toy({ prepare }), Error, "enough");
});

gpuTest("a run sends of large inputs what it has, wherever they lie among others", async () => {
  const gpu = await testGpu(), { queue } = gpu.device, columns = 1024;
  const builder = createGraphBuilder("large inputs", getOp);
  const M = symbol("M", { min: 0 });
  const [few, many] = [4, columns].map((width) => builder.input(`x${width}`, [M, width], "f32"));
  const scaled = (x: Value, alpha: number) =>
    builder.op("unary", [x], { kind: "scale", alpha }, `${x.name}.scaled`)[0]!;
  builder.output("few", scaled(few!, 2));
  builder.output("many", scaled(many!, 3));
  const made = plan(builder.build(), { limits: { M: 64 } });
  const executable = await createGpuBackend({ gpu }).prepare(made, { slots: 0 });
  let sent = 0;
  const send = queue.writeBuffer;
  queue.writeBuffer = (...[buffer, offset, data]: Parameters<GPUQueue["writeBuffer"]>) => {
    sent += data.byteLength;
    send.call(queue, buffer, offset, data);
  };
  try {
    for (const rows of [64, 3, 0, 64]) {
      const random = createCaseRandom(rows);
      const given = [4, columns].map((width) => random.normal(rows * width));
      for (const [i, width] of [4, columns].entries()) {
        (executable.input(`x${width}`) as Float32Array).set(given[i]!);
      }
      sent = 0;
      await executable.run({ M: rows });
      assert(sent < 4 * columns * rows + 16_384, `${sent} bytes for ${rows} rows`);
      for (const [i, name] of ["few", "many"].entries()) {
        const result = executable.output(name) as Float32Array;
        const wanted = given[i]!.map((x) => Math.fround([2, 3][i]! * x));
        assertEquals(result.slice(0, wanted.length), Float32Array.from(wanted));
      }
    }
  } finally {
    queue.writeBuffer = send;
    executable.dispose();
  }
});

gpuTest(
  "runs of two models are handed over before next ones are encoded, these before one is waited for",
  async () => {
    const gpu = await testGpu(), { device } = gpu, { queue } = device;
    const backend = createGpuBackend({ gpu });
    const both = [];
    for (let i = 0; i < 2; i++) both.push(await backend.prepare(toyPlan(), { slots: 2 }));
    for (const one of both) one.openSlot();
    const tokens = [3, 1, 4];
    const expected = await step(both[0]!, tokens);
    // What was done twice is encoded for a third time.
    for (const one of [...both, both[1]!]) await step(one, tokens);
    const events: string[] = [], { mapAsync } = GPUBuffer.prototype;
    device.createCommandEncoder = (descriptor) => {
      events.push("encode");
      return GPUDevice.prototype.createCommandEncoder.call(device, descriptor);
    };
    queue.submit = (commands) => {
      events.push("submit");
      return GPUQueue.prototype.submit.call(queue, commands);
    };
    GPUBuffer.prototype.mapAsync = function (...args) {
      events.push("wait");
      return mapAsync.apply(this, args);
    };
    try {
      const results = await Promise.all(both.map((one) => step(one, tokens)));
      assertEquals(results, [expected, expected]);
    } finally {
      delete (queue as Partial<GPUQueue>).submit;
      delete (device as Partial<GPUDevice>).createCommandEncoder;
      GPUBuffer.prototype.mapAsync = mapAsync;
    }
    assertEquals(events, ["submit", "submit", "encode", "encode", "wait", "wait"]);
    for (const one of both) one.dispose();
  },
);
