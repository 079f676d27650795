import { assert, assertEquals, assertRejects } from "@std/assert";
import { getFormat } from "../quant/mod.ts";
import { pack, place, run } from "../tests/support/wasm.ts";
import { COMMON_FORMATS, random, randomWeight } from "../tests/support/weights.ts";
import { createMachine } from "./machine.ts";
import { floatScratchBytes } from "./matmul_scratch.ts";
import { packedBytes } from "./place_weight.ts";

Deno.test("embed gives exactly the numbers of every format, so packing loses nothing", async () => {
  for (const variant of ["baseline", "relaxed"] as const) {
    using machine = await createMachine({ threads: 2, variant });
    for (const format of COMMON_FORMATS) {
      const block = getFormat(format).blockSize;
      for (const columns of [block, block === 256 ? 768 : block * 45]) {
        const vocabulary = 21;
        for (const extreme of [false, true]) {
          const table = randomWeight(format, vocabulary, columns, columns, extreme);
          const packed = await pack(machine, format, vocabulary, columns, table.bytes);
          assertEquals(packed.bytes, packedBytes(format, { rows: vocabulary, columns }));
          const next = random(3);
          const tokens = Int32Array.from(
            { length: 30 },
            (_, i) => i < vocabulary ? i : Math.floor(vocabulary * next()),
          );
          const y = machine.allocate(4 * tokens.length * columns);
          run(machine, "embed", {
            ...{
              tokens: place(machine, tokens),
              w: packed.address,
              y,
              rows: tokens.length,
              columns,
            },
            ...{ vocabulary, layout: packed.layout, tile_bytes: packed.tileBytes, scale: 1 },
            scratch: machine.allocate(machine.threads * floatScratchBytes()),
            scratch_bytes: floatScratchBytes(),
          });
          const got = machine.f32(y, tokens.length * columns);
          tokens.forEach((token, row) =>
            assertEquals(
              unsignedZeros(got.slice(row * columns, (row + 1) * columns)),
              unsignedZeros(table.values.slice(token * columns, (token + 1) * columns)),
              `${format} token ${token}`,
            )
          );
        }
      }
    }
  }
});

Deno.test("scales of blocks come out exactly, subnormal ones too", async () => {
  const halves = Array.from({ length: 0x10000 }, (_, bits) => bits).filter((bits) =>
    (bits & 0x7fff) < 0x400 ? bits % 3 === 0 : (bits & 0x7fff) < 0x7c00 && bits % 41 === 0
  );
  for (const variant of ["baseline", "relaxed"] as const) {
    using machine = await createMachine({ threads: 1, variant });
    for (const [format, places] of [["Q6_K", [208]], ["Q4_K", [0, 2]]] as const) {
      const { blockBytes } = getFormat(format);
      const { bytes } = randomWeight(format, halves.length, 256, 1);
      const view = new DataView(bytes.buffer);
      halves.forEach((bits, row) =>
        places.forEach((place) => view.setUint16(row * blockBytes + place, bits, true))
      );
      const values = new Float32Array(256 * halves.length);
      getFormat(format).decode(bytes, values);
      const packed = await pack(machine, format, halves.length, 256, bytes);
      const y = machine.allocate(4 * values.length);
      run(machine, "embed", {
        tokens: place(machine, Int32Array.from(halves.keys())),
        ...{ w: packed.address, y, rows: halves.length, columns: 256 },
        ...{ vocabulary: halves.length, layout: packed.layout, tile_bytes: packed.tileBytes },
        scale: 1,
        scratch: machine.allocate(floatScratchBytes()),
        scratch_bytes: floatScratchBytes(),
      });
      assertEquals(unsignedZeros(machine.f32(y, values.length)), unsignedZeros(values), format);
    }
  }
});

/** A minimum of -0 may turn -0 into 0; nothing downstream can tell. */
function unsignedZeros(values: Float32Array): Float32Array {
  return values.map((value) => value + 0);
}

Deno.test("packed weights take at most 1.06 of the file's bytes", () => {
  for (const format of COMMON_FORMATS) {
    const { blockBytes, blockSize } = getFormat(format);
    const file = 192 * 768 / blockSize * blockBytes;
    const ratio = packedBytes(format, { rows: 192, columns: 768 }) / file;
    assert(ratio >= 1 && ratio <= 1.06, `${format}: ${ratio}`);
  }
});

Deno.test("a scale that is not finite is refused while packing", async () => {
  using machine = await createMachine({ threads: 1 });
  const { bytes } = randomWeight("Q4_0", 9, 64, 1);
  new DataView(bytes.buffer).setUint16(17 * 18, 0x7c00, true);
  const used = machine.usedBytes;
  await assertRejects(
    () => pack(machine, "Q4_0", 9, 64, bytes),
    RangeError,
    "1 of its Q4_0 numbers",
  );
  assertEquals(machine.usedBytes, used);
});

Deno.test("a format without a layout is decoded to float32 while packing", async () => {
  using machine = await createMachine({ threads: 1 });
  const columns = 256;
  const bytes = Uint8Array.from({ length: 3 * 512 }, (_, i) => (37 * i) & 63);
  const packed = await pack(machine, "I16", 3, columns, bytes);
  assertEquals(packed.format, "F32");
  const values = new Float32Array(3 * columns);
  getFormat("I16").decode(bytes, values);
  const stored = machine.f32(packed.address, 8 * columns);
  for (const [row, k] of [[0, 0], [2, 255], [1, 31]] as const) {
    assertEquals(stored[8 * k + row], values[row * columns + k]);
  }
});
