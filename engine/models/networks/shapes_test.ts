import { assert, assertEquals } from "@std/assert";
import type { TensorInfo } from "../../formats/source.ts";
import { memorySource } from "../../io.ts";
import { openDevice } from "../../run/devices.ts";
import { buildNetwork, type TensorSource } from "./build_network.ts";
import { planNetwork } from "./network.ts";
import { readNetworkConfig } from "./network_config.ts";
import { chooseNetworkSpec } from "./specs/mod.ts";

const source = memorySource("none", new Uint8Array(0));

/** Tensors of whatever shape is asked for: a plan reads none. */
const SHAPES: TensorSource = {
  get: (name, shape): TensorInfo | undefined =>
    /\.to_[qkv]\.bias$|^text_projection\.bias$/.test(name)
      ? undefined
      : { name, shape, format: "F16", source, offset: 0, byteLength: 0 },
};

function partsOf(config: Readonly<Record<string, unknown>>) {
  const spec = chooseNetworkSpec(config, "config.json");
  const { names, warnings } = readNetworkConfig(spec, { given: config, file: "config.json" });
  assertEquals(warnings, []);
  return { spec, names, tensors: SHAPES, file: "config.json" };
}

function parameters({ graph }: ReturnType<typeof buildNetwork>): number {
  const weights = new Map(
    graph.nodes.flatMap(({ inputs }) => inputs)
      .filter((value) => value?.role === "weight").map((value) => [value!.name, value!.shape]),
  );
  return [...weights.values()].reduce(
    (sum, shape) => sum + (shape as number[]).reduce((a, b) => a * b, 1),
    0,
  );
}

const MiB = 2 ** 20;
const SD1 = { _class_name: "UNet2DConditionModel", cross_attention_dim: 768, sample_size: 64 };
const SD2 = { ...SD1, cross_attention_dim: 1024, attention_head_dim: [5, 10, 20, 20] };

Deno.test("the networks of Stable Diffusion 1.4 and 2.1 are planned on their shapes alone", async () => {
  const devices = [await openDevice("wasm", {}), await openDevice("gpu", {})];
  const dims = { height: 64, width: 64, tokens: 77 };
  // Published sizes: 859,520,964 and 865,910,724 parameters.
  for (const [config, count] of [[SD1, 859_520_964], [SD2, 865_910_724]] as const) {
    const build = (batch: number) =>
      buildNetwork({ ...partsOf(config), network: "unet", dims: { ...dims, batch } });
    const one = build(1);
    assertEquals(parameters(one), count);
    for (const device of devices) {
      const arena = (built: typeof one, floatBytes: 2 | 4) =>
        planNetwork(built.graph, { device, floatBytes }).arenaBytes / MiB;
      // On the GPU gates are applied within products, so what they gate is never stored.
      const two = build(2), [most, mostOfTwo] = device.reusesInputs ? [66, 131] : [55, 105];
      assert(arena(one, 2) <= 55, `${arena(one, 2)} MiB`);
      assert(arena(two, 2) <= 105, `${arena(two, 2)} MiB`);
      assert(arena(one, 4) <= most, `${arena(one, 4)} MiB`);
      assert(arena(two, 4) <= mostOfTwo, `${arena(two, 4)} MiB`);
    }
  }
});

Deno.test("the autoencoder of Stable Diffusion has the parameters of the published one", () => {
  const channels = [128, 256, 512, 512];
  const vae = partsOf({
    _class_name: "AutoencoderKL",
    block_out_channels: channels,
    down_block_types: channels.map(() => "DownEncoderBlock2D"),
    up_block_types: channels.map(() => "UpDecoderBlock2D"),
    layers_per_block: 2,
  });
  const dims = { batch: 1, height: 64, width: 64 };
  const all = { decoder: 0, encoder: 0 };
  for (const network of ["decoder", "encoder"] as const) {
    all[network] = parameters(buildNetwork({ ...vae, network, dims }));
  }
  // Biases of queries, keys and values are found under the names of older files.
  assertEquals(all.decoder + all.encoder, 83_653_863);
});

const XL = {
  ...SD1,
  down_block_types: ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
  up_block_types: ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
  block_out_channels: [320, 640, 1280],
  transformer_layers_per_block: [1, 2, 10],
  attention_head_dim: [5, 10, 20],
  cross_attention_dim: 2048,
  addition_embed_type: "text_time",
  addition_time_embed_dim: 256,
  projection_class_embeddings_input_dim: 2816,
};
const CLIP_L = {
  architectures: ["CLIPTextModel"],
  ...{ hidden_size: 768, intermediate_size: 3072, num_attention_heads: 12 },
};
const CLIP_G = {
  architectures: ["CLIPTextModelWithProjection"],
  ...{ hidden_size: 1280, intermediate_size: 5120, num_attention_heads: 20 },
  ...{ num_hidden_layers: 32, projection_dim: 1280, hidden_act: "gelu" },
};
const T5_XXL = {
  architectures: ["T5EncoderModel"],
  ...{ d_model: 4096, d_ff: 10240, num_heads: 64, num_layers: 24, feed_forward_proj: "gated-gelu" },
};

Deno.test("Stable Diffusion XL and the text encoders of pipelines have the parameters of the published ones", () => {
  const plain: TensorSource = {
    get: (name, shape) => name.endsWith(".bias") ? undefined : SHAPES.get(name, shape),
  };
  const cases = [
    { config: XL, network: "unet", count: 2_567_463_684 },
    { config: CLIP_L, network: "text", count: 123_060_480 },
    { config: CLIP_G, network: "text", count: 694_659_840 },
    { config: T5_XXL, network: "text", count: 4_762_310_656, tensors: plain },
  ];
  const dims = { batch: 1, height: 128, width: 128, tokens: 77 };
  for (const { config, network, count, tensors = SHAPES } of cases) {
    const built = buildNetwork({ ...partsOf(config), tensors, network, dims });
    assertEquals(parameters(built), count);
  }
});
