import { assert, assertEquals, assertGreater, assertRejects, assertThrows } from "@std/assert";
import { OutOfMemoryError } from "./allocator.ts";
import { CONTROL, PROGRAM } from "./layout.ts";
import { createMachine, type Machine } from "./machine.ts";
import { instruction } from "./opcodes.ts";
import { createProgram, type ProgramOperand } from "./program.ts";

/** Threads, where the machine has as many processors. */
const TWO = Math.min(2, navigator.hardwareConcurrency);

function check(cells: number, total: ProgramOperand, trapAt = 0xffffffff, barrier = true) {
  const [opcode, operands] = instruction<"machine_check", ProgramOperand>("machine_check", {
    cells,
    total,
    trap_at: trapAt,
  });
  return { name: "machine_check", opcode, operands, barrier };
}

function clear(machine: Machine, count: number): number {
  const cells = machine.allocate(4 * count);
  machine.u32(cells, count).fill(0);
  return cells;
}

Deno.test("workers that retire before anybody hears of them, and are replaced, were ready", async () => {
  if (TWO < 2) return;
  using machine = await createMachine({ threads: 2, retireMs: 10, wait: false });
  const words = new Int32Array(machine.memory.buffer);
  // A thread that plans for long hears nothing.
  const nap = new Int32Array(new SharedArrayBuffer(4));
  while (Atomics.load(words, CONTROL.RETIRED >> 2) === 0) Atomics.wait(nap, 0, 0, 5);
  using program = createProgram(machine, [check(clear(machine, 8), 8)]);
  program.run();
  await machine.ready;
  assertEquals(machine.threads, 2);
});

Deno.test("every chunk of every instruction is executed once a run, on any number of threads", async () => {
  for (const threads of [1, 2]) {
    using machine = await createMachine({ threads });
    const cells = clear(machine, 1000);
    // 40 instructions on the same cells: a lost barrier would lose additions
    using program = createProgram(
      machine,
      Array.from({ length: 40 }, (_, i) => check(cells, 1000 - 20 * i)),
    );
    const runs = 50;
    for (let run = 0; run < runs; run++) program.run();
    const expected = Uint32Array.from(
      { length: 1000 },
      (_, c) => runs * Math.min(40, Math.ceil((1000 - c) / 20)),
    );
    assertEquals(machine.u32(cells, 1000), expected);
  }
});

Deno.test("each chunk of a chain goes through all links, on any number of threads", async () => {
  for (const threads of [1, 2]) {
    for (const profile of [false, true]) {
      using machine = await createMachine({ threads, spins: 100 });
      const cells = clear(machine, 300);
      const link = (cells: number) => ({ ...check(cells, ({ M }) => M!, -1, false), linked: true });
      // The same cells in every link: a chunk that another thread took on its own would lose additions.
      using program = createProgram(machine, [
        check(cells, ({ M }) => M!),
        link(cells),
        link(cells),
        check(cells + 400, 100, -1, false),
        { ...check(cells + 400, 100, -1, false), linked: true },
        check(cells, 300),
      ], { profile });
      let runs = 0;
      for (; runs < 60; runs++) program.run({ M: runs % 2 ? 100 : 1 });
      const counts = machine.u32(cells, 300);
      // Three links in every run or in every second one, two links, and all at the end.
      const expected = [4 * runs, 2.5 * runs, 3 * runs, 3 * runs, runs];
      assertEquals([0, 99, 100, 199, 200].map((cell) => counts[cell]), expected);
      if (profile) {
        assertEquals(program.profile().find((e) => e.name === "machine_check")?.calls, 6 * runs);
      }
    }
  }
});

