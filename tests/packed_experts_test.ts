// gpt-oss as it is published: experts in MXFP4, codes and exponents in tensors of their own. They must compute what
// their numbers compute, decoded here by the table of the format (OCP Microscaling Formats v1.0).

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { load } from "../mod.ts";
import { FormatError, UnsupportedError } from "../engine/errors.ts";
import { openModel } from "../engine/models/open_model.ts";
import { decode } from "./support/adapters.ts";
import { checkpointPath } from "./support/seeded_weights.ts";
import { random } from "./support/weights.ts";
import { f32Bytes, joinBytes, writeSafetensors } from "./support/write_gguf.ts";

const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6];

interface Stored {
  readonly name: string;
  readonly dtype: "F32" | "U8";
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

function writeFolder(folder: string, tensors: readonly Stored[], changes: object = {}): void {
  Deno.mkdirSync(folder, { recursive: true });
  const config = JSON.parse(Deno.readTextFileSync(`${checkpointPath("gpt_oss")}/config.json`));
  Deno.writeTextFileSync(`${folder}/config.json`, JSON.stringify({ ...config, ...changes }));
  let at = 0;
  const header = Object.fromEntries(tensors.map(({ name, dtype, shape, bytes }) => [
    name,
    { dtype, shape, data_offsets: [at, at += bytes.length] },
  ]));
  const data = joinBytes(tensors.map(({ bytes }) => bytes));
  Deno.writeFileSync(`${folder}/model.safetensors`, writeSafetensors(header, data));
}

/** The folder's tensors, gate and up once packed and once as their numbers. */
async function twins(): Promise<{ packed: Stored[]; plain: Stored[] }> {
  const file = await openModel(checkpointPath("gpt_oss"));
  const next = random(5), byte = () => Math.floor(next() * 256);
  const packed: Stored[] = [], plain: Stored[] = [];
  for (const tensor of file.tensors.values()) {
    const { name, shape } = tensor;
    if (!name.endsWith("gate_up_proj")) {
      const bytes = f32Bytes([...await decode(tensor)]);
      for (const list of [packed, plain]) list.push({ name, dtype: "F32", shape, bytes });
      continue;
    }
    const [experts, columns, rows] = shape as [number, number, number];
    const blocks = experts * rows * columns / 32;
    const codes = Uint8Array.from({ length: blocks * 16 }, byte);
    const exponents = Uint8Array.from({ length: blocks }, () => 122 + Math.floor(next() * 4));
    const outer = [experts, rows, columns / 32];
    packed.push(
      { name: `${name}_blocks`, dtype: "U8", shape: [...outer, 16], bytes: codes },
      { name: `${name}_scales`, dtype: "U8", shape: outer, bytes: exponents },
    );
    const values = new Float32Array(blocks * 32);
    for (let i = 0; i < values.length; i++) {
      const code = codes[i >> 1]! >> 4 * (i & 1) & 15;
      const value = (code & 8 ? -1 : 1) * E2M1[code & 7]! * 2 ** (exponents[i >> 5]! - 127);
      // Stored as [experts, inputs, outputs].
      const expert = Math.floor(i / (rows * columns)), row = Math.floor(i / columns) % rows;
      values[(expert * columns + i % columns) * rows + row] = value;
    }
    plain.push({ name, dtype: "F32", shape, bytes: f32Bytes([...values]) });
  }
  file.close();
  return { packed, plain };
}

const MXFP4 = {
  quantization_config: { quant_method: "mxfp4", modules_to_not_convert: ["lm_head"] },
};

Deno.test("packed experts of a folder compute what their numbers compute", async () => {
  const folder = Deno.makeTempDirSync();
  try {
    const { packed, plain } = await twins();
    writeFolder(`${folder}/packed`, packed, MXFP4);
    writeFolder(`${folder}/plain`, plain);
    const logits = async (path: string, device: "reference" | "wasm") => {
      using model = await load(path, { device, threads: 1, precision: "exact" });
      assertEquals(model.info.warnings, []);
      using session = model.createSession();
      await session.sync([13, 45, 91, 26, 100, 7]);
      return [...session.logits()];
    };
    const expected = await logits(`${folder}/plain`, "reference");
    for (const device of ["reference", "wasm"] as const) {
      const actual = await logits(`${folder}/packed`, device);
      const worst = Math.max(...actual.map((value, i) => Math.abs(value - expected[i]!)));
      assert(worst < 1e-4, `${device}: a logit is off by ${worst}`);
    }
    const short = packed.map((one) =>
      one.name.endsWith("_scales") ? { ...one, shape: [one.bytes.length], bytes: one.bytes } : one
    );
    writeFolder(`${folder}/short`, short, MXFP4);
    const odd = await assertRejects(() => load(`${folder}/short`), FormatError);
    assertMatch(
      (odd as Error).message,
      /gate_up_proj_blocks: is U8 \[4,32,1,16\] beside .*_scales, U8 \[128\]: codes are U8/,
    );
    writeFolder(`${folder}/awq`, packed, { quantization_config: { quant_method: "awq" } });
    const other = await assertRejects(() => load(`${folder}/awq`), UnsupportedError);
    assertMatch((other as Error).message, /quantization_config\.quant_method: is string "awq"/);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});
