// Weights that formats cannot hold, for every format that `quantize` writes, or that come in the format that
// is wanted: refused with tensor and index,
// replaced on request, stored in F16 where rows do not fill blocks; and files that end too early.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { FormatError } from "../engine/errors.ts";
import { openModel } from "../engine/models/open_model.ts";
import { openGguf } from "../engine/formats/gguf/gguf.ts";
import { openSafetensors } from "../engine/formats/safetensors/safetensors.ts";
import type { TensorInfo } from "../engine/formats/source.ts";
import { createSafetensorsHead } from "../engine/formats/safetensors/write.ts";
import { memorySource } from "../engine/io.ts";
import { quantizeModel, type QuantizeModelOptions } from "../engine/quantize/quantize.ts";
import { findFormat, formatBytes, formats, type NumberFormat } from "../quant/mod.ts";
import type { QuantPolicy } from "../quant/policy.ts";
import { withFolder } from "./support/folder.ts";
import { normals } from "./support/normals.ts";
import { f32Bytes, writeGguf } from "./support/write_gguf.ts";

const COLUMNS = 256;
const NAME = "blk.0.ffn_up.weight";
const ENCODED: readonly NumberFormat[] = [
  ...[...formats.values()].filter(({ encode }) => encode),
  ...["i8pc", "i4pc", "q8_gl"].map((name) => findFormat(name, COLUMNS)),
];

function model(values: Float32Array, columns: number): Uint8Array<ArrayBuffer> {
  const dims = [columns, values.length / columns];
  return writeGguf({ "general.architecture": ["string", "llama"] }, [
    { name: NAME, dims, type: 0, data: f32Bytes([...values]) },
  ]);
}

/** Everything in one format, whose row length is left out of its name. */
function policyOf({ name, rowFamily = name }: NumberFormat): QuantPolicy {
  return { name, format: rowFamily, rules: [] };
}

async function quantize(
  folder: string,
  values: Float32Array,
  format: NumberFormat,
  options: QuantizeModelOptions & { readonly columns?: number } = {},
) {
  const { columns = COLUMNS, ...rest } = options;
  await Deno.writeFile(`${folder}/in.gguf`, model(values, columns));
  const file = await openModel(`${folder}/in.gguf`);
  const fits = columns % format.blockSize === 0;
  const ending = format.ggmlType === undefined && fits ? "safetensors" : "gguf";
  try {
    return await quantizeModel(
      file,
      { path: `${folder}/out.${ending}`, policy: policyOf(format) },
      rest,
    );
  } finally {
    file.close();
    await Deno.remove(`${folder}/out.${ending}`).catch(() => {});
  }
}

/** Small enough for the formats without a scale. */
const VALUES = normals(2 * COLUMNS, 3).map((value) => value * 0.2);

for (const format of ENCODED) {
  Deno.test(`quantising to ${format.name} refuses what is not finite, with tensor and index, or replaces it`, async () => {
    await withFolder(async (folder) => {
      for (const bad of [NaN, Infinity, -Infinity]) {
        await assertRejects(
          () => quantize(folder, VALUES.with(COLUMNS + 7, bad), format),
          FormatError,
          `tensor "${NAME}": value ${COLUMNS + 7} is ${bad}`,
        );
      }
      const replaced = await quantize(folder, VALUES.with(COLUMNS + 7, NaN), format, {
        saturate: true,
      });
      assertEquals(replaced.tensors[0]!.saturated, 1);
      assertEquals([...Deno.readDirSync(folder)].map(({ name }) => name), ["in.gguf"]);
    });
  });

  Deno.test(`a tensor of ${format.name} that ends too early is refused when it is opened`, async () => {
    const byteLength = formatBytes(format, 2 * COLUMNS);
    const bytes = new Uint8Array(byteLength);
    format.encode!(VALUES, bytes);
    const head = createSafetensorsHead([{ name: NAME, shape: [2, COLUMNS], format, byteLength }]);
    const whole = new Uint8Array([...head, ...bytes]);
    const file = await openSafetensors(memorySource("whole", whole));
    assertEquals(file.tensors.get(NAME)!.format, format.name);
    await assertRejects(
      () => openSafetensors(memorySource("cut", whole.subarray(0, -1))),
      FormatError,
      "missing",
    );
    if (format.ggmlType === undefined) return;
    const gguf = writeGguf({ "general.architecture": ["string", "llama"] }, [
      { name: NAME, dims: [COLUMNS, 2], type: format.ggmlType, data: bytes },
    ]);
    const end = gguf.length - (32 - byteLength % 32) % 32;
    await openGguf(memorySource("whole", gguf));
    const error = await assertRejects(
      () => openGguf(memorySource("cut", gguf.subarray(0, end - 1))),
      FormatError,
    );
    assert(error.message.includes(NAME), error.message);
  });
}

