// A diffusion pipeline as Optimum exports it, of graphs so small that what they compute can be written down.

import { assertAlmostEquals, assertEquals, assertRejects } from "@std/assert";
import { FormatError, UnsupportedError } from "../engine/errors.ts";
import { generateImage, loadImageModel } from "../mod.ts";
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { floats, type GraphParts, longs, writeOnnx } from "./support/write_onnx.ts";

const FLOAT = 1, LONG = 7, TOKENIZER = fixturePath("pictures/sd_toy/tokenizer");
const ADAPTER = fixturePath("pictures/sdxl_pipeline/adapter.safetensors");
const VOCABULARY = 624, WIDTH = 2;

const table = Array.from({ length: VOCABULARY * WIDTH }, (_, i) => (i % 7) / 7);

/** Rows of a table. */
const TEXT: GraphParts = {
  nodes: [{ op: "Gather", inputs: ["table", "input_ids"], outputs: ["last_hidden_state"] }],
  inputs: [["input_ids", LONG, ["batch", "sequence"]]],
  outputs: [["last_hidden_state", FLOAT, ["batch", "sequence", WIDTH]]],
  initializers: [{ name: "table", type: FLOAT, dims: [VOCABULARY, WIDTH], raw: floats(...table) }],
};

/** Half of the sample, and the mean of the states. */
const UNET: GraphParts = {
  nodes: [
    { op: "Mul", inputs: ["sample", "half"], outputs: ["halved"] },
    {
      op: "ReduceMean",
      inputs: ["encoder_hidden_states"],
      outputs: ["mean"],
      attributes: { axes: { ints: [1, 2] }, keepdims: { i: 1 } },
    },
    { op: "Unsqueeze", inputs: ["mean", "axis"], outputs: ["wide"] },
    { op: "Cast", inputs: ["timestep"], outputs: ["time"], attributes: { to: { i: FLOAT } } },
    { op: "Mul", inputs: ["time", "none"], outputs: ["nothing"] },
    { op: "Add", inputs: ["halved", "wide"], outputs: ["sum"] },
    { op: "Add", inputs: ["sum", "nothing"], outputs: ["out_sample"] },
  ],
  inputs: [
    ["sample", FLOAT, ["batch", 4, "height", "width"]],
    ["timestep", LONG, []],
    ["encoder_hidden_states", FLOAT, ["batch", "sequence", WIDTH]],
  ],
  outputs: [["out_sample", FLOAT, ["batch", 4, "height", "width"]]],
  initializers: [
    { name: "half", type: FLOAT, dims: [], raw: floats(0.5) },
    { name: "none", type: FLOAT, dims: [], raw: floats(0) },
    { name: "axis", type: LONG, dims: [1], raw: longs(3) },
  ],
};

/** A picture of the first three channels, each latent a square of four pixels; and back, drawn already. */
const ONES = floats(
  ...Array.from({ length: 48 }, (_, i) => Math.floor(i / 12) === Math.floor(i / 4) % 3 ? 1 : 0),
);
const DECODER: GraphParts = {
  nodes: [{
    op: "ConvTranspose",
    inputs: ["latent_sample", "w"],
    outputs: ["sample"],
    attributes: { strides: { ints: [2, 2] } },
  }],
  inputs: [["latent_sample", FLOAT, ["batch", 4, "height", "width"]]],
  outputs: [["sample", FLOAT, ["batch", 3, "rows", "columns"]]],
  initializers: [{ name: "w", type: FLOAT, dims: [4, 3, 2, 2], raw: ONES }],
};
const ENCODER: GraphParts = {
  nodes: [{
    op: "Conv",
    inputs: ["sample", "w"],
    outputs: ["latent_sample"],
    attributes: { strides: { ints: [2, 2] } },
  }],
  inputs: [["sample", FLOAT, ["batch", 3, "rows", "columns"]]],
  outputs: [["latent_sample", FLOAT, ["batch", 4, "height", "width"]]],
  initializers: [{
    name: "w",
    type: FLOAT,
    dims: [4, 3, 2, 2],
    raw: floats(...new Array<number>(48).fill(1 / 12)),
  }],
};

