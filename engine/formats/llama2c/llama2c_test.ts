import { assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { fixturePath } from "../../../tests/support/fixtures.ts";
import { joinBytes } from "../../../tests/support/write_gguf.ts";
import type { ByteSource } from "../../byte_source.ts";
import { FormatError, TroodonError, UnsupportedError } from "../../errors.ts";
import { memorySource } from "../../io.ts";
import { isLlama2c, openLlama2c } from "./llama2c.ts";
import { openModel } from "../../models/open_model.ts";
import type { TensorInfo, WeightFile } from "../source.ts";

/** 8 channels, 12 hidden, 2 layers, 4 heads, 2 key-value heads, 6 tokens, 5 positions. */
const NUMBERS = [8, 12, 2, 4, 2, 6, 5];
const SIZES = {
  emb: 48,
  norm: 16,
  q: 128,
  k: 64,
  v: 64,
  o: 128,
  w1: 192,
  w2: 192,
  w3: 192,
  out: 8,
};

/** The next `count` numbers; each tensor then begins with its own place in the file. */
function ramp(count: number, from: number): Uint8Array {
  return new Uint8Array(Float32Array.from({ length: count }, (_, i) => from + i).buffer);
}

function header(version: number, shared: number, group = 0): Uint8Array {
  const bytes = new Uint8Array(256);
  const view = new DataView(bytes.buffer);
  [0x616b3432, version, ...NUMBERS].forEach((n, i) => view.setInt32(4 * i, n, true));
  view.setUint8(36, shared);
  view.setInt32(37, group, true);
  return bytes;
}

function legacyFile(shared: boolean): Uint8Array<ArrayBuffer> {
  const numbers = NUMBERS.map((n, i) => i === 5 && !shared ? -n : n);
  const { emb, norm, q, k, v, o, w1, w2, w3, out } = SIZES;
  const order = [emb, norm, q, k, v, o, norm, w1, w2, w3, out];
  let next = 0;
  const parts = order.map((count) => ramp(count, (next += count) - count));
  const tables = new Uint8Array(5 * 2 * 4).fill(255); // context · head size · 4 bytes
  const classifier = shared ? [] : [ramp(emb, 9000)];
  return joinBytes([
    new Uint8Array(Int32Array.from(numbers).buffer),
    ...parts,
    tables,
    ...classifier,
  ]);
}

function open(bytes: Uint8Array): Promise<WeightFile> {
  return openLlama2c(memorySource("m.bin", bytes));
}

async function readFloats({ source, offset, byteLength }: TensorInfo): Promise<Float32Array> {
  const bytes = new Uint8Array(byteLength);
  await source.readInto(offset, bytes);
  return new Float32Array(bytes.buffer);
}

async function firsts(file: WeightFile): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const tensor of file.tensors.values()) found[tensor.name] = (await readFloats(tensor))[0]!;
  return found;
}

Deno.test("a legacy file has its tensors in the order of llama2.c, two of each a layer", async () => {
  const file = await open(legacyFile(true));
  const found = await firsts(file);
  assertEquals(found["token_embd.weight"], 0);
  assertEquals([found["blk.0.attn_norm.weight"], found["blk.1.attn_norm.weight"]], [48, 56]);
  assertEquals([found["blk.0.attn_q.weight"], found["blk.1.attn_q.weight"]], [64, 128]);
  assertEquals([found["blk.0.attn_k.weight"], found["blk.1.attn_k.weight"]], [192, 224]);
  assertEquals([found["blk.0.attn_v.weight"], found["blk.1.attn_output.weight"]], [256, 384]);
  assertEquals([found["blk.0.ffn_norm.weight"], found["blk.0.ffn_gate.weight"]], [448, 464]);
  assertEquals([found["blk.0.ffn_down.weight"], found["blk.0.ffn_up.weight"]], [656, 848]);
  assertEquals(found["output_norm.weight"], 1040);
  assertEquals(file.tensors.has("output.weight"), false);
  assertEquals(file.tensors.get("blk.0.attn_k.weight")!.shape, [4, 8], "grouped queries");
  assertEquals(file.tensors.get("blk.0.ffn_down.weight")!.shape, [8, 12]);
});

Deno.test("a legacy file's own classifier lies behind context times head size times 4 bytes", async () => {
  assertEquals((await firsts(await open(legacyFile(false))))["output.weight"], 9000);
});

Deno.test("heads and key-value heads stand in the metadata as the header has them", async () => {
  const { metadata } = await open(legacyFile(true));
  const values = Object.fromEntries(metadata);
  assertEquals(values["general.architecture"], "llama");
  assertEquals(values["llama.attention.head_count"], 4);
  assertEquals(values["llama.attention.head_count_kv"], 2);
  assertEquals(values["llama.vocab_size"], 6);
  assertEquals(values["llama.rope.dimension_count"], 2);
});

Deno.test("version 1 has its norms first and the classifier last", async () => {
  const { emb, norm, q, k, v, o, w1, w2, w3, out } = SIZES;
  const order = [norm, norm, out, emb, q, k, v, o, w1, w2, w3, emb];
  let next = 0;
  const parts = order.map((count) => ramp(count, (next += count) - count));
  const found = await firsts(await open(joinBytes([header(1, 0), ...parts])));
  assertEquals([found["blk.0.attn_norm.weight"], found["blk.0.ffn_norm.weight"]], [0, 16]);
  assertEquals([found["output_norm.weight"], found["token_embd.weight"]], [32, 40]);
  assertEquals([found["blk.0.attn_q.weight"], found["output.weight"]], [88, 1048]);
});

function signed(m: number, i: number): number {
  return i % 2 === 0 ? m + 1 : -1 - m;
}

