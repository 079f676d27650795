// Matrix products for benches: a machine with packed random weights, enough copies of each to leave the
// caches, and one program per case.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { q8RowBytes } from "../../quant/q8_activation.ts";
import type { Machine } from "../../wasm/machine.ts";
import { q8ScratchBytes } from "../../wasm/matmul_scratch.ts";
import { instruction, type OpcodeName } from "../../wasm/opcodes.ts";
import { packWeight } from "../../tests/support/wasm.ts";
import type { Packed } from "../../wasm/place_weight.ts";
import { floatBlock } from "../../wasm/row_blocks.ts";
import { shareTiles } from "../../wasm/weight_chunks.ts";
import { createProgram, type Program } from "../../wasm/program.ts";

/** One product: activations [rows, columns] times weights [outputs, columns]. */
export interface Product {
  readonly format: string;
  readonly rows: number;
  readonly outputs: number;
  readonly columns: number;
  /** Float activations instead of 8-bit ones. */
  readonly exact?: boolean;
}

/** A product made ready: `run` does it once on each copy of the weights. */
export interface PreparedProduct extends Disposable {
  readonly copies: number;
  /** Bytes of packed weights that one `run` reads. */
  readonly bytes: number;
  /** Multiplications and additions of one `run`. */
  readonly operations: number;
  run(): void;
  /** Each copy by itself: the product, and a reading of its weights that does nothing else. */
  readonly parts: readonly { run(): void; read(): void }[];
}

/** Weights beyond this do not stay in a cache. */
const STREAM_BYTES = 80 * 2 ** 20;
/** What a plain reading of memory reads: more than the caches of large servers. */
const READ_BYTES = 512 * 2 ** 20;

/** Prepares a product; with `stream`, on as many copies of the weights as leave the caches. */
export async function prepareProduct(
  machine: Machine,
  product: Product,
  stream: boolean,
): Promise<PreparedProduct> {
  const first = await pack(machine, product);
  const copies = stream ? Math.max(1, Math.round(STREAM_BYTES / first.bytes)) : 1;
  const all = [first];
  while (all.length < copies) all.push(await pack(machine, product));
  const buffers = allocateBuffers(machine, product, first.layout);
  const instructions = all.map((packed) =>
    multiply(product, { ...packed, threads: machine.threads }, buffers)
  );
  const program: Program = createProgram(machine, instructions);
  const products = instructions.map((one) => createProgram(machine, [one]));
  const readings = all.map(({ address, bytes }) => createProgram(machine, [read(address, bytes)]));
  return {
    copies,
    bytes: copies * first.bytes,
    operations: 2 * copies * product.rows * product.outputs * product.columns,
    run: () => program.run(),
    parts: products.map((one, i) => ({ run: () => one.run(), read: () => readings[i]!.run() })),
    [Symbol.dispose]() {
      for (const one of [program, ...products, ...readings]) one.dispose();
      for (const { address } of all) machine.release(address);
      for (const address of Object.values(buffers)) machine.release(address);
    },
  };
}

async function pack(machine: Machine, { format, outputs, columns }: Product): Promise<Packed> {
  const record = getFormat(format);
  const rowBytes = formatBytes(record, columns);
  // Any codes, so that tables are read everywhere, but bit 6 clear and bit 5 set: whatever becomes a scale is finite
  // and not subnormal, in every format.
  let state = 1;
  const row = Uint8Array.from({ length: rowBytes }, () => {
    state = (state * 1664525 + 1013904223) >>> 0;
    return 0x20 | ((state >>> 24) & 0x9f);
  });
  return await packWeight(machine, {
    source: {
      ...{ name: "bench", format, rows: outputs, columns },
      readInto(_offset, target) {
        for (let at = 0; at < target.length; at += rowBytes) target.set(row, at);
      },
    },
  });
}

function allocateBuffers(
  machine: Machine,
  { rows, outputs, columns, exact }: Product,
  layout: number,
) {
  const scratchBytes = exact ? floatBlock(columns, layout).scratch_bytes : q8ScratchBytes(columns);
  const rowBytes = exact ? 4 * columns : q8RowBytes(columns);
  const x = machine.allocate(rows * rowBytes);
  machine.u8(x, rows * rowBytes).fill(0);
  return {
    x,
    y: machine.allocate(4 * rows * outputs + 64),
    scratch: machine.allocate(machine.threads * scratchBytes),
  };
}

function multiply(
  { rows, outputs, columns, exact }: Product,
  { address, layout, tileBytes, threads }: Packed & { readonly threads: number },
  buffers: { readonly x: number; readonly y: number; readonly scratch: number },
) {
  const shared = {
    ...{ ...buffers, w: address, bias: 0, rows, columns, outputs, layout },
    ...{ tile_bytes: tileBytes, ...shareTiles(Math.ceil(outputs / 8), { tileBytes, threads }) },
  };
  const name: OpcodeName = exact ? "matmul" : "matmul_q8";
  const [opcode, operands] = exact
    ? instruction<"matmul", number>("matmul", {
      ...{ ...shared, ...floatBlock(columns, layout) },
    })
    : instruction<"matmul_q8", number>("matmul_q8", {
      ...{ ...shared, scratch_bytes: q8ScratchBytes(columns) },
      ...{ row_bytes: q8RowBytes(columns), style: 0 },
    });
  return { name, opcode, operands, barrier: true };
}

/** Prepares reading of memory that is in no cache. */
export function prepareRead(machine: Machine): PreparedProduct {
  const address = machine.allocate(READ_BYTES);
  machine.u8(address, READ_BYTES).fill(1);
  const program = createProgram(machine, [read(address, READ_BYTES)]);
  const run = () => program.run();
  return {
    ...{ copies: 1, bytes: READ_BYTES, operations: 0, run, parts: [] },
    [Symbol.dispose]() {
      program.dispose();
      machine.release(address);
    },
  };
}

/** Reads whole cache lines. */
function read(address: number, bytes: number) {
  const [opcode, operands] = instruction<"read_memory", number>("read_memory", {
    address,
    bytes: bytes & ~63,
  });
  return { name: "read_memory" as const, opcode, operands, barrier: true };
}

/** Shortest time of `runs` runs, in milliseconds, after one that warms up. */
export function shortest(run: () => void, runs: number): number {
  run();
  let best = Infinity;
  for (let i = 0; i < runs; i++) {
    const start = performance.now();
    run();
    best = Math.min(best, performance.now() - start);
  }
  return best;
}
