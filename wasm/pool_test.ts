// What becomes of a machine whose workers cannot start or die, as when the system has no thread or memory left.

import { assertEquals, assertThrows } from "@std/assert";
import { CONTROL } from "./layout.ts";
import { createMachine, type Machine, type MachineOptions, threadCount } from "./machine.ts";
import { instruction } from "./opcodes.ts";
import { createProgram, type ProgramOperand } from "./program.ts";

const THREADS = 4;
const NO_THREAD = "Resource temporarily unavailable";

/** How workers do not start. */
const FAILURES = {
  "are refused": () => {
    throw new Error(NO_THREAD);
  },
  "die before they have run": (worker: Worker) =>
    worker.onerror!({ message: NO_THREAD, preventDefault() {} } as ErrorEvent),
  "cannot make an instance": (worker: Worker) =>
    worker.onmessage!({ data: NO_THREAD } as MessageEvent),
} satisfies Record<string, (worker: Worker) => void>;

interface Crowd {
  /** Whether the n-th worker that is made fails; from 0. */
  fails: (n: number) => boolean;
  made: number;
  terminated: number;
  readonly living: Worker[];
}

/** Workers of which some fail, where there seem to be processors enough. */
async function withWorkers(
  how: (worker: Worker) => void,
  use: (crowd: Crowd) => Promise<void>,
): Promise<void> {
  const { Worker: real } = globalThis;
  const crowd: Crowd = { fails: () => false, made: 0, terminated: 0, living: [] };
  globalThis.Worker = function (url: string, options: WorkerOptions) {
    if (!crowd.fails(crowd.made++)) {
      const worker = new real(url, options);
      crowd.living.push(worker);
      return worker;
    }
    const worker = { terminate: () => crowd.terminated++ } as unknown as Worker;
    if (how === FAILURES["are refused"]) how(worker);
    worker.postMessage = () => queueMicrotask(() => how(worker));
    return worker;
  } as unknown as typeof Worker;
  Object.defineProperty(navigator, "hardwareConcurrency", { value: 300, configurable: true });
  try {
    await use(crowd);
  } finally {
    globalThis.Worker = real;
    Reflect.deleteProperty(navigator, "hardwareConcurrency");
  }
}

const open = (options: MachineOptions = {}): Promise<Machine> =>
  createMachine({ threads: THREADS, retireMs: 60_000, retryMs: 0, ...options });

/** Runs a program that adds 1 to each of many cells, by waves, and holds what came of it. */
function checkRuns(machine: Machine, runs = 20): void {
  const cells = machine.allocate(400), count = 30;
  machine.u32(cells, 100).fill(0);
  const [opcode, operands] = instruction<"machine_check", ProgramOperand>("machine_check", {
    ...{ cells, total: 100, trap_at: 0xffffffff },
  });
  using program = createProgram(
    machine,
    Array.from({ length: count }, () => ({ name: "check", opcode, operands, barrier: true })),
  );
  for (let run = 0; run < runs; run++) program.run();
  assertEquals(machine.u32(cells, 100), new Uint32Array(100).fill(runs * count));
  machine.settle();
  machine.release(cells);
}

const stateOf = (machine: Machine, thread: number) =>
  new Int32Array(machine.memory.buffer, CONTROL.THREADS + 64 * thread, 1);

/** Waits until threads are in a state. */
async function until(
  machine: Machine,
  threads: readonly number[],
  state: number,
  meanwhile: () => void = () => {},
): Promise<void> {
  while (threads.some((thread) => Atomics.load(stateOf(machine, thread), 0) !== state)) {
    meanwhile();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

for (const [what, how] of Object.entries(FAILURES)) {
  Deno.test(`where some workers ${what}, the others do the work, and they are tried again`, () =>
    withWorkers(how, async (crowd) => {
      crowd.fails = (n) => n !== 1;
      using machine = await open();
      assertEquals(machine.threads, THREADS);
      const note = "fewer threads are used at first, because one cannot start: ";
      assertEquals(machine.notes, [note + NO_THREAD]);
      checkRuns(machine);
      crowd.fails = () => false;
      await until(machine, [1, 2, 3], 1, () => checkRuns(machine, 1));
      assertEquals(machine.isReady, true);
      assertEquals(crowd.living.length, 3);
      checkRuns(machine);
      assertEquals(crowd.living.length, 3);
      if (how !== FAILURES["are refused"]) assertEquals(crowd.terminated, crowd.made - 3);
    }));

  Deno.test(`where all workers ${what}, there is one thread`, () =>
    withWorkers(how, async (crowd) => {
      crowd.fails = () => true;
      using machine = await open();
      assertEquals([machine.isReady, machine.threads], [true, 1]);
      const note = "one thread is used, because workers cannot start: ";
      assertEquals(machine.notes, [note + NO_THREAD]);
      checkRuns(machine);
      assertEquals(crowd.made, 3);
    }));

  Deno.test(`a machine goes on while those that would replace retired workers ${what}`, () =>
    withWorkers(how, async (crowd) => {
      using machine = await open({ retireMs: 5, spins: 10 });
      await until(machine, [1, 2, 3], 2);
      crowd.fails = () => true;
      checkRuns(machine);
      crowd.fails = () => false;
      machine.settle();
      const before = crowd.living.length;
      while (crowd.living.length < before + 3) {
        checkRuns(machine, 1);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }));
}

Deno.test("workers that cannot start are not tried again at each run", () =>
  withWorkers(FAILURES["are refused"], async (crowd) => {
    crowd.fails = (n) => n > 0;
    using machine = await open({ retryMs: 1e9 });
    checkRuns(machine);
    assertEquals(crowd.made, 3);
  }));

Deno.test("a worker that dies at work is a fault of the machine, which might wait for its chunk", () =>
  withWorkers(FAILURES["are refused"], async ({ living }) => {
    using machine = await open();
    await until(machine, [1, 2, 3], 1);
    living[0]!.onerror!({ message: "no memory is left", preventDefault() {} } as ErrorEvent);
    assertThrows(() => checkRuns(machine), Error, "has failed: no memory is left. Load the model");
  }));

Deno.test("threads are at most as many as the control block has room for", () =>
  withWorkers(FAILURES["are refused"], () => {
    const notes: string[] = [];
    assertEquals([threadCount(200, notes), threadCount(undefined)], [128, 16]);
    assertEquals(notes, ["200 threads were asked for; there are 128 at most"]);
    return Promise.resolve();
  }));
