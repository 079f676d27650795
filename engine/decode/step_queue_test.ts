import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import type { Executable } from "../run/executable.ts";
import { ownRows } from "../run/pages/cache_rows.ts";
import { addRows, createStep, type Step, WANTED } from "../run/step.ts";
import { CacheRoom } from "./cache_room.ts";
import { type RowsWish, StepQueue } from "./step_queue.ts";

/** A queue on a device that writes down its steps: of each row slot, position and token. */
function setUp(
  { batch = 8, logitRows = 4, ...more }: Partial<Executable> & {
    readonly batch?: number;
    readonly logitRows?: number;
  } = {},
): { queue: StepQueue; steps: string[]; wishes: number[] } {
  const steps: string[] = [], wishes: number[] = [];
  const executable = {
    run(step: Step): void {
      const rows = Array.from({ length: step.count }, (_, row) => {
        if (step.tokens[row] === 666) throw new RangeError("no such token");
        const mark = step.wanted[row] === WANTED.nothing ? "" : "*";
        return `${step.slots[row]}@${step.positions[row]}=${step.tokens[row]}${mark}`;
      });
      steps.push(rows.join(" "));
      wishes.push(step.feedback);
    },
    rows: ownRows({ readState: () => new Uint8Array(), writeState() {} }, {
      ...{ slots: 32, capacity: 2048 },
    }),
    ...more,
  } as unknown as Executable;
  const caches = new CacheRoom(executable, "model");
  const queue = new StepQueue({ executable, caches, step: createStep(batch), batch, logitRows });
  return { queue, steps, wishes };
}

function wish(slot: number, tokens: readonly number[], given: Partial<RowsWish> = {}): RowsWish {
  return {
    ...{ slot, tokens, from: 0, to: tokens.length, start: 0, scales: [] },
    ...{ wanted: 1, wantedRows: 1, feedback: 0, priority: 0, signal: undefined },
    check() {},
    read() {},
    ...given,
  };
}

Deno.test("rows that are asked for in one turn are one step", async () => {
  const { queue, steps, wishes } = setUp();
  await Promise.all([
    queue.compute(wish(0, [5, 6], { feedback: 7 })),
    queue.compute(wish(2, [9], { start: 4, feedback: 3 })),
  ]);
  assertEquals(steps, ["0@0=5 0@1=6* 2@4=9*"]);
  await Promise.all([
    queue.compute(wish(0, [5], { feedback: 7, start: 2 })),
    queue.compute(wish(2, [9], { start: 5 })),
  ]);
  await Promise.all([
    queue.compute(wish(0, [5], { feedback: 7, start: 3 })),
    queue.compute(wish(2, [9], { feedback: 9, worth: 1, start: 6 })),
  ]);
  // The longer wish, unless one has none, and not more than is worth it for each.
  assertEquals(wishes, [7, 0, 1]);
});

Deno.test("who asks again as soon as he has his row is in the next step, and who is slow delays nobody", async () => {
  const { queue, steps } = setUp();
  const answer = async (slot: number, wait: () => Promise<void>) => {
    for (let i = 0; i < 3; i++) {
      await queue.compute(wish(slot, [i], { start: i }));
      await wait();
    }
  };
  const quick = Promise.all([
    answer(0, () => Promise.resolve()),
    answer(1, () => Promise.resolve()),
  ]);
  await Promise.all([quick, answer(2, () => quick.then(() => {}))]);
  assertEquals(steps.slice(0, 3), ["0@0=0* 1@0=0* 2@0=0*", "0@1=1* 1@1=1*", "0@2=2* 1@2=2*"]);
  assertEquals(steps.slice(3), ["2@1=1*", "2@2=2*"]);
});

Deno.test("a step costs one turn of the event loop at most, for one answer and for many, and fewer where nobody comes or goes", async () => {
  const { queue, steps } = setUp({ batch: 32, logitRows: 32 });
  for (const count of [1, 32]) {
    using turns = countTurns();
    const before = steps.length;
    await Promise.all(Array.from({ length: count }, async (_, slot) => {
      for (let i = 0; i < 50; i++) await queue.compute(wish(slot, [i], { start: i }));
    }));
    assertEquals(steps.length - before, 50);
    assertLess(turns.count, 50);
  }
});

