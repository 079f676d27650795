import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertGreater,
  assertRejects,
} from "@std/assert";
import { type BeamStep, type Hypothesis, searchBeams } from "./beam_search.ts";
import { place } from "./beam_slots.ts";

const VOCABULARY = 4;
const END = 3;
const LENGTH = 4;

/** Logits that depend on everything before them, without a pattern that a search could rely on. */
function logitsAfter(ids: readonly number[]): Float32Array {
  const seed = ids.reduce((hash, id) => (hash * 31 + id + 1) % 9973, 17);
  return Float32Array.from(
    { length: VOCABULARY },
    (_, token) => 2 * Math.sin(seed * (token + 1) * 12.9898),
  );
}

function search(beams: number, lengthPenalty: number): Promise<Hypothesis[]> {
  let now: number[][] = [[]];
  return searchBeams({
    ...{ beams, lengthPenalty, maxTokens: LENGTH, endIds: new Set([END]), first: logitsAfter([]) },
    step: (steps: readonly BeamStep[]) => {
      now = steps.map(({ parent, token }) => [...now[parent]!, token]);
      return Promise.resolve(now.map(logitsAfter));
    },
  });
}

/** Every text that ends or has the greatest length, best first. */
function enumerate(lengthPenalty: number): Hypothesis[] {
  const all: Hypothesis[] = [];
  const visit = (ids: readonly number[], sum: number) => {
    const logits = logitsAfter(ids);
    const total = Math.log(logits.reduce((all, value) => all + Math.exp(value), 0));
    for (let token = 0; token < VOCABULARY; token++) {
      const next = [...ids, token], log = sum + logits[token]! - total;
      if (token === END || next.length === LENGTH) {
        all.push({ ids: next, score: log / next.length ** lengthPenalty });
      } else visit(next, log);
    }
  };
  visit([], 0);
  return all.sort((a, b) => b.score - a.score);
}

Deno.test("a search that keeps everything finds the best of all texts", async () => {
  for (const penalty of [-1, 0, 0.6, 1, 2]) {
    const expected = enumerate(penalty);
    const found = await search(200, penalty);
    assertEquals(found.map(({ ids }) => ids), expected.map(({ ids }) => ids), `penalty ${penalty}`);
    found.forEach(({ score }, i) => assertAlmostEquals(score, expected[i]!.score, 1e-5));
  }
});

Deno.test("one beam takes the best token each time", async () => {
  const greedy: number[] = [];
  while (greedy.length < LENGTH && greedy.at(-1) !== END) {
    const logits = logitsAfter(greedy);
    greedy.push(logits.indexOf(Math.max(...logits)));
  }
  assertEquals((await search(1, 0))[0]!.ids, greedy);
});

Deno.test("more beams find no worse text, and a penalty favours longer ones", async () => {
  const best = enumerate(1)[0]!.score;
  let last = -Infinity;
  for (const beams of [1, 2, 4, 8]) {
    const score = (await search(beams, 1))[0]!.score;
    assert(score <= best + 1e-6 && score >= last - 1e-6, `${beams} beams: ${score} after ${last}`);
    last = score;
  }
  const length = async (penalty: number) => (await search(8, penalty))[0]!.ids.length;
  assertGreater(await length(4), await length(-4));
});

Deno.test("a search stops when it is told to", async () => {
  const steps = searchBeams({
    ...{ beams: 2, lengthPenalty: 1, maxTokens: 9, endIds: new Set<number>() },
    ...{ first: logitsAfter([]), signal: AbortSignal.abort(new Error("enough")) },
    step: () => Promise.reject(new Error("one step too many")),
  });
  await assertRejects(() => steps, Error, "enough");
});

Deno.test("a beam stays in its parent's slot, and its siblings get copies in slots that are free", () => {
  const step = (parent: number) => ({ parent, token: 0 });
  const moved = place([step(1), step(1), step(0)], { places: [10, 11, 12], slots: [10, 11, 12] });
  assertEquals(moved.places, [11, 12, 10]);
  assertEquals(moved.copies, [{ from: 11, to: 12 }]);
  const busy = place([step(1), step(1), step(2)], { places: [10, 11, 12], slots: [10, 11, 12] });
  assertEquals([busy.places, busy.copies], [[11, 10, 12], [{ from: 11, to: 10 }]]);
  const grown = place([step(0), step(0), step(0)], { places: [10], slots: [10, 11, 12] });
  assertEquals(new Set(grown.places), new Set([10, 11, 12]));
  assertEquals(grown.copies.map(({ from }) => from), [10, 10]);
});
