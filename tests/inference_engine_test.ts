// Inferflow's AddQuery, Infer, CommitInferenceResult and RemoveQuery: the schedule of its figure 2, and answers that are
// those of generate().

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { generate, InferenceEngine, QUERY_ERRORS, type QueryOptions } from "../mod.ts";
import type { Model } from "../engine/decode/model.ts";
import { loadTiny } from "./support/models.ts";

const OPTIONS = { contextLength: 64, batch: 32, sessions: 16 };

async function alone(model: Model, prompt: readonly number[], options: QueryOptions) {
  return (await generate(model, prompt, options).result).ids;
}

Deno.test("figure 2: a query that comes in the third step has its first token in that step", async () => {
  using model = await loadTiny(OPTIONS);
  const prompts = [[1, 5, 9, 30], [1, 7, 8], [1, 40, 41, 42, 43]];
  const lengths = [4, 3, 4];
  const expected = await Promise.all(
    prompts.map((prompt, i) => alone(model, prompt, { maxTokens: lengths[i]!, ignoreEos: true })),
  );
  using engine = new InferenceEngine(model);
  const add = (i: number) =>
    engine.addQuery(prompts[i]!, { maxTokens: lengths[i]!, ignoreEos: true });
  const ids = [add(0), add(1)];
  const answers: number[][] = [[], [], []], sizes: number[][] = [];
  for (let step = 1; step <= 6; step++) {
    if (step === 3) ids.push(add(2));
    const { rows, next, failed } = await engine.infer();
    assertEquals(failed.size, 0);
    sizes.push(ids.map((id) => rows.get(id) ?? 0));
    for (const [i, id] of ids.entries()) if (next.has(id)) answers[i]!.push(next.get(id)!.token);
    engine.commitInferenceResult(next);
  }
  // Rows of S1, S2 and S3 in each step. Without joining, S3 would begin in the fifth.
  assertEquals(sizes, [[4, 3], [1, 1], [1, 1, 5], [1, 0, 1], [0, 0, 1], [0, 0, 1]]);
  assertEquals(answers, expected.map((ids) => [...ids]));
});

Deno.test("a long prompt is read in parts while answers go on, and each has the tokens of generate()", async () => {
  using model = await loadTiny(OPTIONS);
  const long = Array.from({ length: 60 }, (_, i) => 3 + i * 7 % 280);
  const options = { maxTokens: 3, ignoreEos: true };
  const expected = [
    await alone(model, [1, 5], { ...options, maxTokens: 6 }),
    await alone(model, long, options),
  ];
  using engine = new InferenceEngine(model);
  const ids = [
    engine.addQuery([1, 5], { ...options, maxTokens: 6 }),
    engine.addQuery(long, options),
  ];
  const answers: number[][] = [[], []];
  for (let i = 0; i < 6; i++) {
    const { next, rows } = await engine.infer();
    assert([...rows.values()].reduce((sum, count) => sum + count, 0) <= 32);
    for (const [i, id] of ids.entries()) if (next.has(id)) answers[i]!.push(next.get(id)!.token);
    engine.commitInferenceResult(next);
  }
  assertEquals(answers, expected.map((ids) => [...ids]));
});

Deno.test("a prompt that is forced token by token is the prompt [LF-14]: as many steps as tokens", async () => {
  using model = await loadTiny(OPTIONS);
  const prompt = [1, 5, 9, 30, 17, 80];
  const expected = await alone(model, prompt, { maxTokens: 4, ignoreEos: true });
  using engine = new InferenceEngine(model);
  const id = engine.addQuery(prompt.slice(0, 1), { ignoreEos: true });
  const taken: number[] = [];
  let steps = 0;
  while (taken.length < expected.length) {
    const { next } = await engine.infer();
    const forced = prompt[++steps];
    const token = forced ?? next.get(id)!.token;
    if (forced === undefined) taken.push(token);
    engine.commitInferenceResult(new Map([[id, { token, isEnd: false }]]));
  }
  assertEquals(taken, [...expected]);
  assertEquals(steps, prompt.length + expected.length - 1);
});

Deno.test("a query is refused by a number: busy, bad prompt, too long, bad option", async () => {
  using model = await loadTiny(OPTIONS);
  using engine = new InferenceEngine(model, { maxConcurrentQueries: 2 });
  assertEquals(engine.addQuery([]), QUERY_ERRORS.badPrompt);
  assertEquals(engine.addQuery([4, -1]), QUERY_ERRORS.badPrompt);
  assertEquals(engine.addQuery(new Array(65).fill(4)), QUERY_ERRORS.tooLong);
  assertEquals(engine.addQuery([4], { temperature: -1 }), QUERY_ERRORS.badOption);
  assertEquals(engine.addQuery([4], { stop: ["a"] } as QueryOptions), QUERY_ERRORS.badOption);
  assertEquals(engine.addQuery([4], { adapters: { no: 1 } }), QUERY_ERRORS.badOption);
  const [first, second] = [engine.addQuery([4]), engine.addQuery([5])];
  assert(first! > 0 && second! > first!);
  assertEquals(engine.addQuery([6]), QUERY_ERRORS.busy);
  assert(engine.removeQuery(first!));
  assertEquals(engine.removeQuery(first!), false);
  assert(engine.addQuery([6]) > second!);
  for (const most of [0, 17, 1.5]) {
    assertThrows(() => new InferenceEngine(model, { maxConcurrentQueries: most }), RangeError);
  }
  const commit = () =>
    engine.commitInferenceResult(new Map([[second!, { token: 1, isEnd: false }]]));
  assertThrows(commit, RangeError, "waits for none");
  const running = engine.infer();
  await assertRejects(() => engine.infer(), TypeError, "still running");
  await running;
});

Deno.test("a saturated query gets the end of the text", async () => {
  using model = await loadTiny({ ...OPTIONS, contextLength: 8 });
  using engine = new InferenceEngine(model);
  const id = engine.addQuery([1, 5, 9, 30, 7], { ignoreEos: true });
  const ends = model.tokenizer.endOfGenerationIds;
  for (let count = 6; count <= 9; count++) {
    const token = (await engine.infer()).next.get(id)!;
    engine.commitInferenceResult(new Map([[id, { token: 9, isEnd: false }]]));
    assertEquals(token.isEnd, false, `token ${count}`);
  }
  const last = (await engine.infer()).next.get(id)!;
  assertEquals([last.isEnd, ends.has(last.token)], [true, true]);
});