Deno.test("who is alone lets others in, and one who takes a turn of his own for each token is not left behind", async () => {
  const { queue, steps } = setUp();
  let isOver = false;
  const quick = (async () => {
    for (let i = 0; !isOver; i = (i + 1) % 500) await queue.compute(wish(0, [i], { start: i }));
  })();
  await new Promise((resolve) => setTimeout(resolve, 0));
  const before = steps.length;
  for (let i = 0; i < 20; i++) {
    await queue.compute(wish(1, [i], { start: i }));
    await new Promise((resolve) => setImmediate(resolve));
  }
  const between = steps.length - before;
  isOver = true;
  await quick;
  assertLess(between, 100);
  assert(steps.slice(before).some((step) => step.includes("0@") && step.includes("1@")));
});

/** Counts what asks for a turn. */
function countTurns(): Disposable & { count: number } {
  const scope = globalThis as unknown as Record<string, (callback: () => void) => unknown>;
  const names = ["setImmediate", "setTimeout"];
  const originals = names.map((name) => scope[name]!);
  const turns = {
    count: 0,
    [Symbol.dispose]: () => names.forEach((name, i) => scope[name] = originals[i]!),
  };
  names.forEach((name, i) =>
    scope[name] = (callback) => {
      turns.count++;
      return originals[i]!(callback);
    }
  );
  return turns;
}

Deno.test("a long prompt goes in parts, and what it reads is told part by part", async () => {
  const { queue, steps } = setUp({ batch: 24 });
  const tokens = Array.from({ length: 50 }, (_, i) => i);
  const parts: string[] = [];
  await queue.compute(wish(0, tokens, {
    wantedRows: 3,
    read: (_, { from, to, row }) => void parts.push(`${from}-${to} at ${row}`),
  }));
  assertEquals(steps.map((rows) => rows.split(" ").length), [24, 24, 2]);
  assertEquals(steps.map((rows) => rows.split("*").length - 1), [0, 1, 2]);
  assertEquals(parts, ["0-24 at 0", "24-48 at 0", "48-50 at 0"]);
});

Deno.test("a signal takes rows back in the middle of a prompt, the others go on", async () => {
  const { queue, steps } = setUp({ batch: 24 });
  const controller = new AbortController();
  const tokens = Array.from({ length: 50 }, (_, i) => i);
  const prompt = queue.compute(wish(0, tokens, {
    signal: controller.signal,
    read: () => controller.abort(new Error("enough")),
  }));
  const [outcome] = await Promise.allSettled([prompt, queue.compute(wish(1, [4]))]);
  assertEquals(outcome.status === "rejected" && outcome.reason.message, "enough");
  await queue.compute(wish(1, [5], { start: 1 }));
  assertEquals(steps.length, 2);
});

Deno.test("a prompt that might be stopped comes in short steps, unless the device queues them", async () => {
  const tokens = Array.from({ length: 50 }, (_, i) => i);
  const lengths: number[][] = [];
  for (const queues of [false, true]) {
    const { queue, steps } = setUp({ batch: 48, queues });
    await queue.compute(wish(0, tokens, { signal: new AbortController().signal }));
    lengths.push(steps.map((rows) => rows.split(" ").length));
  }
  assertEquals(lengths, [[32, 18], [48, 2]]);
});

