// Models whose tensors are in number formats of many kinds, on the GPU as on the reference: the tokens of an answer,
// which are joined, fused and gathered from codes on the way. Larger shaders, and those for float activations, are
// those of gpu/weight_kernels_test.ts: compiling takes most of the time.

import { assertEquals, assertLess } from "@std/assert";
import { openModel } from "../engine/models/open_model.ts";
import { load } from "../engine/models/load.ts";
import { quantizeModel } from "../engine/quantize/quantize.ts";
import type { QuantPolicy } from "../quant/policy.ts";
import { fixturePath } from "./support/fixtures.ts";
import { gpuTest } from "./support/gpu.ts";
import { seededSafetensors } from "./support/seeded_weights.ts";

const HIDDEN = 256;
const VOCABULARY = 128;
const TOKENS = 6;

/** Every format has blocks that fit these rows; queries, keys and values cannot be joined, gates and ups can. */
const POLICY: QuantPolicy = {
  name: "one of each",
  format: "I8PC",
  rules: [
    { roles: ["embedding"], format: "E0M4_G32" },
    { roles: ["output"], format: "MXFP4" },
    { roles: ["attention_q"], format: "E0M4_G128" },
    { roles: ["attention_k"], format: "INT4_G128" },
    { roles: ["attention_v"], format: "LF8" },
    { roles: ["attention_output"], format: "Q3H_B64T1" },
    { roles: ["ffn_down"], format: "Q8_0" },
  ],
};

const FORMATS = {
  "embed_tokens": "E0M4_G32",
  "self_attn.q_proj": "E0M4_G128",
  "self_attn.k_proj": "INT4_G128",
  "self_attn.v_proj": "LF8",
  "self_attn.o_proj": "Q3H_B64T1",
  "mlp.gate_proj": "I8PC_256",
  "mlp.up_proj": "I8PC_256",
  "mlp.down_proj": "Q8_0",
} as const;

/** A llama of one layer, of which the tiny one's tokenizer and configuration are the base. */
async function writeCheckpoint(folder: string): Promise<void> {
  const from = fixturePath("models/llama");
  for (const { name } of Deno.readDirSync(from)) {
    if (/^tokenizer.*\.json$/.test(name)) Deno.copyFileSync(`${from}/${name}`, `${folder}/${name}`);
  }
  const config = JSON.parse(await Deno.readTextFile(`${from}/config.json`));
  await Deno.writeTextFile(
    `${folder}/config.json`,
    JSON.stringify({
      ...config,
      ...{ hidden_size: HIDDEN, intermediate_size: HIDDEN, head_dim: HIDDEN / 4 },
      ...{ num_hidden_layers: 1, num_attention_heads: 4, num_key_value_heads: 2 },
    }),
  );
  const layer = (name: string) => `model.layers.0.${name}.weight`;
  const matrix = (rows: number) => ({ shape: [rows, HIDDEN], scale: 0.125 });
  const norm = { shape: [HIDDEN], scale: 0.25, base: 1 };
  await Deno.writeFile(
    `${folder}/model.safetensors`,
    seededSafetensors({
      seed: 3,
      dtype: "F16",
      tensors: {
        "model.embed_tokens.weight": { shape: [VOCABULARY, HIDDEN], scale: 1 },
        "lm_head.weight": matrix(VOCABULARY),
        "model.norm.weight": norm,
        [layer("input_layernorm")]: norm,
        [layer("post_attention_layernorm")]: norm,
        [layer("self_attn.q_proj")]: matrix(HIDDEN),
        [layer("self_attn.k_proj")]: matrix(HIDDEN / 2),
        [layer("self_attn.v_proj")]: matrix(HIDDEN / 2),
        [layer("self_attn.o_proj")]: matrix(HIDDEN),
        [layer("mlp.gate_proj")]: matrix(HIDDEN),
        [layer("mlp.up_proj")]: matrix(HIDDEN),
        [layer("mlp.down_proj")]: matrix(HIDDEN),
      },
    }),
  );
}

/** Tokens that follow a prompt, and the logits of the last step. */
async function answer(path: string, device: "reference" | "gpu") {
  using model = await load(path, { device });
  using session = model.createSession();
  await session.eval([3, 40, 71]);
  const tokens: number[] = [];
  while (tokens.length < TOKENS) {
    const logits = session.logits();
    tokens.push(logits.indexOf(Math.max(...logits)));
    await session.eval(tokens.slice(-1));
  }
  return { tokens, logits: session.logits().slice() };
}

gpuTest("a model of eight number formats gives the reference's tokens on the GPU", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${folder}/floats`);
    await writeCheckpoint(`${folder}/floats`);
    const path = `${folder}/codes`;
    const source = await openModel(`${folder}/floats`);
    await quantizeModel(source, { path, policy: POLICY });
    source.close();
    const written = await openModel(path);
    for (const [name, format] of Object.entries(FORMATS)) {
      const found = [...written.tensors].find(([full]) => full.includes(name))!;
      assertEquals(found[1].format, format, name);
    }
    assertEquals(written.tensors.get("lm_head.weight")!.format, "MXFP4");
    written.close();
    const reference = await answer(path, "reference");
    const gpu = await answer(path, "gpu");
    assertEquals(gpu.tokens, reference.tokens);
    gpu.logits.forEach((value, i) => assertLess(Math.abs(value - reference.logits[i]!), 0.02));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
