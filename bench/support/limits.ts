// What a machine does at most, measured on the same threads in the same run as what is held against it:
// reading memory and nothing else, and the arithmetic of matrix products and nothing else. `share` in
// figures is the part of the nearer of the two limits.

import { createMachine, type Machine } from "../../wasm/machine.ts";
import { instruction } from "../../wasm/opcodes.ts";
import { type PeakKind, peakKinds } from "./peak_kinds.ts";
import { createProgram } from "../../wasm/program.ts";
import { prepareRead, shortest } from "./matmul.ts";

/** Limits of a machine with its threads. */
export interface Limits {
  /** Reading memory that is in no cache, GB/s. */
  readonly read: number;
  /** The best way to multiply 8-bit integers, 10⁹ operations a second. */
  readonly integer: number;
  /** float32 multiply-add, 10⁹ operations a second. */
  readonly float: number;
  /** Every kind of arithmetic by name. */
  readonly kinds: Readonly<Record<string, number>>;
}

/** What a kernel did. */
export interface Work {
  /** Bytes of weights or caches, each counted once. */
  readonly bytes: number;
  /** Multiplications and additions. */
  readonly operations: number;
  readonly isFloat: boolean;
}

const TIMES = 100_000;
const RUNS = 10;

function peakOf(machine: Machine, { kind, operations }: PeakKind): number {
  const chunks = 4 * machine.threads;
  const [opcode, operands] = instruction<"peak", number>("peak", { chunks, kind, times: TIMES });
  using program = createProgram(machine, [{ name: "peak", opcode, operands, barrier: true }]);
  return chunks * TIMES * operations / shortest(() => program.run(), RUNS) / 1e6;
}

/** Measures this computer with so many threads; takes a second or two. */
export async function machineLimits(threads: number): Promise<Limits> {
  using machine = await createMachine({ threads });
  return measureLimits(machine);
}

/** Measures the threads of a machine. */
export function measureLimits(machine: Machine): Limits {
  const kinds = Object.fromEntries(
    peakKinds(machine.capabilities).map((kind) => [kind.name, peakOf(machine, kind)]),
  );
  using read = prepareRead(machine);
  const { float = NaN, ...integers } = kinds;
  return {
    read: read.bytes / shortest(() => read.run(), 2 * RUNS) / 1e6,
    integer: Math.max(...Object.values(integers)),
    float,
    kinds,
  };
}

/** Milliseconds that the work takes at best: the nearer limit counts. */
export function leastMs({ bytes, operations, isFloat }: Work, limits: Limits): number {
  return Math.max(bytes / limits.read, operations / (isFloat ? limits.float : limits.integer)) /
    1e6;
}

/** Limits as a line of text. */
export function limitsText({ read, kinds }: Limits): string {
  const arithmetic = Object.entries(kinds).map(([name, value]) => `${name} ${value.toFixed(0)}`);
  return `limits: read ${read.toFixed(1)} GB/s, ${arithmetic.join(", ")} GOPS`;
}
