// What tests of matrix kernels share: packing bytes, placing data in WASM memory, running one instruction.

import type { Machine } from "../../wasm/machine.ts";
import { instruction, type OpcodeName } from "../../wasm/opcodes.ts";
import { createPacker, type WeightSource } from "../../wasm/pack.ts";
import type { Packed } from "../../wasm/place_weight.ts";
import { createProgram } from "../../wasm/program.ts";

/** Runs one instruction, operands by name. */
export function run(machine: Machine, name: OpcodeName, operands: Record<string, number>): void {
  const [opcode, list] = instruction(name, operands as never) as [number, number[]];
  using program = createProgram(machine, [{ name, opcode, operands: list, barrier: true }]);
  program.run();
}

/**
 * Reads one matrix and packs it, by itself.
 *
 * @throws As {@linkcode Packer.pack}.
 */
export async function packWeight(
  machine: Machine,
  { source, progress, rounded = false }: {
    readonly source: WeightSource;
    readonly progress?: ((bytes: number) => void) | undefined;
    readonly rounded?: boolean | undefined;
  },
): Promise<Packed> {
  using packer = createPacker(machine);
  const packed = await packer.pack(source, { progress, rounded });
  try {
    packer.finish();
  } catch (error) {
    machine.release(packed.address);
    throw error;
  }
  return packed;
}

/** Packs a matrix that lies in host memory as a file would have it, `rounded` to 7 bit or as it is. */
export function pack(
  machine: Machine,
  format: string,
  rows: number,
  columns: number,
  bytes: Uint8Array,
  rounded = false,
): Promise<Packed> {
  const readInto = (offset: number, target: Uint8Array) =>
    target.set(bytes.subarray(offset, offset + target.length));
  return packWeight(machine, {
    source: { name: "test", format, rows, columns, readInto },
    progress: undefined,
    rounded,
  });
}

/** Copies bytes into WASM memory, at an address off by `shift` from alignment. */
export function place(machine: Machine, data: ArrayBufferView, shift = 0): number {
  const address = machine.allocate(data.byteLength + 64) + shift;
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  machine.u8(address, bytes.length).set(bytes);
  return address;
}