// Rows of any length are whole blocks of the others.
const BLOCKS = ENCODED.filter(({ name, blockSize }) =>
  blockSize > 1 && !/^(I8PC|Q8_GL)/.test(name)
);
for (const format of BLOCKS) {
  Deno.test(`quantising to ${format.name} keeps rows in F16, or a stand-in, that its blocks do not fill, and says so`, async () => {
    await withFolder(async (folder) => {
      const columns = format.name.startsWith("I4PC") ? 9 : format.blockSize + 1;
      const values = normals(2 * columns, 5).map((value) => value * 0.2);
      const { tensors: [tensor] } = await quantize(folder, values, format, { columns });
      assertEquals([tensor!.to, tensor!.insteadOf], ["F16", policyOf(format).format]);
    });
  });
}

/** Two rows in a format, the last scale of the second set to a NaN of 16 or 32 bits. */
const DAMAGED: Readonly<Record<string, readonly [at: number, ...nan: number[]]>> = {
  F32: [4 * 300, 0, 0, 0xc0, 0x7f],
  F16: [2 * 300, 0, 0x7e],
  BF16: [2 * 300, 0xc0, 0x7f],
  Q8_0: [34 * 9, 0, 0x7e],
  Q4_1: [20 * 9 + 2, 0, 0x7e],
  Q4_K: [144, 0, 0x7e],
  IQ2_XXS: [66, 0, 0x7e],
};
for (const [name, [at, ...nan]] of Object.entries(DAMAGED)) {
  Deno.test(`a copied tensor of ${name} that holds a NaN is refused, or mended where ${name} has an encoder`, async () => {
    await withFolder(async (folder) => {
      const format = findFormat(name, COLUMNS);
      const data = new Uint8Array(formatBytes(format, 2 * COLUMNS));
      format.encode?.(VALUES, data);
      data.set(nan, at);
      const tensors = [{ name: NAME, dims: [COLUMNS, 2], type: format.ggmlType!, data }];
      await Deno.writeFile(
        `${folder}/in.gguf`,
        writeGguf({ "general.architecture": ["string", "llama"] }, tensors),
      );
      const file = await openModel(`${folder}/in.gguf`);
      const out = `${folder}/out.gguf`;
      const keep: QuantPolicy = { name: "keep", format: "keep", rules: [] };
      try {
        await assertRejects(
          () => quantizeModel(file, { path: out, policy: keep }),
          FormatError,
          /^F|B/.test(name) ? "value 300 is NaN" : "is NaN",
        );
        const mended = quantizeModel(file, { path: out, policy: keep }, { saturate: true });
        if (!format.encode) {
          return void await assertRejects(() => mended, FormatError, "no encoder");
        }
        const { tensors: [tensor] } = await mended;
        assert(tensor!.saturated > 0 && tensor!.saturated <= format.blockSize);
        const copy = await openModel(out);
        const bytes = await readWhole(copy.tensors.get(NAME)!);
        copy.close();
        const [before, after] = [data, bytes].map((part) => {
          const values = new Float32Array(2 * COLUMNS);
          format.decode(part, values);
          return values;
        });
        for (const [i, value] of before!.entries()) {
          if (Number.isFinite(value)) assertEquals(after![i], value);
          else assert(Number.isFinite(after![i]), `value ${i}`);
        }
      } finally {
        file.close();
      }
      assertEquals([...Deno.readDirSync(folder)].length, 2);
    });
  });
}

async function readWhole({ source, offset, byteLength }: TensorInfo): Promise<Uint8Array> {
  const bytes = new Uint8Array(byteLength);
  await source.readInto(offset, bytes);
  return bytes;
}
