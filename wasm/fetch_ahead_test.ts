import { assert, assertEquals } from "@std/assert";
import { checkQ16, matmulQ8 } from "../tests/support/products.ts";
import { pack, place, run as runOne } from "../tests/support/wasm.ts";
import { randomValues, randomWeight } from "../tests/support/weights.ts";
import { q8RowBytes } from "../quant/q8_activation.ts";
import { quantizeQ8Row } from "../tests/support/q8_row.ts";
import { formatLayout, laidOutFormats } from "./format_layouts.ts";
import { JOINED_LAYOUTS } from "./gen/joined_lanes.ts";
import { CONTROL } from "./layout.ts";
import { createMachine, type Machine } from "./machine.ts";
import { expertScratchBytes } from "./matmul_scratch.ts";
import type { WasmCapabilities } from "./probe.ts";
import { tileBytes, type WeightLayout } from "./weight_layout.ts";

const FORMATS = laidOutFormats().filter((name) => formatLayout(name)!.layout.spareBytes > 0);
const GUARD = 64 * 1024;

/** Votes on fetching with one row and with a few, and on one tile after the other, of short rows and of long ones. */
const VOTES: readonly (readonly number[])[] = [
  [-8, -8, -8, -8],
  [8, 8, -8, -8],
  [-8, -8, 8, 8],
  [8, 8, 8, 8],
];

/** Lets all threads have found something about reading (assembly/machine/read_trial.ts). */
function vote(machine: Machine, votes: readonly number[]): void {
  for (let thread = 0; thread < machine.threads; thread++) {
    for (const [question, value] of votes.entries()) {
      machine.i32(CONTROL.THREADS + 64 * thread + 16 + 8 * question, 1)[0] = value;
    }
  }
}

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
        await checkWrites(machine, { format, style, fetches });
      }
    }
    for (const { name } of JOINED_LAYOUTS.pair) {
      using machine = await createMachine({ threads, joins: true });
      for (const { style, fetches } of styles(machine.capabilities)) {
        for (const rows of [1, 2, 3, 5]) {
          await checkWrites(machine, { format: name, style, fetches, rows });
        }
      }
    }
  }
});

async function checkWrites(
  machine: Machine,
  { format, rows = 1, style, fetches }: {
    readonly format: string;
    readonly rows?: number;
    readonly style: number;
    readonly fetches: boolean;
  },
): Promise<void> {
  const { layout } = formatLayout(format)!;
  const columns = 768, outputs = 397;
  const before = place(machine, new Uint8Array(GUARD).fill(0x5a));
  const weight = randomWeight(format, outputs, columns, 3);
  const packed = await pack(machine, format, outputs, columns, weight.bytes);
  const after = place(machine, new Uint8Array(GUARD).fill(0x5a));
  const spare = spareOffsets(layout, columns);
  const bytes = machine.u8(packed.address, packed.bytes);
  const rowBytes = q8RowBytes(columns), x = new Uint8Array(rows * rowBytes);
  for (let row = 0; row < rows; row++) {
    quantizeQ8Row(randomValues(columns, 5 + row), x.subarray(row * rowBytes, (row + 1) * rowBytes));
  }
  const c = { format, rows, outputs, columns, style }, at = place(machine, x);
  const results: Float32Array[] = [];
  for (const votes of VOTES) {
    vote(machine, votes);
    bytes.forEach((_, i) => {
      if (spare.has(i % packed.tileBytes)) bytes[i] = 0xa5;
    });
    const kept = bytes.slice();
    results.push(matmulQ8(machine, c, packed, at, undefined));
    let written = 0;
    bytes.forEach((byte, i) => {
      if (byte === kept[i]) return;
      written++;
      assert(spare.has(i % packed.tileBytes), `${format}: byte ${i}`);
    });
    assertEquals(written > 0, fetches && votes[0]! > 0, `${format}, style ${style}, ${votes}`);
  }
  for (const guard of [before, after]) {
    assert(machine.u8(guard, GUARD).every((byte) => byte === 0x5a), format);
  }
  for (const other of results.slice(1)) assertEquals(other, results[0], format);
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
        // A trial comes with every eighth chunk that is large enough (assembly/machine/read_trial.ts).
        for (let run = 0; run < 100; run++) {
          assertEquals(matmulQ8(machine, c, packed, at, undefined), first);
        }
      }
    }
  }
});

/** Each row times the matrix of an expert, both of them chosen. */
async function expertProduct(machine: Machine): Promise<() => Float32Array> {
  const columns = 512, outputs = 136, experts = 3, rows = 2, count = 2;
  const weight = randomWeight("Q4_K", experts * outputs, columns, 11);
  const packed = await pack(machine, "Q4_K", experts * outputs, columns, weight.bytes);
  const bytes = q8RowBytes(columns), x = new Uint8Array(rows * bytes);
  for (let row = 0; row < rows; row++) {
    quantizeQ8Row(randomValues(columns, 13 + row), x.subarray(row * bytes, (row + 1) * bytes));
  }
  const length = rows * count * outputs, y = machine.allocate(4 * length);
  const operands = {
    ...{ x: place(machine, x), w: packed.address, y, bias: 0, rows, count, shared: 1 },
    ...{ chosen: place(machine, Uint32Array.of(2, 0, 1, 2), 4), experts, columns, outputs },
    ...{
      layout: packed.layout,
      row_bytes: bytes,
      tile_bytes: packed.tileBytes,
      chunk: 5,
      style: 0,
    },
    scratch: machine.allocate(machine.threads * expertScratchBytes(columns)),
    scratch_bytes: expertScratchBytes(columns),
  };
  return () => {
    machine.f32(y, length).fill(-77);
    runOne(machine, "expert_matmul_q8", operands);
    return machine.f32(y, length).slice();
  };
}

Deno.test("products have the same bits, however threads found that weights are read best", async () => {
  for (const threads of [1, 2]) {
    using machine = await createMachine({ threads });
    const byExperts = await expertProduct(machine);
    for (const columns of [768, 5120]) {
      const outputs = 203, weight = randomWeight("Q4_K", outputs, columns, 3);
      const packed = await pack(machine, "Q4_K", outputs, columns, weight.bytes);
      const x = new Uint8Array(q8RowBytes(columns));
      quantizeQ8Row(randomValues(columns, 5), x);
      const at = place(machine, x), shape = { rows: 1, outputs, columns };
      const results: Float32Array[][] = [];
      for (const votes of VOTES) {
        vote(machine, votes);
        results.push([
          matmulQ8(machine, { ...shape, format: "Q4_K" }, packed, at, undefined),
          await checkQ16(machine, { ...shape, format: "Q8_0" }),
          byExperts(),
        ]);
      }
      for (const other of results.slice(1)) assertEquals(other, results[0]);
    }
  }
});