Deno.test("who loses rows while a step is put together computes them again, whatever room is left", async () => {
  const sizes = [0, 0, 0], room = 8, steps: string[] = [];
  const used = () => sizes.reduce((sum, size) => sum + size, 0);
  const rows = {
    reserve(slot: number, length: number): boolean {
      const grown = Math.max(length, sizes[slot]!), fits = used() - sizes[slot]! + grown <= room;
      if (fits) sizes[slot] = grown;
      return fits;
    },
    get freeTokens() {
      return room - used();
    },
  };
  const holders = sizes.map((_, slot) => ({
    ...{ slot, cached: 0, reserved: 0, isBusy: false, since: slot },
    giveUp() {
      sizes[slot] = this.cached = this.reserved = 0;
    },
    takeBack() {},
  }));
  const run = (step: Step) => {
    for (let row = 0; row < step.count; row++) {
      const holder = holders[step.slots[row]!]!;
      assertEquals(step.positions[row], holder.cached++, `slot ${holder.slot} after ${steps}`);
    }
    steps.push([...step.slots.subarray(0, step.count)].join(""));
  };
  const executable = { run, rows } as unknown as Executable;
  const caches = new CacheRoom(executable, "model");
  for (const holder of holders) caches.add(holder);
  const queue = new StepQueue({ executable, caches, step: createStep(8), batch: 8, logitRows: 4 });
  const ask = (slot: number, from: number, to: number) => {
    const tokens = Array.from({ length: to }, () => 1), holder = holders[slot]!;
    return queue.compute(wish(slot, tokens, { from, to, holder }));
  };
  await Promise.all([ask(0, 0, 2), ask(1, 0, 3), ask(2, 0, 1)]);
  // The first takes the rows of both others, after which the last would have room for what it asks for.
  await Promise.all([ask(0, 2, 6), ask(1, 3, 4), ask(2, 1, 2)]);
  assertEquals(steps, ["001112", "0000", "111122"]);
});

Deno.test("a failing step fails for whose rows made it fail only", async () => {
  const { queue, steps } = setUp();
  const [first, bad, last] = await Promise.allSettled([
    queue.compute(wish(0, [1])),
    queue.compute(wish(1, [666])),
    queue.compute(wish(2, [3])),
  ]);
  assertEquals([first.status, bad.status, last.status], ["fulfilled", "rejected", "fulfilled"]);
  assertEquals(steps, ["0@0=1*", "2@0=3*"]);
});

Deno.test("what is thrown beside a step ends one's own rows, when the step is over", async () => {
  let isUnderWay = false;
  const taken: number[] = [];
  const { queue } = setUp({
    async run() {
      assert(!isUnderWay, "two steps at once");
      isUnderWay = true;
      await new Promise((resolve) => setTimeout(resolve, 0));
      isUnderWay = false;
    },
  });
  const meanwhile = () => {
    throw new RangeError("no token goes on");
  };
  const [one, other] = await Promise.allSettled([
    queue.compute(wish(0, [5], { meanwhile, read: () => void taken.push(0) })),
    queue.compute(wish(1, [6], { read: () => void taken.push(1) })),
  ]);
  assertEquals([one.status, other.status], ["rejected", "fulfilled"]);
  assertEquals([taken, queue.counts.steps], [[1], 1]);
  await queue.compute(wish(0, [7]));
});

Deno.test("what a reader throws is his own", async () => {
  const { queue, steps } = setUp();
  const read = () => {
    throw new TypeError("no reader");
  };
  const bad = queue.compute(wish(0, [1], { read }));
  await Promise.all([
    assertRejects(() => bad, TypeError, "no reader"),
    queue.compute(wish(1, [2])),
  ]);
  assertEquals(steps.length, 1);
});

Deno.test("tasks that need the executable for themselves and steps take turns", async () => {
  const { queue, steps } = setUp();
  const task = (name: string) => queue.between(() => void steps.push(name));
  const answer = async () => {
    for (let i = 0; i < 2; i++) await queue.compute(wish(0, [i], { start: i }));
  };
  await Promise.all([task("a"), task("b"), task("c"), answer()]);
  assertEquals(steps, ["a", "0@0=0*", "b", "0@1=1*", "c"]);
  await assertRejects(() => queue.between(() => {}, AbortSignal.abort()), DOMException);
});

Deno.test("on a device that takes rows of one slot only, sessions take turns", async () => {
  const { queue, steps } = setUp({ batch: 2, isOfOneSlot: true });
  await Promise.all([queue.compute(wish(0, [1, 2, 3, 4])), queue.compute(wish(1, [7, 8, 9]))]);
  assertEquals(steps, ["0@0=1 0@1=2", "1@0=7 1@1=8", "0@2=3 0@3=4*", "1@2=9*"]);
});

Deno.test("what is run alone begins at once where runs let events through", async () => {
  for (const pauses of [true, false]) {
    const { queue, steps } = setUp({ pauses });
    const done = queue.run({
      write: (step) => void addRows(step, { tokens: [7], slot: 0, wanted: WANTED.logits }),
      read: () => steps.length,
    });
    assertEquals(steps.length, pauses ? 1 : 0);
    assertEquals(await done, 1);
  }
});
