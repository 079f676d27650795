// Micro-benchmarks of the WASM machine and its activation kernels, at the sizes of SmolLM2 135M, one
// thread. `deno bench -A bench/kernels_bench.ts`; matrix products have their own table (matmul_table.ts).

import { BINARY_NUMBERS } from "../functions/binary.ts";
import { UNARY_NUMBERS } from "../functions/unary.ts";
import { createMachine, type Machine } from "../wasm/machine.ts";
import { CACHE_KINDS } from "../wasm/opcodes_activation.ts";
import { instruction, type OpcodeName, type OperandsOf } from "../wasm/opcodes.ts";
import { createProgram, type Program } from "../wasm/program.ts";

const machine: Machine = await createMachine({ threads: 1 });
const WIDTH = 576, GROUP = 3, HIDDEN = 1536, HEADS = 9, KV_HEADS = 3, HEAD = 64, CAPACITY = 2048;

function program<Name extends OpcodeName>(name: Name, operands: OperandsOf<Name, number>): Program {
  const [opcode, list] = instruction<Name, number>(name, operands);
  return createProgram(machine, [{ name, opcode, operands: list, barrier: true }]);
}

function floats(count: number): number {
  const address = machine.allocate(4 * count);
  const view = machine.f32(address, count);
  for (let i = 0; i < count; i++) view[i] = Math.sin(i * 0.37);
  return address;
}

function integers(values: readonly number[]): number {
  const address = machine.allocate(4 * values.length);
  machine.i32(address, values.length).set(values);
  return address;
}

function bench(group: string, name: string, { run }: Program, baseline = false): void {
  let isCompiled = false;
  const fn = () => {
    // Past the baseline compiler, in the first of the runs that are not measured.
    if (!isCompiled) { for (let i = 0; i < 200; i++) run(); }
    isCompiled = true;
    run();
  };
  Deno.bench({ group, name, baseline, fn });
}

const x = floats(128 * HIDDEN), up = floats(128 * HIDDEN), y = floats(128 * HIDDEN);
const w = floats(WIDTH);

for (const rows of [1, 128]) {
  const group = `${rows} rows`;
  const flat = { x, y, count: rows * HIDDEN, alpha: 1, beta: 0 };
  bench(
    group,
    "add",
    program("combine_flat", {
      ...{ a: x, b: up, y, count: rows * WIDTH, chunk: GROUP * WIDTH, kind: BINARY_NUMBERS.add },
    }),
    true,
  );
  bench(
    group,
    "rms_norm",
    program("rms_norm", { x, w, y, rows, columns: WIDTH, group: GROUP, epsilon: 1e-5, base: 0 }),
  );
  for (const name of ["silu", "gelu_tanh", "gelu"] as const) {
    bench(group, name, program("map", { ...flat, kind: UNARY_NUMBERS[name] }));
  }
  const kind = UNARY_NUMBERS.silu;
  bench(group, "glu", program("glu", { gate: x, up, y, count: rows * HIDDEN, kind }));
  bench(
    group,
    "rope",
    program("rope", {
      ...{ x, table: up, y, rows, group: GROUP, heads: HEADS, head_size: HEAD, pairs: HEAD / 2 },
      interleaved: 1,
    }),
  );
}

for (const [rows, length] of [[1, 128], [1, 1024], [128, 128], [128, 1024]] as const) {
  for (const kind of ["f16", "f32"] as const) {
    const stateBytes = CAPACITY * KV_HEADS * HEAD * 4;
    const block = machine.allocate(2 * stateBytes);
    machine.u16(block, stateBytes).fill(0x3400);
    const positions = integers(Array.from({ length: rows }, (_, i) => length - rows + i));
    const pages = integers(Array.from({ length: CAPACITY / 64 }, (_, page) => page));
    bench(
      `attention ${rows} rows, ${length} positions`,
      kind === "f16" ? "float16 cache" : "float32 cache",
      program("attention", {
        ...{
          q: x,
          k: block,
          v: block + stateBytes,
          positions,
          slots: integers(Array(rows).fill(0)),
        },
        ...{ page_table: pages, slot_count: 1, y, rows, heads: HEADS },
        ...{
          kv_heads: KV_HEADS,
          head_size: HEAD,
          value_size: HEAD,
          capacity: CAPACITY,
          cache: CACHE_KINDS[kind],
        },
        ...{
          scale: 0.125,
          window: 0,
          softcap: 0,
          sinks: 0,
          slopes: 0,
          threads: 1,
          tile: 10,
          split_rows: 0,
          behind: 0,
        },
        ...{ segments: 1, partials: 0, scratch: machine.allocate(1 << 20), scratch_bytes: 1 << 20 },
      }),
      kind === "f16",
    );
  }
}

for (const threads of [1, 2]) {
  const other = await createMachine({ threads });
  const cells = other.allocate(64);
  const [opcode, operands] = instruction<"machine_check", number>("machine_check", {
    cells,
    total: 1,
    trap_at: 0xffffffff,
  });
  const step = { name: "machine_check", opcode, operands, barrier: true };
  const steps = createProgram(other, Array(500).fill(step));
  bench(
    "500 instructions of one chunk, a barrier each",
    `${threads} threads`,
    steps,
    threads === 1,
  );
}