function writePipeline(folder: string): void {
  const part = (name: string, graph: GraphParts, config: object) => {
    Deno.mkdirSync(`${folder}/${name}`);
    Deno.writeFileSync(`${folder}/${name}/model.onnx`, writeOnnx(graph));
    Deno.writeTextFileSync(`${folder}/${name}/config.json`, JSON.stringify(config));
  };
  const vae = { block_out_channels: [1, 1], latent_channels: 4, scaling_factor: 2 };
  part("text_encoder", TEXT, {});
  part("unet", UNET, { sample_size: 3, in_channels: 4, cross_attention_dim: WIDTH });
  part("vae_decoder", DECODER, vae);
  part("vae_encoder", ENCODER, vae);
  for (const name of ["tokenizer", "scheduler"]) Deno.mkdirSync(`${folder}/${name}`);
  for (const { name } of Deno.readDirSync(TOKENIZER)) {
    Deno.copyFileSync(`${TOKENIZER}/${name}`, `${folder}/tokenizer/${name}`);
  }
  const scheduler = { _class_name: "DDIMScheduler", set_alpha_to_one: true };
  Deno.writeTextFileSync(
    `${folder}/scheduler/scheduler_config.json`,
    JSON.stringify(scheduler),
  );
  const index = { _class_name: "ORTStableDiffusionPipeline" };
  Deno.writeTextFileSync(`${folder}/model_index.json`, JSON.stringify(index));
}

Deno.test("a pipeline of ONNX files paints, changes pictures, and refuses what it cannot do", () =>
  withFolder(async (folder) => {
    writePipeline(folder);
    using model = await loadImageModel(folder, { device: "wasm", threads: 1 });
    assertEquals([model.factor, model.size], [2, 6]);
    const options = { steps: 1, guidance: 2, seed: 1, latents: new Float32Array(36).fill(1) };
    const { picture, latents } = await generateImage(model, "a cat", options);
    assertEquals([picture.width, picture.height], [6, 6]);
    // The mean over the states of 77 ids, of the prompt and of nothing.
    const tokens = { prompt: [622, 320, 520, 623], negative: [622, 623] };
    const mean = (ids: readonly number[]) => {
      const all = [...ids, ...new Array<number>(77 - ids.length).fill(623)];
      return all.reduce((sum, id) => sum + table[2 * id]! + table[2 * id + 1]!, 0) / (77 * WIDTH);
    };
    const base = 0.5 + mean(tokens.negative);
    const said = base + 2 * (0.5 + mean(tokens.prompt) - base);
    // One step of DDIM from timestep 1 to none at all: the picture that the network has in mind.
    const variance = [0.0001, 0.0001 + (0.02 - 0.0001) / 999];
    const share = (1 - variance[0]!) * (1 - variance[1]!);
    const clean = (1 - Math.sqrt(1 - share) * said) / Math.sqrt(share);
    for (const value of latents) assertAlmostEquals(value, clean, 1e-4);
    assertEquals(picture.data[0], Math.round(Math.min(1, clean / 2 / 2 + 0.5) * 255));
    const changed = await generateImage(model, "a cat", { ...options, init: picture, strength: 1 });
    assertEquals(changed.picture.width, 6);
    await assertRejects(
      () => loadImageModel(folder, { device: "wasm", adapters: [{ path: ADAPTER }] }),
      UnsupportedError,
      "adapters are added to weights",
    );
    const config = { cross_attention_dim: 5 };
    Deno.writeTextFileSync(`${folder}/unet/config.json`, JSON.stringify(config));
    await assertRejects(
      () => loadImageModel(folder, { device: "wasm" }),
      FormatError,
      "states of 2 numbers, and the network takes 5",
    );
  }));
