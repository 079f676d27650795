import { assertEquals } from "@std/assert";
import { ListeningClock } from "./listening_clock.ts";
import { Roster } from "./roster.ts";
import type { WorkerStatus } from "./wire.ts";

const figuresOf = (name: string, running: number) => ({
  ...{ name, running, waiting: 1, steps: 2, rows: 3, promptTokens: 4, cachedTokens: 5 },
  ...{ answerTokens: 6, proposedTokens: 7, acceptedTokens: 8, cacheRows: 9 },
  ...{ cacheCapacity: 10, memoryBytes: 11 },
});

function statusOf(worker: string, part: Partial<WorkerStatus> = {}): WorkerStatus {
  return {
    ...{ worker, places: 2, running: 0, beatMs: 100, isLeaving: false },
    models: [{ name: "m", tasks: ["answer"], created: 1, isLoaded: true }],
    figures: { models: [figuresOf("m", 2)] },
    ...part,
  };
}

Deno.test("a worker that has been silent for some beats is gone, but not while nobody can be heard", () => {
  let now = 0;
  const roster = new Roster(() => now);
  roster.note(statusOf("a"));
  now = 300;
  roster.note(statusOf("b"));
  assertEquals(roster.alive().length, 2);
  now = 400;
  assertEquals(roster.alive().map(({ worker }) => worker), ["b"]);
  roster.isDeaf = true;
  now = 10_000;
  assertEquals([roster.isAlive("b"), roster.serves("m")], [true, true]);
  roster.isDeaf = false;
  now = 10_200;
  assertEquals(roster.isAlive("b"), true);
  now = 10_400;
  assertEquals([roster.isAlive("b"), roster.serves("m"), roster.knows("m")], [false, false, true]);
  assertEquals(roster.models(), []);
});

Deno.test("who stood still takes nobody's silence for death, whatever comes first afterwards", () => {
  for (const comesFirst of ["turn", "question"]) {
    let time = 50;
    const clock = new ListeningClock(25, () => time), roster = new Roster(() => clock.now);
    const listen = (ms: number): void => {
      for (let i = 0; i < ms; i += 25, clock.turn()) time += 25;
    };
    roster.note(statusOf("a"));
    listen(300);
    time += 60_000;
    if (comesFirst === "turn") clock.turn();
    assertEquals(roster.isAlive("a"), true);
    // Silent while somebody listens.
    listen(75);
    assertEquals(roster.isAlive("a"), false);
  }
});

Deno.test("who leaves is gone at once", () => {
  const roster = new Roster(() => 0);
  roster.note(statusOf("a"));
  roster.note(statusOf("a", { isLeaving: true }));
  assertEquals(roster.alive(), []);
});

Deno.test("the longest beginning counts, where its holder has a place free", () => {
  const roster = new Roster(() => 0);
  for (const worker of ["a", "b"]) roster.note(statusOf(worker));
  roster.remember("a", ["1", "2"]);
  roster.remember("b", ["1", "2", "3"]);
  roster.remember("a", ["1"]);
  assertEquals(roster.holder(["1", "x"]), "a");
  assertEquals(roster.holder(["1", "2", "3", "4"]), "b");
  assertEquals(roster.holder([]), undefined);
  // It was sent one; a second fills it, a third goes to anybody.
  assertEquals([roster.holder(["3"]), roster.holder(["3"])], ["b", undefined]);
  roster.note(statusOf("b", { running: 1 }));
  assertEquals([roster.holder(["3"]), roster.holder(["3"])], ["b", undefined]);
});

Deno.test("figures of workers add up by model", () => {
  const roster = new Roster(() => 0);
  roster.note(statusOf("a"));
  roster.note(statusOf("b", { figures: { models: [figuresOf("m", 3), figuresOf("n", 1)] } }));
  const [m, n] = roster.figures();
  assertEquals([m!.name, m!.running, m!.memoryBytes], ["m", 5, 22]);
  assertEquals(n, figuresOf("n", 1));
});