Deno.test("a program runs by waves as in one go, in whatever ranges, also behind a run that ended early", async () => {
  for (const threads of [1, TWO]) {
    for (const profile of [false, true]) {
      using machine = await createMachine({ threads, spins: 100 });
      const cells = clear(machine, 300), before = machine.usedBytes;
      const link = { ...check(cells, ({ M }) => M!, -1, false), linked: true };
      const program = createProgram(machine, [
        check(cells, ({ M }) => M!),
        link,
        check(cells + 400, 100, -1, false),
        ...Array.from({ length: 38 }, () => check(cells, ({ M }) => M!)),
        check(cells, 300),
      ], { profile });
      assertEquals(program.waves, 40);
      // All pairs of cuts: more ranges than are kept.
      let runs = 0;
      for (let first = 0; first < 40; first++) {
        for (let end = first + 1; end <= 40; end++) {
          const M = runs % 2 ? 100 : 50, cuts = [0, first, end, 40];
          for (let i = 0; i < 3; i++) {
            const [from, to] = [cuts[i]!, cuts[i + 1]!];
            if (to > from) program.run({ M }, { first: from, count: to - from });
          }
          runs++;
        }
      }
      const counts = machine.u32(cells, 300);
      // 40 instructions on leading cells and a link, of which every second run has few; one on all.
      const expected = [41 * runs, 21 * runs, 2 * runs, runs];
      assertEquals([0, 99, 100, 200].map((cell) => counts[cell]), expected);
      program.run({ M: 50 }, { first: 0, count: 7 });
      program.run({ M: 50 });
      assertEquals(machine.u32(cells, 300)[0], 41 * runs + 8 + 41);
      assertEquals(machine.u32(cells, 300)[299], runs + 1);
      const [own, waiting] = program.profile();
      if (profile) assertEquals([own?.calls, waiting?.name], [42 * (runs + 2), "(waiting)"]);
      program.dispose();
      assertEquals(machine.usedBytes, before);
    }
  }
});

Deno.test("links that are cut differently are a fault, and a link needs a head", async () => {
  using machine = await createMachine({ threads: 1 });
  const cells = clear(machine, 10);
  const link = { ...check(cells, 9, -1, false), linked: true };
  using program = createProgram(machine, [check(cells, 10), link]);
  assertThrows(() => program.run(), Error);
  using other = await createMachine({ threads: 1 });
  assertThrows(() => createProgram(other, [link]), RangeError, "must follow");
  assertThrows(
    () => createProgram(other, [check(0, 1), { ...link, barrier: true }]),
    RangeError,
    "must follow",
  );
});

Deno.test("programs that run alone and with workers take turns and lose no chunk", async () => {
  using machine = await createMachine({ threads: 2, spins: 100 });
  const cells = clear(machine, 100);
  const programs = [true, false, true].map((alone) =>
    createProgram(machine, Array.from({ length: 5 }, () => check(cells, ({ M }) => M!)), { alone })
  );
  let expected = 0;
  for (let run = 0; run < 60; run++) {
    const M = 50 + 25 * (run % 3);
    for (const program of programs) program.run({ M });
    expected += 5 * programs.length;
    assertEquals(machine.u32(cells, 100)[0], expected);
  }
  const turns = (least: number) =>
    [...Array(60).keys()].filter((run) => 50 + 25 * (run % 3) > least);
  assertEquals(machine.u32(cells, 100)[99], turns(99).length * 5 * programs.length);
  for (const program of programs) program.dispose();
});

Deno.test("what was started is done when it is finished, or when something else runs before", async () => {
  for (const threads of [1, 2]) {
    using machine = await createMachine({ threads, spins: 100 });
    const cells = clear(machine, 100);
    using first = createProgram(machine, [check(cells, ({ M }) => M!)]);
    using second = createProgram(machine, [check(cells, 100)]);
    for (let run = 0; run < 40; run++) {
      first.start({ M: 100 });
      if (run % 2) second.run();
      assertEquals(machine.u32(cells, 100)[99]! >= run, true);
      first.finish();
      first.finish();
    }
    assertEquals(machine.u32(cells, 100), new Uint32Array(100).fill(60));
    first.start({ M: 100 });
    machine.settle();
    assertEquals(machine.u32(cells, 100), new Uint32Array(100).fill(61));
  }
});

Deno.test("operands follow the bindings of each run", async () => {
  using machine = await createMachine({ threads: 2 });
  const cells = clear(machine, 64);
  using program = createProgram(machine, [check(cells, ({ M }) => 2 * M!)]);
  for (const M of [1, 32, 0, 5, 5]) program.run({ M });
  const counts = machine.u32(cells, 64);
  assertEquals([counts[0], counts[1], counts[9], counts[10], counts[63]], [4, 4, 3, 1, 1]);
});

