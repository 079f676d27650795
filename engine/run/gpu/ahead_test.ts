import { assert, assertEquals } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { countRuns } from "../../../tests/support/gpu_runs.ts";
import { withStrictMapping } from "../../../tests/support/gpu_strict.ts";
import { TOY, TOY_LIMITS, toyDecoder, wishFor } from "../../../tests/support/toy_decoder.ts";
import { testGpu } from "../../../tests/support/gpu_cases.ts";
import { openGpu } from "../../../gpu/gpu.ts";
import type { PreparedPlan } from "../backend.ts";
import { type Executable, type PlanExecutable, prepareExecutable, RANKED } from "../executable.ts";
import { addRows, clearStep, createStep, WANTED } from "../step.ts";
import { createGpuBackend, type GpuPlan } from "./backend.ts";
import { plan } from "../../plan/planner.ts";

/** Greedy tokens up to the end of the cache. */
async function greedy(executable: PreparedPlan): Promise<number[]> {
  const slot = executable.openSlot();
  const tokens = [3];
  for (let position = 0; position < TOY.capacity; position++) {
    executable.input("tokens")[0] = tokens.at(-1)!;
    executable.input("positions")[0] = position;
    executable.input("slots")[0] = slot;
    executable.input("logit_rows")[0] = 0;
    await executable.run({ M: 1, L: 1 }, wishFor(0, TOY.capacity - 1 - position));
    const logits = executable.output("logits").subarray(0, TOY.vocabulary) as Float32Array;
    tokens.push(logits.indexOf(Math.max(...logits)));
  }
  return tokens;
}

gpuTest(
  "where mappings must be awaited, tokens are the same, with several readbacks in flight",
  async () => {
    const made = plan(toyDecoder(), { limits: TOY_LIMITS });
    const [usual, gpu] = [await openGpu(), await openGpu()];
    const strict = withStrictMapping(gpu);
    const expected = await createGpuBackend({ gpu: usual, stepsAhead: 0 })
      .prepare(made, { slots: 1, ranked: RANKED });
    const executable = await createGpuBackend({ gpu: strict, stepsAhead: 4 })
      .prepare(made, { slots: 1, ranked: RANKED });
    assertEquals(await greedy(executable), await greedy(expected));
    assert(executable.foreseenSteps > 15, `${executable.foreseenSteps} steps were foreseen`);
    assert(strict.overlapping > 2, `${strict.overlapping} submissions did not wait`);
    usual.dispose();
    gpu.dispose();
  },
);

/** An answer: its prompt, its length, and where it takes the second best token. */
interface Query {
  readonly prompt: readonly number[];
  readonly length: number;
  readonly second?: number;
}

/** One that is being written. */
interface Running extends Query {
  readonly slot: number;
  readonly ids: number[];
}

const STEP = createStep(8);

async function toy(stepsAhead: number): Promise<PlanExecutable<GpuPlan>> {
  const graph = toyDecoder("f16", "F32", { capacity: 96, windows: [20] });
  const made = plan(graph, { limits: { M: 8, L: 8 } });
  const backend = createGpuBackend({ gpu: await testGpu(), stepsAhead });
  return await prepareExecutable(backend, { plan: made, slots: 4 });
}

async function begin(executable: Executable, query: Query): Promise<Running> {
  const slot = executable.openSlot(), { prompt } = query;
  for (let from = 0; from < prompt.length; from += 8) {
    clearStep(STEP);
    const to = Math.min(from + 8, prompt.length);
    addRows(STEP, { tokens: prompt, from, to, position: from, slot, wanted: 2 });
    await executable.run(STEP);
  }
  return { ...query, slot, ids: [chosen(executable, (prompt.length - 1) % 8, query, 0)] };
}

/** The token of an answer by the best of a row. */
function chosen(executable: Executable, row: number, { second }: Query, index: number): number {
  const { ids, count } = executable.best(row)!;
  assert(count >= 2);
  return ids[index === second ? 1 : 0]!;
}

/** A step of some answers, after which so many may follow; default: as many as the longest has left. */
async function advance(
  executable: Executable,
  running: readonly Running[],
  feedback = Math.max(...running.map(({ length, ids }) => length - ids.length)) - 1,
): Promise<void> {
  clearStep(STEP);
  for (const { prompt, ids, slot } of running) {
    const position = prompt.length + ids.length - 1;
    addRows(STEP, { tokens: ids.slice(-1), position, slot, wanted: 2 });
  }
  STEP.feedback = feedback;
  await executable.run(STEP);
  running.forEach((query, row) => {
    query.ids.push(chosen(executable, row, query, query.ids.length));
  });
}

const isDone = ({ ids, length }: Running) => ids.length === length;

const QUERIES: readonly Query[] = [
  // Goes on in a second page.
  { prompt: Array.from({ length: 56 }, (_, i) => (5 * i + 3) % TOY.vocabulary), length: 22 },
  // Ends while others go on, of which more was computed than anybody had asked for.
  { prompt: [1, 5], length: 9 },
  { prompt: [9, 2, 6, 5], length: 20, second: 12 },
  { prompt: [35], length: 24 },
  // Begin where others have ended.
  { prompt: [8, 9, 7], length: 6 },
  { prompt: [44, 20], length: 13, second: 2 },
];

