import { assert, assertAlmostEquals, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { getFormat } from "../../../quant/mod.ts";
import { fixturePath } from "../../../tests/support/fixtures.ts";
import { withFolder } from "../../../tests/support/folder.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { openSafetensors } from "../../formats/safetensors/safetensors.ts";
import { createSafetensorsHead } from "../../formats/safetensors/write.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { memorySource, openFile } from "../../io.ts";
import { openDevice } from "../../run/devices.ts";
import { readConstant } from "../constants.ts";
import { openLowRank } from "./low_rank.ts";
import { firstOf, openNetwork, readNetworkFile } from "./network.ts";

const UNET = fixturePath("pictures/sd_toy/unet");
const BLOCK = "down_blocks.0.attentions.0.transformer_blocks.0";

type Tensors = Readonly<Record<string, readonly [shape: readonly number[], values: Float32Array]>>;

function write(path: string, tensors: Tensors, metadata: Record<string, string> = {}): void {
  const format = getFormat("F32"), all = Object.entries(tensors);
  const head = createSafetensorsHead(
    all.map(([name, [shape, values]]) => ({ name, shape, format, byteLength: values.byteLength })),
    { metadata },
  );
  const parts = [head, ...all.map(([, [, values]]) => new Uint8Array(values.buffer))];
  Deno.writeFileSync(path, new Uint8Array(parts.flatMap((part) => [...part])));
}

function random(length: number, seed: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length }, () => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return 0.2 * (state / 2 ** 31 - 0.5);
  });
}

/** W + factor · up down, of matrices and of windows. */
async function changedWeight(
  weight: TensorInfo,
  { down, up, factor }: {
    readonly down: Float32Array;
    readonly up: Float32Array;
    readonly factor: number;
  },
): Promise<TensorInfo> {
  const values = await readConstant(weight), rows = weight.shape[0]!;
  const columns = values.length / rows, rank = up.length / rows;
  for (let i = 0; i < values.length; i++) {
    const row = Math.floor(i / columns), column = i % columns;
    for (let r = 0; r < rank; r++) {
      values[i]! += factor * up[row * rank + r]! * down[r * columns + column]!;
    }
  }
  const source = memorySource("changed", new Uint8Array(values.buffer));
  return { ...weight, format: "F32", source, offset: 0, byteLength: values.byteLength };
}

async function readUnet() {
  const weights = await openSafetensors(openFile(`${UNET}/diffusion_pytorch_model.safetensors`));
  const config = JSON.parse(Deno.readTextFileSync(`${UNET}/config.json`));
  return readNetworkFile({ ...weights, metadata: new Map(Object.entries(config)) });
}

