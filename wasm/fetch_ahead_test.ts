import { assert, assertEquals } from "@std/assert";
import { matmulQ8 } from "../tests/support/products.ts";
import { pack, place } from "../tests/support/wasm.ts";
import { randomValues, randomWeight } from "../tests/support/weights.ts";
import { q8RowBytes } from "../quant/q8_activation.ts";
import { quantizeQ8Row } from "../tests/support/q8_row.ts";
import { formatLayout, laidOutFormats } from "./format_layouts.ts";
import { createMachine, type Machine } from "./machine.ts";
import type { WasmCapabilities } from "./probe.ts";
import { tileBytes, type WeightLayout } from "./weight_layout.ts";

const FORMATS = laidOutFormats().filter((name) => formatLayout(name)!.layout.spareBytes > 0);
const GUARD = 64 * 1024;
/** Products of which at least one is for a trial, which fetches (assembly/machine/fetch_trial.ts). */
const RUNS = 8;

/** Offsets in a tile of the bytes that mean nothing. */
function spareOffsets(layout: WeightLayout, columns: number): Set<number> {
  const { blockColumns, headerBytes, cellColumns, cellBytes, spareBytes } = layout;
  const offsets = new Set<number>();
  let at = 0;
  for (let k = 0; k < columns; k += cellColumns) {
    if (k % blockColumns === 0) at += headerBytes;
    at += cellBytes;
    for (let i = 1; i <= spareBytes; i++) offsets.add(at - i);
  }
  assertEquals(at, tileBytes(layout, columns));
  return offsets;
}

/** Ways to multiply that can be forced, and whether they fetch here (assembly/matmul/q8.ts). */
function styles({ simd, dotI8U8Exact, dotI8I8Exact }: WasmCapabilities) {
  const pair = { style: 1, fetches: simd === "relaxed" };
  const dot = { style: 2, fetches: dotI8U8Exact };
  return dotI8U8Exact || dotI8I8Exact ? [pair, dot] : [pair];
}

Deno.test("a GEMV that fetches ahead writes nothing but bytes of its weight that mean nothing", async () => {
  assert(FORMATS.length > 7);
  for (const threads of [1, 2]) {
    for (const format of FORMATS) {
      using machine = await createMachine({ threads });
      for (const { style, fetches } of styles(machine.capabilities)) {
        await checkWrites(machine, format, style, fetches);
      }
    }
  }
});

async function checkWrites(
  machine: Machine,
  format: string,
  style: number,
  fetches: boolean,
): Promise<void> {
  const { layout } = formatLayout(format)!;
  // Room for a trial in the large chunk, which one thread takes.
  const columns = 768, outputs = 677;
  const before = place(machine, new Uint8Array(GUARD).fill(0x5a));
  const weight = randomWeight(format, outputs, columns, 3);
  const packed = await pack(machine, format, outputs, columns, weight.bytes);
  const after = place(machine, new Uint8Array(GUARD).fill(0x5a));
  const spare = spareOffsets(layout, columns);
  const bytes = machine.u8(packed.address, packed.bytes);
  bytes.forEach((_, i) => {
    if (spare.has(i % packed.tileBytes)) bytes[i] = 0xa5;
  });
  const kept = bytes.slice();
  const x = new Uint8Array(q8RowBytes(columns));
  quantizeQ8Row(randomValues(columns, 5), x);
  const c = { format, rows: 1, outputs, columns, style, threads: 1 };
  const at = place(machine, x), first = matmulQ8(machine, c, packed, at, undefined);
  for (let run = 0; run < RUNS * machine.threads; run++) {
    assertEquals(matmulQ8(machine, c, packed, at, undefined), first, format);
  }
  let written = 0;
  bytes.forEach((byte, i) => {
    if (byte === kept[i]) return;
    written++;
    assert(spare.has(i % packed.tileBytes), `${format}: byte ${i}`);
  });
  for (const guard of [before, after]) {
    assert(machine.u8(guard, GUARD).every((byte) => byte === 0x5a), format);
  }
  assertEquals(written > 0, fetches, `${format}, style ${style}`);
}

Deno.test("kernels that try whether to fetch give the same bits, whatever they find", async () => {
  const columns = 768, outputs = 2048, most = 4;
  for (const threads of [1, 2]) {
    using machine = await createMachine({ threads });
    const weight = randomWeight("Q4_1", outputs, columns, 7);
    const packed = await pack(machine, "Q4_1", outputs, columns, weight.bytes);
    const bytes = q8RowBytes(columns), x = new Uint8Array(most * bytes);
    for (let row = 0; row < most; row++) {
      quantizeQ8Row(randomValues(columns, 9 + row), x.subarray(row * bytes, (row + 1) * bytes));
    }
    const at = place(machine, x);
    for (const { style } of styles(machine.capabilities)) {
      for (const rows of [1, most]) {
        const c = { format: "Q4_1", rows, outputs, columns, style };
        const first = matmulQ8(machine, c, packed, at, undefined);
        // Votes of two trials each.
        for (let run = 0; run < 12 * RUNS; run++) {
          assertEquals(matmulQ8(machine, c, packed, at, undefined), first);
        }
      }
    }
  }
});