Deno.test("idle workers retire and are replaced by the next run", async () => {
  using machine = await createMachine({ threads: 2, retireMs: 20, spins: 10 });
  if (machine.threads < 2) return;
  const state = new Int32Array(machine.memory.buffer, CONTROL.THREADS + 64, 1);
  const until = async (value: number) => {
    for (let i = 0; i < 6000 && Atomics.load(state, 0) !== value; i++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assertEquals(Atomics.load(state, 0), value);
  };
  await until(2);
  const cells = clear(machine, 8);
  using program = createProgram(machine, [check(cells, 8)]);
  program.run();
  assertEquals([...machine.u32(cells, 8)], new Array(8).fill(1));
  await new Promise((resolve) => setTimeout(resolve, 5));
  await until(2); // started again, and retired again
});

Deno.test("a trap becomes an error that names it, and the machine refuses further runs", async () => {
  using machine = await createMachine({ threads: 2 });
  const cells = clear(machine, 100);
  const program = createProgram(machine, [check(cells, 100, 50), check(cells, 100)]);
  const error = assertThrows(() => program.run(), Error, "The WASM machine has failed");
  assert(error.message.includes("unreachable"));
  assertThrows(() => program.run(), Error, "Load the model again");
});

Deno.test("a worker that never finishes its chunk is an error after a while, not a hang", async () => {
  using machine = await createMachine({ threads: 2, stallMs: 30, spins: 100 });
  const cells = clear(machine, 4);
  // Programs take the first free block, so this one will be where the free block was.
  const base = machine.allocate(1024);
  machine.release(base);
  const program = createProgram(machine, [
    check(cells, () => {
      // as if a worker had taken the only chunk and died: the counter says 1 of 1
      const counter = machine.u32(base + PROGRAM.COUNTERS, 1)[0]!;
      machine.u32(counter, 1)[0] = 1;
      return 1;
    }),
  ]);
  const message = "no worker answered for 30 ms";
  assertThrows(() => program.run({}), Error, message);
  assertThrows(() => program.run({}), Error, message);
});

Deno.test("where the main thread must not block, it polls", async () => {
  const { wait } = Atomics;
  Atomics.wait = () => {
    throw new TypeError("Atomics.wait cannot be called in this context");
  };
  try {
    using machine = await createMachine({ threads: 2, spins: 1 });
    assertEquals(machine.u32(CONTROL.MAIN_SLEEPS, 1)[0], 0);
    const cells = clear(machine, 64);
    using program = createProgram(machine, Array.from({ length: 40 }, () => check(cells, 64)));
    for (let run = 0; run < 50; run++) program.run();
    assertEquals(machine.u32(cells, 64), new Uint32Array(64).fill(2000));
  } finally {
    Atomics.wait = wait;
  }
});

Deno.test("a script that forgets dispose() ends by itself, and needs no permission", async () => {
  const url = new URL("./machine.ts", import.meta.url).href;
  const code = `import { createMachine } from "${url}"; ` +
    `const machine = await createMachine({ threads: ${TWO}, retireMs: 50 }); console.log(machine.notes.length);`;
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-check", "-"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(300_000),
  });
  const child = command.spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(code));
  await writer.close();
  const { success, stdout, stderr } = await child.output();
  assert(success, new TextDecoder().decode(stderr));
  assertEquals(new TextDecoder().decode(stdout).trim(), "0");
});

Deno.test("without workers the machine has one thread and says so", async () => {
  const { Worker: real } = globalThis;
  globalThis.Worker = class {
    constructor() {
      throw new TypeError("not allowed here");
    }
  } as unknown as typeof Worker;
  try {
    using machine = await createMachine({ threads: 2 });
    assertEquals(machine.threads, 1);
    const note = "one thread is used, because workers cannot start: not allowed here";
    if (navigator.hardwareConcurrency > 1) assertEquals(machine.notes, [note]);
    const cells = clear(machine, 8);
    using program = createProgram(machine, [check(cells, 8)]);
    program.run();
    assertEquals([...machine.u32(cells, 8)], new Array(8).fill(1));
  } finally {
    globalThis.Worker = real;
  }
});

