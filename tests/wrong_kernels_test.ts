// Adapters whose shaders compute wrong, or that their driver refuses: found before the first token, left out with a note, and
// the tokens are right.

import { assertEquals, assertMatch } from "@std/assert";
import type { GpuProvider } from "../gpu/gpu.ts";
import { generate, load, loadGraph, type Model } from "../mod.ts";
import { disguisedGpu } from "./support/disguised_gpu.ts";
import { fixturePath } from "./support/fixtures.ts";
import { gpuTest } from "./support/gpu.ts";
import { TINY_LLAMA } from "./support/models.ts";

/** A provider whose devices take sums with the wrong sign in shaders of such a name. */
async function wrongIn(names: RegExp, version: string): Promise<GpuProvider> {
  const provider = await disguisedGpu((device) => {
    const create = device.createShaderModule.bind(device);
    device.createShaderModule = ({ label = "", code }) =>
      create({ label, code: names.test(label) ? code.replaceAll("+=", "-=") : code });
    return device;
  }) as GpuProvider;
  return { ...provider, version };
}

/** What is found out about adapters that are not what they seem is kept for these tests alone. */
const cacheDir = await Deno.makeTempDir();
globalThis.addEventListener("unload", () => Deno.removeSync(cacheDir, { recursive: true }));

async function answer(model: Model): Promise<string> {
  const options = { maxTokens: 8, temperature: 0, ignoreEos: true };
  let text = "";
  for await (const part of generate(model, "ab", options)) text += part.text;
  return text;
}

const OPTIONS = { contextLength: 64, precision: "exact", cacheDir } as const;

async function expected(): Promise<string> {
  using model = await load(TINY_LLAMA, { ...OPTIONS, device: "wasm" });
  return await answer(model);
}

gpuTest("an adapter whose products are all wrong is left alone, with a note", async () => {
  const gpu = await wrongIn(/./, "all wrong");
  for (const device of ["auto", "gpu"] as const) {
    using model = await load(TINY_LLAMA, { ...OPTIONS, device, gpu });
    assertEquals([model.device, await answer(model)], ["wasm", await expected()]);
    assertMatch(
      model.notes.join(),
      /gpu_\w+.* computes? wrong on disguised: the model is computed on the CPU/,
    );
  }
});

gpuTest("a kernel that is wrong on an adapter is replaced by others, with a note", async () => {
  // What norms write in 8 bit is one op; without it two do the same.
  const gpu = await wrongIn(/^norm_matmul|^rms_norm_q8|^glu/, "some wrong");
  using model = await load(TINY_LLAMA, { contextLength: 64, device: "gpu", gpu, cacheDir });
  assertEquals(model.device, "gpu");
  assertMatch(model.notes.join(), /compute.* wrong on disguised: (other kernels|others) are used/);
  using plain = await load(TINY_LLAMA, { contextLength: 64, device: "gpu" });
  assertEquals(await answer(model), await answer(plain));
});

gpuTest("a node of a graph whose kernel is wrong is computed on the host", async () => {
  const path = fixturePath("public/pc-onnx-25/attn_kheads1.onnx");
  const gpu = await wrongIn(/./, "wrong in graphs");
  const results = await Promise.all(["gpu", "wasm"].map(async (device) => {
    using graph = await loadGraph(path, { device: device as "gpu" | "wasm", gpu, cacheDir });
    const inputs = Object.fromEntries(graph.inputs.map(({ name, dims }) => {
      const sizes = dims as readonly number[];
      const data = Float32Array.from(
        { length: sizes.reduce((a, b) => a * b, 1) },
        (_, i) => Math.sin(i),
      );
      return [name, { data, dims: sizes }];
    }));
    const outputs = await graph.run(inputs);
    if (device === "gpu") assertMatch(graph.notes.join(), /compute.* wrong on disguised/);
    return (Object.values(outputs) as { readonly data: Float32Array }[]).map(({ data }) =>
      [...data].map((x) => x.toFixed(3))
    );
  }));
  assertEquals(results[0], results[1]);
});

gpuTest(
  "what was found is kept, also of an adapter that is brought, until its version is another",
  async () => {
    const deviceOf = async (names: RegExp, version: string) => {
      using model = await load(TINY_LLAMA, { ...OPTIONS, gpu: await wrongIn(names, version) });
      return model.device;
    };
    assertEquals(await deviceOf(/./, "driver 1"), "wasm");
    assertEquals(await deviceOf(/never/, "driver 1"), "wasm");
    assertEquals(await deviceOf(/never/, "driver 2"), "gpu");
    assertEquals(await deviceOf(/./, "driver 2"), "gpu");
  },
);

gpuTest("a kernel that the driver refuses to compile is one that is wrong", async () => {
  const gpu = await disguisedGpu((device) => {
    const create = device.createComputePipelineAsync.bind(device);
    device.createComputePipelineAsync = (descriptor) =>
      /^matmul|^gemv/.test(descriptor.label ?? "")
        ? Promise.reject(new TypeError("compile failed"))
        : create(descriptor);
    return device;
  }) as GpuProvider;
  using model = await load(TINY_LLAMA, { ...OPTIONS, device: "gpu", gpu });
  assertEquals(await answer(model), await expected());
});
