// A program: instructions in WASM memory that all threads of a machine execute. It is built once;
// operands that depend on a step's bindings are functions, evaluated again only when bindings change.
// A run allocates nothing.

import { INSTRUCTION, LINE, MAX_OPERANDS, PROGRAM } from "./layout.ts";
import type { Machine } from "./machine.ts";
import { OPCODE_NAMES, OPCODES } from "./opcodes.ts";
import { createRanges, type WaveRange } from "./program_ranges.ts";

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
  /** How many waves it has. */
  readonly waves: number;
  /** Executes all instructions, or those of some waves, and returns when every thread has finished. */
  run(bindings?: Bindings, range?: WaveRange): void;
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

/** Types of an instruction's operands. @throws {RangeError} If it has others, or is linked to nothing. */
function operandKinds(
  { name, opcode, operands, barrier, linked }: ProgramInstruction,
  index: number,
): readonly string[] {
  const kinds = Object.values(OPCODES[OPCODE_NAMES[opcode]!].operands);
  if (operands.length !== kinds.length || operands.length > MAX_OPERANDS) {
    throw new RangeError(
      `Cannot encode ${name}: ${operands.length} operands are given, ${kinds.length} expected`,
    );
  }
  if (linked && (barrier || index === 0)) {
    throw new RangeError(`Cannot link ${name}: it must follow an instruction without a barrier`);
  }
  return kinds;
}

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
  /** The first instruction of each wave, and the end. */
  const starts = instructions.flatMap(({ barrier }, i) => barrier || i === 0 ? [i] : []);
  const waves = starts.push(count) - 1;
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
  instructions.forEach((instruction, index) => {
    const { opcode, operands, barrier, linked } = instruction;
    const kinds = operandKinds(instruction, index);
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

  const ranges = createRanges(machine, {
    ...{ starts, code, counters, words: words.subarray(at(counters)) },
    times: options.profile ? times : 0,
    alone: options.alone ?? false,
  });
  let disposed = false;
  function dispose(): void {
    if (disposed) return;
    disposed = true;
    ranges.drop();
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
    ...{ bytes, waves },
    run(bindings: Bindings = {}, range?: WaveRange): void {
      if (disposed) throw new Error("Cannot run a program: it was disposed");
      if (!range || range.first === 0) calls++;
      const isKnown = !changed(bindings), apply = isKnown ? undefined : patch;
      if (!isKnown) {
        pending = bindings;
        current = undefined;
      }
      if (range && range.count < waves) ranges.run(range, apply);
      else machine.run(base, apply, options.alone);
      if (!isKnown) current = { ...bindings };
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