Deno.test("without SharedArrayBuffer, as in a page that is not isolated, one thread does the work", async () => {
  const { Worker: real, SharedArrayBuffer: shared } = globalThis;
  const stopped: string[] = [];
  globalThis.Worker = class {
    postMessage() {
      throw new DOMException("memory cannot be cloned", "DataCloneError");
    }
    terminate() {
      stopped.push("worker");
    }
  } as unknown as typeof Worker;
  Reflect.deleteProperty(globalThis, "SharedArrayBuffer");
  try {
    using machine = await createMachine({ threads: 2 });
    assertEquals(machine.threads, 1);
    if (navigator.hardwareConcurrency > 1) {
      const note = "one thread is used, because workers cannot start: memory cannot be cloned";
      assertEquals([machine.notes, stopped], [[note], ["worker"]]);
    }
    const cells = clear(machine, 8);
    using program = createProgram(machine, [check(cells, 8)]);
    program.run();
    assertEquals([...machine.u32(cells, 8)], new Array(8).fill(1));
  } finally {
    Object.assign(globalThis, { Worker: real, SharedArrayBuffer: shared });
  }
});

Deno.test("addresses above 2 GiB are unsigned", async () => {
  using machine = await createMachine({ threads: 1 });
  machine.allocate(2.5 * 2 ** 30);
  const cells = machine.allocate(4 * 1000);
  assertGreater(cells, 2 ** 31);
  machine.u32(cells, 1000).fill(7);
  using program = createProgram(machine, [check(cells, 1000)]);
  program.run();
  assertEquals(machine.u32(cells, 1000), new Uint32Array(1000).fill(8));
});

Deno.test("a request beyond 4 GiB is refused with numbers", async () => {
  using machine = await createMachine({ threads: 1 });
  machine.allocate(64);
  assertThrows(
    () => machine.allocate(2 ** 32),
    RangeError,
    "Cannot allocate 4294967296 bytes of WASM memory: 64 of 4294967296 bytes are in use",
  );
});

Deno.test("more threads than processors are noted, less than one is refused", async () => {
  using machine = await createMachine({ threads: 100_000 });
  assertEquals(machine.threads, navigator.hardwareConcurrency);
  assertEquals(machine.notes.length, 1);
  await assertRejects(() => createMachine({ threads: 0 }), RangeError, "give an integer from 1");
});

Deno.test("both variants run where the engine has relaxed SIMD", async () => {
  for (const variant of ["baseline", "relaxed"] as const) {
    using machine = await createMachine({ threads: 1, variant });
    assertEquals(machine.capabilities.simd, variant);
  }
});

Deno.test("a caller who lets no events through sees that the workers are up", async () => {
  using machine = await createMachine({ threads: TWO, wait: false });
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (let waits = 0; !machine.isReady && waits < 10_000; waits++) Atomics.wait(cell, 0, 0, 1);
  assert(machine.isReady);
  await machine.ready;
  assertEquals([machine.threads, machine.notes], [TWO, []]);
});

Deno.test("a memory grows in few steps, and up to its limit", async () => {
  const memoryBytes = 100 * 2 ** 20;
  using machine = await createMachine({ threads: 1, memoryBytes });
  const sizes = new Set<number>();
  for (let block = 0; block < 90; block++) {
    machine.allocate(2 ** 20);
    sizes.add(machine.committedBytes);
  }
  assertEquals(sizes.size, 2);
  assertThrows(() => machine.allocate(12 * 2 ** 20), OutOfMemoryError);
  machine.allocate(8 * 2 ** 20);
  assertEquals(machine.committedBytes <= memoryBytes, true);
});

Deno.test("memory that is expected is touched by idle workers, keeps what it holds, and is left alone once a run begins", async () => {
  // On a busy computer a worker can be set aside for so long that it would retire.
  using machine = await createMachine({ threads: 2, retireMs: 60_000 });
  if (machine.threads < 2) return;
  const control = machine.u32(0, CONTROL.END >> 2);
  const next = () => Atomics.load(control, CONTROL.TOUCH_NEXT >> 2);
  const bytes = 8 * 2 ** 20;
  machine.expect(bytes);
  assertGreater(machine.committedBytes, bytes);
  const words = machine.u32(machine.allocate(bytes), bytes >> 2);
  const { byteOffset } = words;
  for (let i = 0; i < words.length; i++) words[i] = i;
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (let waits = 0; next() < byteOffset + bytes && waits < 60_000; waits++) {
    Atomics.wait(cell, 0, 0, 1);
  }
  assertEquals(next() >= byteOffset + bytes, true);
  assertEquals(words.findIndex((word, i) => word !== i), -1);

  machine.expect(bytes);
  const cells = clear(machine, 8);
  using program = createProgram(machine, [check(cells, 8)]);
  program.run();
  assertEquals(Atomics.load(control, CONTROL.TOUCH_END >> 2), 0);
});