gpuTest("rows of many sessions go ahead together, and answer as each does alone", async () => {
  const alone = await toy(0), together = await toy(3);
  const expected: number[][] = [];
  for (const query of QUERIES) {
    const running = await begin(alone, query);
    while (!isDone(running)) await advance(alone, [running]);
    alone.closeSlot(running.slot);
    expected.push(running.ids);
  }
  const waiting = [...QUERIES], answers = new Map<Query["prompt"], number[]>();
  let running: Running[] = [];
  while (waiting.length > 0 || running.length > 0) {
    while (waiting.length > 0 && running.length < 4) {
      running.push(await begin(together, waiting.shift()!));
    }
    await advance(together, running);
    for (const { prompt, ids, slot } of running.filter(isDone)) {
      answers.set(prompt, ids);
      together.closeSlot(slot);
    }
    running = running.filter((query) => !isDone(query));
    // In whatever order they come.
    running.push(...running.splice(0, 1));
  }
  assertEquals(QUERIES.map(({ prompt }) => answers.get(prompt)), expected);
  assert(together.prepared.foreseenSteps > 12, `${together.prepared.foreseenSteps} were foreseen`);
  alone.dispose();
  together.dispose();
});

gpuTest(
  "rows that are asked for no longer cost the others nothing of what is computed",
  async () => {
    const executable = await toy(4);
    const running = await Promise.all(QUERIES.slice(0, 1).map((query) => begin(executable, query)));
    for (const query of QUERIES.slice(1, 4)) running.push(await begin(executable, query));
    const submitted = countRuns(executable.prepared);
    // Two runs, then four behind them.
    await advance(executable, running);
    assertEquals(submitted(), 6);
    const left = [running[0]!, running[3]!];
    for (let run = 1; run < 6; run++) await advance(executable, left);
    assertEquals(submitted(), 0);
    await advance(executable, left);
    assert(submitted() > 0);
    executable.dispose();
  },
);

gpuTest("what is ahead of a session whose pages are others by now is computed again", async () => {
  const ids: number[][][] = [];
  for (const stepsAhead of [0, 4]) {
    const executable = await toy(stepsAhead);
    const running = [await begin(executable, QUERIES[0]!), await begin(executable, QUERIES[1]!)];
    await advance(executable, running);
    const submitted = countRuns(executable.prepared);
    // The page that it writes is shared now, so it goes on in a copy.
    const { slot, prompt } = running[0]!;
    executable.rows.fork({ slot, length: prompt.length + 1 }, executable.openSlot());
    await advance(executable, running);
    assert(submitted() > 0);
    await advance(executable, running);
    ids.push(running.map(({ ids }) => ids));
    executable.dispose();
  }
  assertEquals(ids[1], ids[0]);
});

gpuTest("of the few that may follow, half are served while the others are computed", async () => {
  const executable = await toy(8), given: number[][] = [];
  for (const [feedback, runs] of [[1, 4], [3, 5], [5, 7]] as const) {
    const running = [await begin(executable, QUERIES[0]!)],
      submitted = countRuns(executable.prepared);
    const counts: number[] = [];
    for (let run = 0; run < runs; run++) {
      await advance(executable, running, feedback);
      counts.push(submitted());
    }
    // One that is not the best: what was under way is all that was computed in vain.
    running[0]!.ids[runs] = running[0]!.ids[runs] === 1 ? 2 : 1;
    await advance(executable, running, 0);
    counts.push(submitted());
    given.push(counts);
    executable.closeSlot(running[0]!.slot);
  }
  assertEquals(given, [[2, 1, 1, 1, 1], [4, 0, 2, 0, 2, 1], [5, 0, 3, 0, 0, 3, 0, 1]]);
  executable.dispose();
});

gpuTest(
  "chunks of a prompt are queued, and the best logits of its last row alone come back",
  async () => {
    const executable = await toy(0);
    assert(executable.queues);
    const tokens = Array.from({ length: 80 }, (_, i) => (7 * i + 2) % TOY.vocabulary);
    const slot = executable.openSlot(), taken: number[] = [];
    const { getMappedRange } = GPUBuffer.prototype;
    GPUBuffer.prototype.getMappedRange = function (offset, size) {
      taken.push(size!);
      return getMappedRange.call(this, offset, size);
    };
    try {
      for (let from = 0; from < tokens.length; from += 8) {
        clearStep(STEP);
        const isLast = from + 8 === tokens.length;
        addRows(STEP, {
          ...{ tokens, from, to: from + 8, position: from, slot },
          wanted: isLast ? 1 : WANTED.nothing,
        });
        await executable.run(STEP);
      }
    } finally {
      GPUBuffer.prototype.getMappedRange = getMappedRange;
    }
    // Once within ten chunks somebody looks whether the device follows, and then at the result.
    assertEquals(taken.length, 2);
    assert(taken[1]! < 4 * TOY.vocabulary, `${taken} bytes`);
    const query = { prompt: tokens, length: 1 };
    assertEquals([executable.best(7)!.ids[0]], (await begin(await toy(0), query)).ids);
  },
);