Deno.test("an adapter of any notation computes what weights do that it was added to", async () => {
  const layers = {
    [`${BLOCK}.attn1.to_q`]: [[2, 8], [8, 2]],
    [`${BLOCK}.attn1.to_out.0`]: [[2, 8], [8, 2]],
    [`${BLOCK}.ff.net.0.proj`]: [[2, 8], [64, 2]],
    conv_in: [[2, 4, 3, 3], [8, 2, 1, 1]],
  } as const;
  const count = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);
  const matrices = Object.entries(layers).map(([path, [down, up]], i) => ({
    path,
    ...{ down, up, first: random(count(down), 7 + i), last: random(count(up), 99 + i) },
  }));
  const underscored = (path: string) => `lora_unet_${path.replaceAll(".", "_")}`;
  const processor = (path: string) => path.replace(/\.(to_\w+)(\.0)?$/, ".processor.$1_lora");
  const isAttention = (path: string) => path.includes("attn1");
  const notations: ((path: string) => [down: string, up: string, alpha?: string])[] = [
    (path) => [`unet.${path}.lora_A.weight`, `unet.${path}.lora_B.weight`],
    (path) => [`unet.${path}.lora.down.weight`, `unet.${path}.lora.up.weight`],
    (path) => {
      const base = underscored(path);
      return [`${base}.lora_down.weight`, `${base}.lora_up.weight`, `${base}.alpha`];
    },
    (path) =>
      isAttention(path)
        ? [`${processor(path)}.down.weight`, `${processor(path)}.up.weight`]
        : [`${path}.lora_A.weight`, `${path}.lora_B.weight`],
  ];
  const file = await readUnet(), device = await openDevice("reference", {});
  const inputs = {
    sample: { data: random(4 * 4 * 6, 1), dims: [1, 4, 4, 6] },
    timestep: { data: Float32Array.of(300), dims: [1] },
    encoder_hidden_states: { data: random(3 * 32, 2), dims: [1, 3, 32] },
  };
  const compute = async (
    change: Partial<Parameters<typeof openNetwork>[1]>,
    tensors = file.tensors,
  ) => {
    using network = openNetwork({ ...file, tensors }, { device, network: "unet", ...change });
    return firstOf(await network.run(inputs));
  };
  const plain = await compute({});
  await withFolder(async (folder) => {
    for (const [i, names] of notations.entries()) {
      const hasAlpha = names("conv_in").length === 3, factor = 0.5 * (hasAlpha ? 3 / 2 : 1);
      const path = `${folder}/${i}.safetensors`;
      write(
        path,
        Object.fromEntries(matrices.flatMap(({ path, down, up, first, last }) => {
          const [a, b, alpha] = names(path);
          return [
            [a, [down, first]],
            [b, [up, last]],
            ...alpha ? [[alpha, [[], Float32Array.of(3)]]] : [],
          ];
        })),
      );
      using adapter = await openLowRank(path, { scale: 0.5 });
      const actual = await compute({ lowRank: (path) => adapter.of({ part: "unet", path }) });
      adapter.checkUsed();
      const changed = new Map<string, TensorInfo>();
      for (const { path, first, last } of matrices) {
        const weight = file.tensors.get(`${path}.weight`, [])!;
        changed.set(weight.name, await changedWeight(weight, { down: first, up: last, factor }));
      }
      const expected = await compute({}, {
        get: (name, shape) => changed.get(name) ?? file.tensors.get(name, shape),
      });
      assert(plain.some((value, at) => Math.abs(value - expected[at]!) > 1e-4));
      expected.forEach((value, at) => assertAlmostEquals(actual[at]!, value, 1e-5, `${i}: ${at}`));
    }
  });
});

Deno.test("an adapter for other layers, halves of layers and other ranks are refused by name", () =>
  withFolder(async (folder) => {
    const path = `${folder}/a.safetensors`;
    const open = () => openLowRank(path, { scale: 1 });
    write(path, { "lora_te_text_model_encoder.lora_down.weight": [[2, 8], new Float32Array(16)] });
    using foreign = await open();
    assertEquals(foreign.of({ part: "unet", path: "conv_in" }), []);
    assertThrows(() => foreign.checkUsed(), UnsupportedError, "is for no layer of this model");
    write(path, { "conv_in.lora_A.weight": [[2, 4, 3, 3], new Float32Array(72)] });
    using half = await open();
    assertThrows(
      () => half.of({ part: "unet", path: "conv_in" }),
      FormatError,
      "has no conv_in.lora_B.weight beside it",
    );
    write(path, {
      "conv_in.lora_A.weight": [[2, 4, 3, 3], new Float32Array(72)],
      "conv_in.lora_B.weight": [[8, 3, 1, 1], new Float32Array(24)],
    });
    using other = await open();
    assertThrows(
      () => other.of({ part: "unet", path: "conv_in" }),
      FormatError,
      "a matrix of rank 2",
    );
    write(path, {
      "conv_in.lora_A.weight": [[2, 5, 3, 3], new Float32Array(90)],
      "conv_in.lora_B.weight": [[8, 2, 1, 1], new Float32Array(16)],
    });
    using wide = await open();
    const device = await openDevice("reference", {});
    using network = openNetwork(await readUnet(), {
      device,
      network: "unet",
      lowRank: (path) => wide.of({ part: "unet", path }),
    });
    const inputs = {
      sample: { data: new Float32Array(16), dims: [1, 4, 2, 2] },
      timestep: { data: new Float32Array(1), dims: [1] },
      encoder_hidden_states: { data: new Float32Array(32), dims: [1, 1, 32] },
    };
    await assertRejects(() => network.run(inputs), FormatError, "where [2,4,3,3] is needed");
    await assertRejects(() => openLowRank(path, { scale: NaN }), RangeError, "NaN");
  }));

