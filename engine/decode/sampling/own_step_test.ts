import { assertEquals, assertThrows } from "@std/assert";
import { EMPTY_HISTORY } from "./history.ts";
import type { OwnCandidates, SamplingFunction } from "./own_step.ts";
import { createSampler } from "./sampler.ts";

const LOGITS = Float32Array.of(1, 5, 3, 4);

function sample(own: SamplingFunction): number {
  return createSampler({ samplers: ["top_k", own, "greedy"], topK: 3 }).sample(
    LOGITS,
    EMPTY_HISTORY,
  );
}

Deno.test("a function in samplers sees what the steps before it left, and those behind it go on with its logits", () => {
  const seen: number[][] = [];
  const raise = ({ ids, logits, history, promptLength }: OwnCandidates) => {
    seen.push(Array.from(ids), [...logits], Array.from(history), [promptLength]);
    logits[Array.from(ids).indexOf(2)]! += 9;
  };
  const sampler = createSampler({ samplers: ["top_k", raise, "greedy"], topK: 3 });
  const history = { tokens: [7, 8], length: 2, promptLength: 1 };
  assertEquals(sampler.sample(LOGITS, history), 2);
  assertEquals(seen, [[1, 3, 2], [5, 4, 3], [7, 8], [1]]);
  assertEquals(sampler.chain.map(({ name }) => name), ["top_k", "raise", "greedy"]);
  assertEquals([...LOGITS], [1, 5, 3, 4]);
});

Deno.test("what a function excludes is never drawn, with and without all logits at hand", () => {
  const odd: SamplingFunction = ({ ids, logits }) => {
    for (let i = 0; i < ids.length; i++) if (ids[i]! % 2 === 0) logits[i] = -Infinity;
  };
  const sampler = createSampler({ samplers: ["top_k", odd, "temperature"], topK: 4, seed: 1 });
  assertEquals(sampler.bestNeeded, 4);
  for (let i = 0; i < 50; i++) assertEquals(sampler.sample(LOGITS, EMPTY_HISTORY) % 2, 1);
  const best = { ids: [1, 3, 2, 0], logits: [5, 4, 3, 1], count: 4 };
  for (let i = 0; i < 50; i++) assertEquals(sampler.sampleBest(best, EMPTY_HISTORY)! % 2, 1);
});

Deno.test("a function that leaves no distribution is an error with its name", () => {
  assertThrows(
    () =>
      sample(function nobody({ logits }) {
        logits.fill(-Infinity);
      }),
    RangeError,
    "Sampling step nobody left no token",
  );
  for (const value of [NaN, Infinity]) {
    const name = `made the logit of token 3 ${value}`;
    assertThrows(() => sample(({ logits }) => void (logits[1] = value)), RangeError, name);
  }
  assertThrows(() => sample((() => Promise.resolve()) as SamplingFunction), TypeError, "returned");
  const fail = () => {
    throw new SyntaxError("my own");
  };
  assertThrows(() => sample(fail), SyntaxError, "my own");
});