/** Values of version 2: matrix m holds m+1 with changing signs, its group g has the scale (g+1)/8. */
function quantizedFile(scalesAtEnd: boolean, group = 4): Uint8Array<ArrayBuffer> {
  const { norm, emb, q, k, v, o, w1, w2, w3, out } = SIZES;
  const halves = [q, k, v, o, w1, w2, w3].flatMap((both) => [both / 2, both / 2]);
  const counts = [emb, ...halves];
  const values = counts.map((count, m) =>
    new Uint8Array(Int8Array.from({ length: count }, (_, i) => signed(m, i)).buffer)
  );
  const scales = counts.map((count) =>
    new Uint8Array(Float32Array.from({ length: count / group }, (_, g) => (g + 1) / 8).buffer)
  );
  const body = scalesAtEnd
    ? [...values, ...scales]
    : values.flatMap((bytes, m) => [bytes, scales[m]!]);
  return joinBytes([header(2, 1, group), ramp(2 * norm + out, 0), ...body]);
}

for (const place of ["at the end", "behind each matrix"]) {
  Deno.test(`version 2 multiplies int8 values by scales ${place}, whatever range is read`, async () => {
    const file = await open(quantizedFile(place === "at the end"));
    for (
      const [m, name] of ["token_embd", "blk.0.attn_q", "blk.1.attn_q", "blk.0.attn_k"].entries()
    ) {
      const tensor = file.tensors.get(`${name}.weight`)!;
      const wanted = Float32Array.from(
        { length: tensor.byteLength / 4 },
        (_, i) => signed(m, i) * (Math.floor(i / 4) + 1) / 8,
      );
      assertEquals(await readFloats(tensor), wanted);
      const bytes = new Uint8Array(tensor.byteLength);
      for (let at = 0; at < bytes.length; at += 13) {
        await tensor.source.readInto(at, bytes.subarray(at, at + 13));
      }
      assertEquals(new Float32Array(bytes.buffer), wanted);
    }
  });
}

Deno.test("version 2 is read from asynchronous sources, too", async () => {
  const inner = memorySource("m.bin", quantizedFile(true));
  const source: ByteSource = {
    ...inner,
    readInto: (offset, target) => Promise.resolve().then(() => inner.readInto(offset, target)),
  };
  const file = await openLlama2c(source);
  assertEquals((await firsts(file))["blk.1.ffn_up.weight"], 15 / 8);
});

Deno.test("files whose numbers make no model are refused with what is wrong", async () => {
  const changed = (at: number, value: number, file = header(1, 1)) => {
    const bytes = file.slice();
    new DataView(bytes.buffer).setInt32(at, value, true);
    return bytes;
  };
  await assertRejects(() => open(changed(8, 0)), FormatError, "dim is 0");
  await assertRejects(() => open(changed(16, 2 ** 31 - 1)), FormatError, "layers is 2147483647");
  await assertRejects(() => open(changed(20, 3)), FormatError, "3 heads do not divide 8");
  await assertRejects(() => open(changed(24, 3)), FormatError, "3 key-value heads");
  await assertRejects(() => open(changed(4, 3)), UnsupportedError, "version 3");
  await assertRejects(() => open(header(1, 2)), FormatError, "flag of the classifier is 2");
  await assertRejects(() => open(header(1, 1)), FormatError, "has 256 bytes");
  await assertRejects(() => open(header(2, 1, 5)), FormatError, "groups of 5");
  const noScales = quantizedFile(true).fill(255, 256 + 160);
  await assertRejects(() => open(noScales), FormatError, "no scales");
});

Deno.test("only the exact length makes seven integers a legacy file", () => {
  const bytes = legacyFile(true);
  assertEquals(isLlama2c(bytes.subarray(0, 256), bytes.length), true);
  assertEquals(isLlama2c(bytes.subarray(0, 256), bytes.length - 1), false);
  assertEquals(isLlama2c(new Uint8Array(256), 256), false);
});

Deno.test("llama2.c files open by their bytes, with their own metadata though config.json is near", async () => {
  const file = await openModel(fixturePath("models/llama_formats/llama2c_v2_q80.bin"));
  assertEquals(file.kind, "llama2c");
  assertEquals(file.metadata.get("llama.vocab_size"), 64);
  assertEquals(file.metadata.has("model_type"), false);
  assertEquals((await file.readBytes!("tokenizer.model"))?.length, 4818);
  file.close();
});

/** Everything that a file says: its facts, and the places and sizes of its tensors. */
async function contentOf(bytes: Uint8Array): Promise<string> {
  const { metadata, tensors } = await open(bytes);
  const places = [...tensors.values()].map(({ name, shape, offset }) => [name, shape, offset]);
  return JSON.stringify([[...metadata], places, await firsts(await open(bytes))]);
}

function versionOne(): Uint8Array<ArrayBuffer> {
  const { emb, norm, q, k, v, o, w1, w2, w3, out } = SIZES;
  const count = 2 * norm + out + emb + q + k + v + o + w1 + w2 + w3;
  return joinBytes([header(1, 1), ramp(count, 0)]);
}

for (
  const [name, file, start] of [
    ["legacy", legacyFile(true), 0],
    ["version 1", versionOne(), 8],
    ["version 2", quantizedFile(true), 8],
  ] as const
) {
  Deno.test(`${name}: every number of the header changes what is read, or is refused`, async () => {
    const before = await contentOf(file);
    const end = start === 0 ? 28 : 256;
    for (let at = 0; at < end; at++) {
      const changed = file.slice();
      changed[at]! ^= at % 4 === 0 || at > 36 ? 1 : 64;
      try {
        assertNotEquals(await contentOf(changed), before, `byte ${at}`);
      } catch (error) {
        if (!(error instanceof TroodonError)) throw error;
      }
    }
  });
}
