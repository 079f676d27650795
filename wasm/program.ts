// A program: instructions in WASM memory that all threads of a machine execute. It is built once;
// operands that depend on a step's bindings are functions, evaluated again only when bindings change.
// A run allocates nothing.

import { INSTRUCTION, MAX_OPERANDS, PROGRAM } from "./layout.ts";
import type { Machine } from "./machine.ts";
import { OPCODE_NAMES, OPCODES } from "./opcodes.ts";

/** Values of symbols for one run. */
export type Bindings = Readonly<Record<string, number>>;

/** An operand: fixed, or computed from bindings. */
export type ProgramOperand = number | ((bindings: Bindings) => number);

/** One instruction as lowering gives it. */
export interface ProgramInstruction {
  /** Kernel name in profiles. */
  readonly name: string;
  readonly opcode: number;
  readonly operands: readonly ProgramOperand[];
  /** Whether it needs results of the instructions before it; without, it may overlap with them. */
  readonly barrier: boolean;
  /** True: it runs on the chunks of the instruction before it, which must be cut alike; it has no barrier. */
  readonly linked?: boolean;
}

/** Time spent by kernel on the calling thread. */
export interface ProfileEntry {
  readonly name: string;
  readonly calls: number;
  readonly ms: number;
}

/** A program in the memory of a machine. */
export interface Program extends Disposable {
  /** Bytes of WASM memory taken. */
  readonly bytes: number;
  /** Executes all instructions; returns when every thread has finished. */
  run(bindings?: Bindings): void;
  /** First half of a run: the workers begin, and the caller goes on with something else. */
  start(bindings?: Bindings): void;
  /** Second half; nothing is left to do if the machine has run something else since. */
  finish(): void;
  /** Times since the last call, the last entry is waiting; empty unless built with `profile`. */
  profile(): ProfileEntry[];
  /** Gives its memory back. */
  dispose(): void;
}

/** Options of {@linkcode createProgram}. */
export interface ProgramOptions {
  /** Measures time by instruction. */
  readonly profile?: boolean;
  /** Runs on the calling thread: for programs shorter than waking the others takes. */
  readonly alone?: boolean;
}

const LINE = 64;

/**
 * Writes a program into the machine's memory.
 *
 * @throws {RangeError} If an instruction has the wrong number of operands, or memory is exhausted.
 */
export function createProgram(
  machine: Machine,
  instructions: readonly ProgramInstruction[],
  options: ProgramOptions = {},
): Program {
  const count = instructions.length;
  const waves = instructions.reduce((n, { barrier }, i) => n + (barrier || i === 0 ? 1 : 0), 0);
  const codeBytes = count * INSTRUCTION.BYTES!;
  const lines = count + waves;
  const timesBytes = options.profile ? 8 * (count + 1) : 0;
  const bytes = PROGRAM.BYTES + codeBytes + lines * LINE + timesBytes;
  const base = machine.allocate(bytes);
  const code = base + PROGRAM.BYTES;
  const counters = code + codeBytes;
  const times = counters + lines * LINE;

  // Views are held for good: they stay valid when the memory grows.
  const words = machine.u32(base, bytes >> 2).fill(0);
  const floats = machine.f32(base, bytes >> 2);
  const at = (address: number) => (address - base) >> 2;
  words[PROGRAM.COUNT >> 2] = count;
  words[PROGRAM.CODE >> 2] = code;
  words[PROGRAM.COUNTERS >> 2] = counters;
  words[PROGRAM.LINES >> 2] = lines;
  words[PROGRAM.TIMES >> 2] = options.profile ? times : 0;

  const patches: ((bindings: Bindings) => void)[] = [];
  let wave = -1;
  let head = 0;
  instructions.forEach(({ name, opcode, operands, barrier, linked }, index) => {
    const record = OPCODES[OPCODE_NAMES[opcode]!];
    const kinds = Object.values(record.operands);
    if (operands.length !== kinds.length || operands.length > MAX_OPERANDS) {
      throw new RangeError(
        `Cannot encode ${name}: ${operands.length} operands are given, ${kinds.length} expected`,
      );
    }
    if (linked && (barrier || index === 0)) {
      throw new RangeError(`Cannot link ${name}: it must follow an instruction without a barrier`);
    }
    if (barrier || index === 0) wave++;
    const start = at(code + index * INSTRUCTION.BYTES);
    words[start + (INSTRUCTION.KERNEL >> 2)] = machine.exports.kernelIndex(opcode);
    words[start + (INSTRUCTION.FLAGS >> 2)] = barrier && index > 0 ? 1 : 0;
    if (!linked) head = start;
    else words[head + (INSTRUCTION.FLAGS >> 2)]! += 2;
    words[start + (INSTRUCTION.COUNTER >> 2)] = counters + index * LINE;
    words[start + (INSTRUCTION.DONE >> 2)] = counters + (count + wave) * LINE;
    operands.forEach((operand, position) => {
      const word = start + (INSTRUCTION.OPERANDS >> 2) + position;
      const target = kinds[position] === "f32" ? floats : words;
      if (typeof operand === "number") target[word] = operand;
      else patches.push((bindings) => target[word] = operand(bindings));
    });
  });

  let current: Record<string, number> | undefined;
  let pending: Bindings = {};
  function patch(): void {
    for (const apply of patches) apply(pending);
  }
  function changed(bindings: Bindings): boolean {
    if (current === undefined) return true;
    for (const key in bindings) if (bindings[key] !== current[key]) return true;
    return false;
  }

  let disposed = false;
  function dispose(): void {
    if (disposed) return;
    disposed = true;
    machine.settle();
    machine.release(base);
  }

  let calls = 0;
  function profile(): ProfileEntry[] {
    if (!options.profile) return [];
    const clock = machine.f64(times, count + 1);
    const entries = new Map<string, { name: string; calls: number; ms: number }>();
    const add = (name: string, n: number, ms: number) => {
      const entry = entries.get(name) ?? { name, calls: 0, ms: 0 };
      entry.calls += n;
      entry.ms += ms;
      entries.set(name, entry);
    };
    instructions.forEach(({ name }, index) => add(name, calls, clock[index]!));
    add("(waiting)", calls * waves, clock[count]!);
    clock.fill(0);
    calls = 0;
    return [...entries.values()];
  }

  return {
    bytes,
    run(bindings: Bindings = {}): void {
      if (disposed) throw new Error("Cannot run a program: it was disposed");
      calls++;
      if (!changed(bindings)) return machine.run(base, undefined, options.alone);
      pending = bindings;
      current = undefined;
      machine.run(base, patch, options.alone);
      current = { ...bindings };
    },
    start(bindings: Bindings = {}): void {
      if (disposed) throw new Error("Cannot start a program: it was disposed");
      calls++;
      pending = bindings;
      current = undefined;
      machine.start(base, patch);
    },
    finish: () => machine.finish(),
    profile,
    dispose,
    [Symbol.dispose]: dispose,
  };
}
