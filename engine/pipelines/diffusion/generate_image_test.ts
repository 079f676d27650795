import { assert, assertAlmostEquals, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { FormatError, ResourceError, SourceError, UnsupportedError } from "../../errors.ts";
import { openSafetensors } from "../../formats/safetensors/safetensors.ts";
import { memorySource } from "../../io.ts";
import { load } from "../../models/load.ts";
import type { Network } from "../../models/networks/network.ts";
import type { DeviceName } from "../../run/backend.ts";
import { fixturePath } from "../../../tests/support/fixtures.ts";
import { withFolder } from "../../../tests/support/folder.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { expectClose, floats, readJson } from "../../../tools/fixtures/case.ts";
import { diffusionCases } from "../../../tools/fixtures/diffusion.ts";
import type { StoredTensor } from "../../../tools/fixtures/picture_models.ts";
import { createAutoencoder, planesOf } from "./autoencoder.ts";
import { type DiffusersFolder, diffusersFolder, openDiffusersFolder } from "./diffusers_folder.ts";
import { generateImage, type GenerateImageOptions } from "./generate_image.ts";
import { guidanceWaves } from "./guidance_waves.ts";
import { createGuided } from "./guided.ts";
import { imageModelOf, partsOf } from "./image_model.ts";
import { loadImageModel } from "./load_image_model.ts";
import { openImageModel } from "./open_image_model.ts";
import { maskOf } from "./masks.ts";
import { promptIds } from "./prompt_ids.ts";
import { readPrompt } from "./prompts.ts";
import type { SchedulerChoice } from "./scheduler_names.ts";
import { planSteps } from "./schedulers/plan_steps.ts";
import { torchNoise } from "./torch_noise.ts";

const FOLDER = fixturePath("pictures"), MODEL = `${FOLDER}/sd_toy`;
const XL = `${FOLDER}/sdxl_pipeline`;
const SMALL = { steps: 3, width: 16, height: 12, seed: 3 } as const;
const WASM = { device: "wasm", threads: 1 } as const;

/** What diffusers makes of seeds (tools/fixtures/make_seeds.py). */
interface Seeds {
  readonly prompt: string;
  readonly width: number;
  readonly height: number;
  readonly steps: number;
  readonly seed: number;
  readonly guidance: number;
  readonly cases: readonly {
    readonly kind: "change" | "mask";
    readonly scheduler: SchedulerChoice | null;
    readonly strength: number;
    readonly latents: StoredTensor;
  }[];
}

const states = (value: number) => ({
  encoder_hidden_states: { data: Float32Array.of(value), dims: [1, 1] },
});

/** Networks of the fixtures on a device; wasm computes whole pipelines in tests/pictures_test.ts. */
async function checkOn(device: DeviceName): Promise<void> {
  for (const model of ["sd_toy", "pixart_toy", "sd3_pipeline"]) {
    for (const { name, run } of diffusionCases(FOLDER, model, { device, full: false })) {
      if (/unet|forward|sd3/.test(name)) await run!();
    }
  }
}

Deno.test("the reference computes UNet and transformer as diffusers does", () =>
  checkOn("reference"));

gpuTest("WebGPU computes UNet and transformer as diffusers does", () => checkOn("gpu"));

gpuTest("an adapter without f16 reads float16 weights of a pipeline", async () => {
  const adapter = (await (navigator as Navigator & { gpu: GPU }).gpu.requestAdapter())!;
  const features = new Set([...adapter.features].filter((name) => name !== "shader-f16"));
  let asked: readonly string[] = [];
  const narrow = new Proxy(adapter, {
    get(target, name) {
      if (name === "features") return features;
      if (name !== "requestDevice") return Reflect.get(target, name, target);
      return (descriptor: GPUDeviceDescriptor) => {
        asked = [...descriptor.requiredFeatures ?? []];
        return target.requestDevice(descriptor);
      };
    },
  });
  const gpu = { requestAdapter: () => Promise.resolve(narrow) };
  using model = await loadImageModel(XL, { device: "gpu", gpu });
  using other = await loadImageModel(XL, WASM);
  const read = async (of: typeof model) => {
    const { prompts } = partsOf(of);
    return (await readPrompt(prompts, "a red cat", { onDropped: () => {} })).encoder_hidden_states!;
  };
  const wanted = (await read(other)).data;
  (await read(model)).data.forEach((value, i) => assertAlmostEquals(value, wanted[i]!, 1e-3));
  assertEquals([model.device, asked.includes("shader-f16")], ["gpu", false]);
});

Deno.test("a seed, however guidance is computed, gives one picture; others give others", async () => {
  using model = await loadImageModel(MODEL, WASM);
  const paint = (options: GenerateImageOptions) =>
    generateImage(model, "a red cat", { ...SMALL, ...options });
  const first = await paint({});
  assertEquals(first.seed, 3);
  assertEquals([first.picture.width, first.picture.height], [16, 12]);
  assertEquals((await paint({})).picture, first.picture);
  const split = await paint({ splitGuidance: true });
  split.latents.forEach((value, i) => assertAlmostEquals(value, first.latents[i]!, 1e-4));
  assert((await paint({ seed: 4 })).latents.some((value, i) => value !== first.latents[i]));
  const without = await paint({ guidance: 1 }), negative = await paint({ negative: "a cat" });
  assert(without.latents.some((value, i) => value !== first.latents[i]));
  assert(negative.latents.some((value, i) => value !== first.latents[i]));
  const { notes } = await generateImage(model, "a red cat ".repeat(40), { ...SMALL, guidance: 1 });
  assertEquals(notes.map((note) => note.replace(/\d+/g, "N")), [
    "N tokens of a prompt were cut off: N fit",
  ]);
  const noisy = await paint({ scheduler: "euler-a" });
  assertEquals((await paint({ scheduler: "euler-a" })).latents, noisy.latents);
});

Deno.test("progress tells each step with a preview, and a signal ends between steps", async () => {
  using model = await loadImageModel(MODEL, WASM);
  const seen: number[] = [], sizes: number[] = [];
  await generateImage(model, "a red cat", {
    ...SMALL,
    async onProgress({ step, steps, preview }) {
      seen.push(step / steps);
      sizes.push((await preview()).data.length);
    },
  });
  assertEquals(seen, [1 / 3, 2 / 3, 1]);
  assertEquals(sizes, [576, 576, 576]);
  const controller = new AbortController();
  let steps = 0;
  const ended = generateImage(model, "a red cat", {
    ...SMALL,
    signal: controller.signal,
    onProgress() {
      steps++;
      controller.abort();
    },
  });
  await assertRejects(() => ended, DOMException);
  assertEquals(steps, 1);
});

Deno.test("a picture is changed by strength, and outside of a mask not at all", async () => {
  using model = await loadImageModel(MODEL, WASM);
  const { picture: init } = await generateImage(model, "a red cat", SMALL);
  const change = (options: GenerateImageOptions) =>
    generateImage(model, "a glass prism", { ...SMALL, init, ...options });
  const little = await change({ strength: 0.34 }), much = await change({ strength: 1 });
  const from = (await partsOf(model).autoencoder.encode(planesOf(init), torchNoise(3).randn)).data;
  const distance = ({ latents }: { latents: Float32Array }) =>
    latents.reduce((sum, value, i) => sum + (value - from[i]!) ** 2, 0);
  assert(distance(little) < distance(much));
  // The right half is to be painted.
  const mask = {
    width: 16,
    height: 12,
    data: new Uint8Array(576).map((_, i) => i % 48 < 24 ? 0 : 255),
  };
  for (const scheduler of ["ddim", "plms", "euler", "dpm++2m"] as const) {
    const { latents } = await change({ mask, scheduler, strength: 0.67 });
    const { latents: kept } = maskOf(mask, { width: 16, height: 12, factor: 2 });
    const changed = latents.filter((value, i) => Math.abs(value - from[i]!) > 1e-5);
    assertEquals(changed.length, 4 * kept.reduce((sum, value) => sum + value, 0), scheduler);
  }
  // Latents of an earlier result are taken as they are.
  const again = await change({ init: from, strength: 0.34, latents: torchNoise(9).randn(192) });
  assertEquals(again.picture.width, 16);
});

Deno.test("what is asked for and counts for nothing is told", async () => {
  using model = await loadImageModel(MODEL, WASM);
  const notesOf = async (options: GenerateImageOptions) =>
    (await generateImage(model, "a cat", { ...SMALL, steps: 1, ...options })).notes;
  const asked = { negative: "dogs", guidance: 1, eta: 0.5, scheduler: "euler" } as const;
  assertEquals(await notesOf(asked), [
    "eta was left out: the scheduler ddim alone draws noise by it",
    "the negative prompt was left out: it counts where guidance is above 1",
  ]);
  assertEquals(await notesOf({ ...asked, guidance: 2, scheduler: "ddim" }), []);
});

Deno.test("a seed gives the picture of diffusers where one is changed or filled in, too", async () => {
  using model = await loadImageModel(MODEL, WASM);
  const { prompt, cases, ...common } = readJson<Seeds>(`${FOLDER}/seeds.json`);
  const size = { width: common.width, height: common.height }, count = size.width * size.height;
  const data = Uint8Array.from({ length: 3 * count }, (_, i) => (7 * i + Math.floor(i / 5)) % 251);
  const bright = Uint8Array.from({ length: 3 * count }, (_, i) => i % 48 >= 24 ? 255 : 0);
  for (const { kind, scheduler, strength, latents: wanted } of cases) {
    const { latents } = await generateImage(model, prompt, {
      ...{ ...common, init: { ...size, data }, strength },
      ...kind === "mask" && { mask: { ...size, data: bright } },
      ...scheduler && { scheduler },
    });
    const what = `${kind} ${scheduler ?? "own"} ${strength}`;
    expectClose(latents, floats(wanted), 1e-4, what);
  }
});

Deno.test("where all of a mask's inside is made anew, a network that fills in begins with noise", async () => {
  using model = await loadImageModel(MODEL, WASM);
  const parts = partsOf(model), width = 16, height = 12, count = 4 * 8 * 6;
  const samples: Float32Array[] = [];
  const denoiser: Network = {
    run({ sample }) {
      samples.push(sample!.data.slice() as Float32Array);
      return Promise.resolve(resultOf(...new Float32Array(2 * count)));
    },
    release: () => Promise.resolve(),
    [Symbol.dispose]() {},
  };
  const filling = imageModelOf({ ...parts, denoiser, config: { ...parts.config, in_channels: 9 } });
  const init = { width, height, data: new Uint8Array(3 * width * height).fill(99) };
  await generateImage(filling, "a cat", { steps: 1, seed: 5, init, mask: init });
  // As of a picture out of noise alone: nothing is drawn before it.
  assertEquals(samples[0]!.slice(0, count), torchNoise(5).randn(count));
});

const resultOf = (...values: number[]) => new Map([["out", Float32Array.from(values)]]);

Deno.test("a network that fills in is shown mask and picture behind the sample", async () => {
  const calls: number[][] = [];
  const network: Network = {
    run({ sample, timestep, encoder_hidden_states: states }) {
      calls.push([...sample!.dims, ...sample!.data, ...timestep!.data, ...states!.data]);
      return Promise.resolve(resultOf(1, 2));
    },
    release: () => Promise.resolve(),
    [Symbol.dispose]() {},
  };
  const conditions = {
    ...{ sample: "sample", prompt: states(7), negative: states(8), guidance: 3 },
    more: Float32Array.of(5, 6),
  };
  const dims = [1, 1, 1, 1];
  const guided = createGuided(network, { dims, conditions });
  guided.input[0] = 4;
  assertEquals([...await guided.ask(9)], [4], "1 + 3 · (2 - 1)");
  assertEquals(calls, [[2, 3, 1, 1, 4, 5, 6, 4, 5, 6, 9, 9, 8, 7]]);
});

Deno.test("a network that was distilled with guidance is told of it and asked once", async () => {
  const folder = await openDiffusersFolder(MODEL);
  const withCondition = (values: Float32Array): DiffusersFolder => ({
    ...folder,
    async open(part, otherwise) {
      const found = await folder.open(part, otherwise);
      if (part !== "unet" || found.kind !== "weights") return found;
      const source = memorySource("condition", new Uint8Array(values.buffer));
      const name = "time_embedding.cond_proj.weight";
      const bytes = { offset: 0, byteLength: values.byteLength };
      const tensor = { name, shape: [8, 4], format: "F32", source, ...bytes };
      const tensors = new Map([...found.file.tensors, [name, tensor]]);
      const metadata = new Map([...found.file.metadata, ["time_cond_proj_dim", 4]]);
      return { ...found, file: { ...found.file, tensors, metadata } };
    },
  });
  const paint = async (values: Float32Array, guidance: number) => {
    using model = await openImageModel(withCondition(values), WASM);
    const options = { ...SMALL, guidance, scheduler: "lcm" } as const;
    return (await generateImage(model, "a red cat", options)).latents;
  };
  const unmoved = await paint(new Float32Array(32), 1);
  assertEquals(await paint(new Float32Array(32), 8), unmoved);
  const moved = await paint(new Float32Array(32).fill(0.5), 8);
  assert(moved.some((value, i) => value !== unmoved[i]));
  // Sines, then cosines of a thousand times what guidance adds.
  const [slow, fast] = [7000 / 10_000, 7000];
  const waves = [Math.sin(fast), Math.sin(slow), Math.cos(fast), Math.cos(slow)];
  guidanceWaves(8, 4).forEach((value, i) => assertAlmostEquals(value, waves[i]!, 1e-6));
});

Deno.test("where memory is short guidance takes two runs, and says so", async () => {
  let released = 0;
  const network: Network = {
    run({ sample, encoder_hidden_states: states }) {
      if (sample!.dims[0] === 2) return Promise.reject(new ResourceError("too much"));
      return Promise.resolve(resultOf(...states!.data));
    },
    release: () => Promise.resolve(void released++),
    [Symbol.dispose]() {},
  };
  const conditions = {
    ...{ sample: "sample", prompt: states(7), negative: states(8), guidance: 3 },
  };
  const dims = [1, 1, 1, 1];
  const guided = createGuided(network, { dims, conditions });
  assertEquals([...await guided.ask(1)], [5], "8 + 3 · (7 - 8)");
  assertEquals([guided.isSplit, released], [true, 1]);
  const joined = createGuided(network, { dims, conditions: { ...conditions, split: false } });
  await assertRejects(() => joined.ask(1), ResourceError, "too much");
});

Deno.test("a pipeline may leave its T5 out, and its scheduler is its own", async () => {
  const folder = await openDiffusersFolder(`${FOLDER}/sd3_pipeline`);
  const index = { ...folder.index, text_encoder_3: [null, null], tokenizer_3: [null, null] };
  using model = await openImageModel({ ...folder, index }, WASM);
  const { prompts } = partsOf(model);
  const read = (text: string) => readPrompt(prompts, text, { onDropped: () => {} });
  const { encoder_hidden_states: states } = await read("a red cat");
  assertEquals(states!.dims, [77 + 256, 36]);
  assert(states!.data.subarray(0, 77 * 36).some((value) => value !== 0));
  assert(states!.data.subarray(77 * 36).every((value) => value === 0));
  assertEquals(model.factor, 4, "pixels of a latent times latents of a patch");
  const options = { steps: 1, width: 16, height: 16, seed: 1, guidance: 1 };
  assertEquals((await generateImage(model, "a cat", options)).picture.width, 16);
  await assertRejects(
    () => generateImage(model, "a cat", { ...options, scheduler: "ddim" }),
    UnsupportedError,
    'scheduler "ddim" does not fit FlowMatchEulerDiscreteScheduler',
  );
});

Deno.test("outside of a mask flow matching has the picture with as much noise as each step", async () => {
  using model = await loadImageModel(`${FOLDER}/sd3_pipeline`, WASM);
  const size = { width: 16, height: 16 }, data = new Uint8Array(768).map((_, i) => i % 251);
  const init = { ...size, data };
  const noise = torchNoise(5).randn(6 * 64), seed = 3, left: number[] = [];
  const { autoencoder } = partsOf(model);
  const picture = (await autoencoder.encode(planesOf(init), torchNoise(seed).randn)).data;
  const config = partsOf(model).scheduler, strength = 0.7, steps = 5;
  const { timesteps } = planSteps(config, { steps, strength });
  await generateImage(model, "a cat", {
    ...{ ...size, init, seed, latents: noise, steps, strength, guidance: 1 },
    mask: { ...size, data: new Uint8Array(768) },
    onProgress({ step, latents }) {
      const sigma = (timesteps[step] ?? 0) / 1000;
      left.push(sigma);
      latents.forEach((value, i) =>
        assertAlmostEquals(value, (1 - sigma) * picture[i]! + sigma * noise[i]!, 1e-4)
      );
    },
  });
  assertEquals([left.length, left.at(-1)], [4, 0], "steps that are left out are cut to whole ones");
});

Deno.test("where memory is short a large picture is decoded in tiles, and says so", async () => {
  let released = 0, told = 0;
  const decoder: Network = {
    run({ latent_sample: { data, dims } = { data: NOTHING, dims: [] } }) {
      if (dims[2]! > 4 || dims[3]! > 4) return Promise.reject(new ResourceError("too much"));
      // Each latent is one pixel of three colours.
      return Promise.resolve(resultOf(...data, ...data, ...data));
    },
    release: () => Promise.resolve(void released++),
    [Symbol.dispose]() {},
  };
  const config = { latent_channels: 1, block_out_channels: [4], sample_size: 4, scaling_factor: 1 };
  const autoencoder = createAutoencoder(config, { decoder, encoder: decoder });
  const data = Float32Array.from({ length: 63 }, (_, i) => i / 31 - 1), dims = [1, 1, 7, 9];
  const onTiles = () => void told++;
  const picture = await autoencoder.decode({ data, dims }, { onTiles });
  // What is the same in neighbours stays as it is where they fade into each other.
  data.forEach((value, i) =>
    assertEquals(picture.data[3 * i], Math.round(255 * Math.min(1, value / 2 + 0.5)))
  );
  assertEquals([told, released], [1, 2]);
  const whole = autoencoder.decode({ data, dims }, { tiles: false });
  await assertRejects(() => whole, ResourceError, "too much");
});

const NOTHING = new Float32Array(0);

Deno.test("what cannot be painted is refused by name", async () => {
  using model = await loadImageModel(MODEL, WASM);
  const init = { width: 16, height: 12, data: new Uint8Array(576) };
  const wide = { width: 4100, height: 2, data: new Uint8Array(3 * 8200) };
  // deno-lint-ignore no-explicit-any -- as the assertion has it
  const wrong: [GenerateImageOptions, new (...args: any[]) => Error, string][] = [
    [{ width: 17 }, RangeError, "width must be a multiple of 2 and at most 4096, not 17"],
    [{ height: 0 }, RangeError, "height must be a multiple of 2 and at most 4096, not 0"],
    [{ width: 100_000, height: 64 }, RangeError, "width must be a multiple of 2 and at most 4096"],
    [{ width: 64, height: 4098 }, RangeError, "height must be a multiple of 2 and at most 4096"],
    [{ width: Infinity }, RangeError, "at most 4096, not Infinity"],
    [
      { width: undefined, init: wide },
      RangeError,
      "width must be a multiple of 2 and at most 4096, not 4100",
    ],
    [{ scheduler: "heun" as "ddim" }, UnsupportedError, 'scheduler "heun" is not known'],
    [{ steps: 0 }, RangeError, "steps must be a whole number from 1"],
    [{ seed: -1 }, RangeError, "seed must be"],
    [{ guidance: NaN }, RangeError, "guidance must be a number"],
    [{ strength: 0.5 }, TypeError, "give init"],
    [{ mask: init }, TypeError, "give init"],
    [{ init: "fox.png" as never }, TypeError, "what readPicture() returns"],
    [{ init, mask: { ...init, width: 1 } }, RangeError, "picture of 1 × "],
    [{ init, strength: 0 }, RangeError, "strength must be"],
    [{ latents: new Float32Array(3) }, RangeError, "latents has 3 numbers where [1,4,6,8]"],
    [{ stepz: 3 } as GenerateImageOptions, RangeError, "Did you mean steps?"],
  ];
  for (const [options, kind, message] of wrong) {
    await assertRejects(() => generateImage(model, "", { ...SMALL, ...options }), kind, message);
  }
  assertThrows(() => partsOf({ ...model }), TypeError, "loadImageModel()");
});

Deno.test("options of loading that there are not are refused by name", async () => {
  const refused = (options: unknown, kind: ErrorConstructor, message: string) =>
    assertRejects(() => loadImageModel(MODEL, options as typeof WASM), kind, message);
  await refused({ device: "cuda" }, RangeError, 'device "cuda": it is one of auto, wasm, gpu');
  await refused({ threads: 0 }, RangeError, "threads 0");
  await refused({ maxSubmitMs: 1 }, RangeError, 'without priority "low"');
  await refused({ adapters: ["a.safetensors"] }, TypeError, "list of { path, scale }");
  await refused({ precision: "half" }, RangeError, 'precision "half": it is one of fast, exact');
});

Deno.test("texts of control tokens in a prompt are these tokens, as in diffusers", async () => {
  const { tokenizer } = await (await openDiffusersFolder(MODEL)).texts("tokenizer");
  const text = "a <|endoftext|> b <|startoftext|> c";
  const { ids } = promptIds(tokenizer, { text, length: 8 });
  // CLIPTokenizer of transformers 5.24.0, padded to 8.
  assertEquals(ids, [622, 320, 623, 321, 622, 322, 623, 623]);
});

Deno.test("weights that are halves in shards are found by the index that diffusers writes", () =>
  withFolder(async (folder) => {
    const names = ["model.fp16-00001-of-00001.safetensors", "model.safetensors.index.fp16.json"];
    const bytes = Deno.readFileSync(`${MODEL}/text_encoder/model.safetensors`);
    const whole = await openSafetensors(memorySource("whole", bytes));
    const map = Object.fromEntries([...whole.tensors.keys()].map((name) => [name, names[0]]));
    Deno.mkdirSync(`${folder}/text_encoder`);
    Deno.writeFileSync(`${folder}/text_encoder/${names[0]}`, bytes);
    const index = JSON.stringify({ weight_map: map });
    Deno.writeTextFileSync(`${folder}/text_encoder/${names[1]}`, index);
    Deno.writeTextFileSync(`${folder}/text_encoder/config.json`, "{}");
    const part = await diffusersFolder(folder, { _class_name: "P" }).open("text_encoder");
    assert(part.kind === "weights");
    assertEquals(part.file.tensors.size, whole.tensors.size);
    part.file.close();
  }));

Deno.test("folders that are no pipeline, and parts that do not fit, are refused by name", async () => {
  await assertRejects(() => loadImageModel(fixturePath("models")), SourceError, "model_index.json");
  await assertRejects(() => load(MODEL), UnsupportedError, "loadImageModel(), or troodon image");
  await assertRejects(
    () => openImageModel(diffusersFolder(MODEL, { _class_name: "FluxPipeline" }), WASM),
    UnsupportedError,
    "pipeline FluxPipeline is not built",
  );
  const folder = await openDiffusersFolder(MODEL);
  const swapped = (change: Record<string, unknown>) => ({
    ...folder,
    async open(part: string, otherwise?: string) {
      const found = await folder.open(part, otherwise);
      if (part !== "unet" || found.kind !== "weights") return found;
      const metadata = new Map([...found.file.metadata, ...Object.entries(change)]);
      return { ...found, file: { ...found.file, metadata } } as typeof found;
    },
  });
  await assertRejects(
    () => openImageModel(swapped({ cross_attention_dim: 48 }), WASM),
    FormatError,
    "states of 32 numbers, and the network takes 48",
  );
  await assertRejects(
    () => openImageModel(swapped({ time_embedding_type: "fourier" }), WASM),
    UnsupportedError,
    '"fourier" is not built',
  );
  using other = await openImageModel(swapped({ block_out_channels: [8, 32] }), WASM);
  await assertRejects(
    () => generateImage(other, "", SMALL),
    FormatError,
    "has shape [16] where [32] is needed",
  );
});
