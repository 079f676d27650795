// The types that GGUF uses for whole numbers and doubles: F64 and I8 to I64. They occur in index tables
// and metadata-like tensors, never as weights; decoding rounds to float32. One file, because each is a
// line. No encoder: nothing here writes them.

import type { NumberFormat } from "../format.ts";

type Reader = (view: DataView, offset: number) => number;

function defineNumber(
  name: string,
  ggmlType: number,
  blockBytes: number,
  read: Reader,
): NumberFormat {
  return {
    name,
    ggmlType,
    blockSize: 1,
    blockBytes,
    use: "numbers",
    decode(bytes, out) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let i = 0; i < out.length; i++) out[i] = read(view, i * blockBytes);
    },
  };
}

/** F64, I8, I16, I32 and I64, little-endian. */
export const numbers: readonly NumberFormat[] = [
  defineNumber("F64", 28, 8, (view, at) => view.getFloat64(at, true)),
  defineNumber("I8", 24, 1, (view, at) => view.getInt8(at)),
  defineNumber("I16", 25, 2, (view, at) => view.getInt16(at, true)),
  defineNumber("I32", 26, 4, (view, at) => view.getInt32(at, true)),
  defineNumber("I64", 27, 8, (view, at) => Number(view.getBigInt64(at, true))),
];
