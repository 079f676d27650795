// Makes V8 compile the matrix kernels well before they are needed. A module starts in V8's quick compiler,
// whose kernels take three to thirteen times as long; the good one starts when a function has run for a
// while, and works beside the program. Running each kernel for some milliseconds on a few zeros before
// weights are read lets it work while they are read, and the first prompt finds fast kernels.

import { q8RowBytes } from "../quant/q8_activation.ts";
import type { Machine } from "./machine.ts";
import { floatScratchBytes, q8ScratchBytes } from "./matmul_scratch.ts";
import { instruction } from "./opcodes.ts";
import { createProgram, type ProgramInstruction } from "./program.ts";
import { layoutOfFormat, PADDED_ROWS, tileBytes } from "./weight_layout.ts";

/** A kernel by its op and the number format of its weights. */
export interface MatrixKernel {
  readonly op: "matmul" | "matmul_q8";
  readonly format: string;
}

const COLUMNS = 256;
/** One row takes the GEMV, seven take tiles of all heights. */
const ROWS: readonly number[] = [1, 7];
/** Where V8 15 has decided on every kernel (400 to 700 runs were counted). */
const RUNS = 800;

/** Runs kernels until V8 has taken notice; some 4 ms each. */
export function warmUp(machine: Machine, kernels: Iterable<MatrixKernel>): void {
  for (const { op, format } of kernels) {
    const layout = layoutOfFormat(format) ?? layoutOfFormat("F32")!;
    const most = Math.max(...ROWS);
    const weightBytes = PADDED_ROWS / 8 * tileBytes(layout, COLUMNS);
    const scratchBytes = Math.max(q8ScratchBytes(COLUMNS), floatScratchBytes());
    const sizes = [weightBytes, 4 * COLUMNS * most, 4 * PADDED_ROWS * most];
    const [w, x, y] = sizes.map((bytes) => zeros(machine, bytes)) as [number, number, number];
    const scratch = machine.allocate(scratchBytes * machine.threads);
    const shared = {
      ...{ x, w, y, bias: 0, columns: COLUMNS, outputs: PADDED_ROWS, layout: layout.id },
      ...{ tile_bytes: tileBytes(layout, COLUMNS), chunk: 2, scratch, scratch_bytes: scratchBytes },
    };
    const instructions = ROWS.map((rows): ProgramInstruction => {
      const [opcode, operands] = op === "matmul"
        ? instruction<"matmul", number>("matmul", { ...shared, rows })
        : instruction<"matmul_q8", number>("matmul_q8", {
          ...{ ...shared, rows, row_bytes: q8RowBytes(COLUMNS), style: 0 },
        });
      return { name: op, opcode, operands, barrier: true };
    });
    const program = createProgram(machine, instructions);
    for (let run = 0; run < RUNS; run++) program.run();
    program.dispose();
    for (const address of [w, x, y, scratch]) machine.release(address);
  }
}

function zeros(machine: Machine, bytes: number): number {
  const address = machine.allocate(bytes);
  machine.u8(address, bytes).fill(0);
  return address;
}