Deno.test("what an adapter counts is as PEFT's settings beside it say, by part and by layer", () =>
  withFolder(async (folder) => {
    const path = `${folder}/a.safetensors`, half = (rank: number) => new Float32Array(2 * rank);
    const write4 = (settings: object) =>
      write(path, {
        "unet.a.to_q.lora.down.weight": [[2, 2], half(2)],
        "unet.a.to_q.lora.up.weight": [[2, 2], half(2)],
        "unet.a.to_k.lora.down.weight": [[4, 2], half(4)],
        "unet.a.to_k.lora.up.weight": [[2, 4], half(4)],
        "text_encoder.q_proj.lora_A.weight": [[4, 2], half(4)],
        "text_encoder.q_proj.lora_B.weight": [[2, 4], half(4)],
      }, { lora_adapter_metadata: JSON.stringify(settings) });
    const unet = { "unet.r": 4, "unet.lora_alpha": 8, "unet.rank_pattern": { to_q: 2 } };
    const factors = async (settings: object) => {
      write4(settings);
      using adapter = await openLowRank(path, { scale: 0.5 });
      return [["unet", "a.to_q"], ["unet", "a.to_k"], ["text_encoder", "q_proj"]].map(
        ([part, path]) => adapter.of({ part: part!, path: path! })[0]!.factor,
      );
    };
    // scale · alpha / r, or alpha / √r (arXiv 2312.03732); a part without settings counts as it is.
    assertEquals(await factors(unet), [2, 1, 0.5]);
    assertEquals(await factors({ ...unet, "unet.alpha_pattern": { "a.to_q": 3 } }), [0.75, 1, 0.5]);
    const text = { "text_encoder.r": 4, "text_encoder.lora_alpha": 2 };
    assertEquals(await factors({ ...unet, ...text }), [2, 1, 0.25]);
    const root = await factors({ ...unet, "unet.use_rslora": true });
    assertAlmostEquals(root[0]!, 0.5 * 8 / Math.SQRT2, 1e-12);
    assertEquals(root.slice(1), [2, 0.5]);
    write4({ ...unet, "unet.alpha_pattern": { "to_(q|k)": 3 } });
    const pattern = openLowRank(path, { scale: 1 });
    await assertRejects(() => pattern, UnsupportedError, "to_(q|k) is no name of a layer");
  }));

Deno.test("layers of text encoders, and of blocks that are counted through, are found by their names", () =>
  withFolder(async (folder) => {
    const layer = "text_model.encoder.layers.0.self_attn.q_proj", flat = layer.replaceAll(".", "_");
    const names = { layers: 2 };
    const places: readonly (readonly [string, string, string])[] = [
      ["text_encoder", layer, `text_encoder.${layer}.lora_A.weight`],
      ["text_encoder", layer, `text_encoder.${layer}.lora_linear_layer.down.weight`],
      ["text_encoder", layer, `text_encoder.${layer.slice("text_model.".length)}.lora_A.weight`],
      ["text_encoder", layer, `lora_te_${flat}.lora_down.weight`],
      ["text_encoder", layer, `lora_te1_${flat}.lora_down.weight`],
      ["text_encoder_2", layer, `lora_te2_${flat}.lora_down.weight`],
      // As Stable Diffusion XL's own code counts them.
      ["unet", "conv_in", "lora_unet_input_blocks_0_0.lora_down.weight"],
      [
        "unet",
        "down_blocks.1.attentions.0.proj_in",
        "lora_unet_input_blocks_4_1_proj_in.lora_down.weight",
      ],
      [
        "unet",
        "down_blocks.0.downsamplers.0.conv",
        "lora_unet_input_blocks_3_0_op.lora_down.weight",
      ],
      [
        "unet",
        "mid_block.resnets.1.conv2",
        "lora_unet_middle_block_2_out_layers_3.lora_down.weight",
      ],
      [
        "unet",
        "up_blocks.1.attentions.2.proj_out",
        "lora_unet_output_blocks_5_1_proj_out.lora_down.weight",
      ],
      [
        "unet",
        "up_blocks.0.upsamplers.0.conv",
        "lora_unet_output_blocks_2_2_conv.lora_down.weight",
      ],
    ];
    for (const [part, path, down] of places) {
      const up = down.replace("lora_A", "lora_B").replace(/down(?=\.weight$)/, "up");
      const file = `${folder}/a.safetensors`;
      write(file, { [down]: [[1, 2], new Float32Array(2)], [up]: [[2, 1], new Float32Array(2)] });
      using adapter = await openLowRank(file, { scale: 1 });
      assertEquals(adapter.of({ part, path: "other", names }).length, 0);
      assertEquals(adapter.of({ part, path, names }).length, 1, down);
      adapter.checkUsed();
    }
  }));
