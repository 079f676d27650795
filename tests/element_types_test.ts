// Checkpoints in element types that few have: 8-bit floats count as the numbers that they are, and what is no number
// of its own is refused by name.

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { load, UnsupportedError } from "../mod.ts";
import { openModel } from "../engine/models/open_model.ts";
import { decodeSmallFloat, encodeSmallFloat } from "../quant/small_floats.ts";
import { getFormat } from "../quant/mod.ts";
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { joinBytes, writeSafetensors } from "./support/write_gguf.ts";

interface Tensor {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

const FIXTURE = fixturePath("models/llama");
const FLOATS = { F8_E4M3: "f8e4m3fn", F8_E5M2: "f8e5m2" } as const;

/** The matrices of a small Llama, rounded to a type, as its codes or as the numbers that these stand for. */
async function matrices(type: keyof typeof FLOATS, asCodes: boolean): Promise<Tensor[]> {
  const file = await openModel(FIXTURE);
  const all: Tensor[] = [];
  for (const { name, shape, format, source, offset, byteLength } of file.tensors.values()) {
    const bytes = new Uint8Array(byteLength);
    await source.readInto(offset, bytes);
    const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
    getFormat(format).decode(bytes, values);
    const isRounded = shape.length === 2;
    const codes = Uint8Array.from(values, (value) => encodeSmallFloat(FLOATS[type], value));
    const numbers = isRounded
      ? Float32Array.from(codes, (code) => decodeSmallFloat(FLOATS[type], code))
      : values;
    all.push(
      isRounded && asCodes
        ? { name, dtype: type, shape, bytes: codes }
        : { name, dtype: "F32", shape, bytes: new Uint8Array(numbers.buffer) },
    );
  }
  file.close();
  return all;
}

function writeCheckpoint(folder: string, tensors: readonly Tensor[]): void {
  let offset = 0;
  const header = Object.fromEntries(tensors.map(({ name, dtype, shape, bytes }) => {
    const data_offsets = [offset, offset += bytes.length];
    return [name, { dtype, shape, data_offsets }];
  }));
  const data = joinBytes(tensors.map(({ bytes }) => bytes));
  Deno.writeFileSync(`${folder}/model.safetensors`, writeSafetensors(header, data));
  Deno.copyFileSync(`${FIXTURE}/config.json`, `${folder}/config.json`);
}

for (const device of ["reference", "wasm"] as const) {
  for (const type of ["F8_E4M3", "F8_E5M2"] as const) {
    Deno.test(`${device}: ${type} gives the logits of the same numbers in F32`, async () => {
      const logits = (asCodes: boolean) =>
        withFolder(async (folder) => {
          writeCheckpoint(folder, await matrices(type, asCodes));
          using model = await load(folder, { device, precision: "exact", threads: 1 });
          using session = model.createSession();
          await session.sync([13, 45, 91]);
          return session.logits().slice();
        });
      const [codes, numbers] = [await logits(true), await logits(false)];
      numbers.forEach((value, i) => assert(Math.abs(codes[i]! - value) < 1e-5, `logit ${i}`));
      assert(numbers.some((value) => Math.abs(value) > 0.1));
    });
  }
}

const KEY = "model.layers.1.self_attn.k_proj.weight";

async function refusal(change: (tensors: Tensor[]) => Tensor[]): Promise<string> {
  return await withFolder(async (folder) => {
    writeCheckpoint(folder, change(await matrices("F8_E4M3", true)));
    const error = await assertRejects(
      () => load(folder, { device: "reference" }),
      UnsupportedError,
    );
    assertEquals(error.file, folder);
    assert(error.remedy?.startsWith("Use a checkpoint in F32, F16 or BF16"));
    return error.message.slice(folder.length);
  });
}

Deno.test("types that are no weights are refused by tensor and type", async () => {
  for (
    const [dtype, width] of [
      ...["I8", "U8", "BOOL", "F8_E8M0"].map((type) => [type, 1] as const),
      ...["I16", "U16"].map((type) => [type, 2] as const),
      ...["I32", "U32"].map((type) => [type, 4] as const),
      ...["I64", "U64", "C64"].map((type) => [type, 8] as const),
    ]
  ) {
    const message = await refusal((tensors) =>
      tensors.map((tensor) =>
        tensor.name === KEY
          ? { ...tensor, dtype, bytes: new Uint8Array(width * tensor.bytes.length) }
          : tensor
      )
    );
    assertMatch(message, new RegExp(`^, tensor ${KEY}: holds ${dtype}, which is no format of w`));
  }
});

Deno.test("8-bit floats with scales beside them are refused by both names", async () => {
  const base = KEY.replace(".weight", "");
  for (
    const scale of [`${KEY}_scale`, `${KEY}_scale_inv`, `${base}.scale`, `${base}.weight_scale`]
  ) {
    const message = await refusal((tensors) => [
      ...tensors,
      { name: scale, dtype: "F32", shape: [1], bytes: new Uint8Array(4) },
    ]);
    assertMatch(message, new RegExp(`^, tensor ${KEY}: holds F8_E4M3 with scales in ${scale}, `));
  }
});
