// What must hold for any bytes given to the readers of weight files: they open, and then every tensor lies
// inside the file, or they throw one of our errors. Used by `deno task fuzz` with many inputs and by
// fuzz_formats_test.ts with few. Seeds are good files, small enough that mutations hit their fields.

import type { ByteSource } from "../../engine/byte_source.ts";
import { FormatError, SourceError, UnsupportedError } from "../../engine/errors.ts";
import { openGguf } from "../../engine/formats/gguf/gguf.ts";
import { openSafetensors } from "../../engine/formats/safetensors/safetensors.ts";
import type { WeightFile } from "../../engine/formats/source.ts";
import { memorySource } from "../../engine/io.ts";
import { f32Bytes, joinBytes, writeGguf, writeSafetensors } from "./write_gguf.ts";

/**
 * Opens `bytes` as GGUF.
 *
 * @throws {Error} If the reader throws anything but its own errors, reads more than it should, or lets a
 * tensor through that is not inside the file.
 */
export function fuzzGguf(bytes: Uint8Array): Promise<void> {
  return fuzz(bytes, openGguf);
}

/** The same for safetensors. */
export function fuzzSafetensors(bytes: Uint8Array): Promise<void> {
  return fuzz(bytes, openSafetensors);
}

async function fuzz(
  bytes: Uint8Array,
  open: (source: ByteSource) => Promise<WeightFile>,
): Promise<void> {
  let bytesRead = 0;
  const source = memorySource("fuzz", bytes);
  const counting: ByteSource = {
    ...source,
    readInto(offset: number, target: Uint8Array) {
      bytesRead += target.length;
      return source.readInto(offset, target);
    },
  };
  let model: WeightFile | undefined;
  try {
    model = await open(counting);
  } catch (error) {
    const ours = error instanceof FormatError || error instanceof UnsupportedError ||
      error instanceof SourceError;
    if (!ours) throw error;
    if (error.message.includes("\n")) throw new Error(`Message of several lines: ${error.message}`);
  }
  if (bytesRead > bytes.length + 8) {
    throw new Error(`${bytesRead} bytes read of a file of ${bytes.length}`);
  }
  for (const tensor of model?.tensors.values() ?? []) checkTensor(tensor, bytes.length);
}

function checkTensor(
  { name, shape, offset, byteLength }: {
    name: string;
    shape: readonly number[];
    offset: number;
    byteLength: number;
  },
  size: number,
): void {
  const numbers = [...shape, offset, byteLength];
  const sound = numbers.every((n) => Number.isSafeInteger(n) && n >= 0);
  if (!sound || offset + byteLength > size || name === "") {
    throw new Error(
      `Tensor ${JSON.stringify({ name, shape, offset, byteLength })} of ${size} bytes`,
    );
  }
}

/** Good files to mutate. */
export function ggufSeeds(): Uint8Array[] {
  const data = f32Bytes([1, 2, 3, 4, 5, 6, 7, 8]);
  return [
    writeGguf({}),
    writeGguf({
      "general.architecture": ["string", "llama"],
      "general.alignment": ["u32", 32],
      "llama.block_count": ["u64", 2],
      "tokenizer.ggml.tokens": ["array", ["a", "é", Uint8Array.of(0xff), ""], "string"],
      "tokenizer.ggml.scores": ["array", [0.5, -1], "f32"],
      "x.nested": ["array", [["array", [true], "bool"]], "array"],
    }, [
      { name: "token_embd.weight", dims: [4, 2], type: 0, data },
      { name: "blk.0.ffn_down.weight", dims: [32, 1], type: 8, data: new Uint8Array(34) },
    ]),
  ];
}

/** Good files to mutate. */
export function safetensorsSeeds(): Uint8Array[] {
  const header = {
    __metadata__: { format: "pt" },
    a: { dtype: "F32", shape: [2, 4], data_offsets: [0, 32] },
    "b.weight": { dtype: "I64", shape: [], data_offsets: [32, 40] },
  };
  // As `quantize` writes them: a note of formats, and a GGUF header inside.
  const inner = writeGguf({ "general.architecture": ["string", "llama"] });
  const end = inner.length + 40;
  const noted = {
    __metadata__: {
      troodon: '{"version":1,"tensors":{"w":{"format":"E0M4_G32","shape":[2,32]}}}',
    },
    "troodon.gguf_header": {
      dtype: "U8",
      shape: [inner.length],
      data_offsets: [0, inner.length],
    },
    w: { dtype: "U8", shape: [2, 20], data_offsets: [inner.length, end] },
  };
  return [
    writeSafetensors({}, new Uint8Array(0)),
    writeSafetensors(header, new Uint8Array(40)),
    writeSafetensors(noted, joinBytes([inner, new Uint8Array(40)])),
  ];
}
