import { assertAlmostEquals, assertEquals, assertRejects } from "@std/assert";
import type { Session } from "../decode/session.ts";
import type { Model } from "../decode/model.ts";
import { perplexity } from "./perplexity.ts";

const VOCABULARY = 7;

/** A model whose logits are a function of the tokens so far. */
function fakeModel(logitsAfter: (tokens: readonly number[]) => number[], prefixIds: number[] = []) {
  const opened: number[][] = [];
  const createSession = () => {
    const tokens: number[] = [];
    return {
      rewind: (length: number) => void tokens.splice(length),
      eval: (ids: number[], { onLogits }: Parameters<Session["eval"]>[1] & object) => {
        for (const [index, id] of ids.entries()) {
          tokens.push(id);
          onLogits!(Float32Array.from(logitsAfter(tokens)), index);
        }
        opened.push([...tokens]);
        return Promise.resolve();
      },
      [Symbol.dispose]: () => {},
    };
  };
  return { opened, model: { tokenizer: { prefixIds }, createSession } as unknown as Model };
}

const uniform = () => new Array<number>(VOCABULARY).fill(0.3);
const TEXT = [1, 2, 3, 4, 5, 6, 0, 1, 2, 3];

Deno.test("perplexity() of uniform logits is the size of the vocabulary", async () => {
  const { model } = fakeModel(uniform);
  const { perplexity: value, standardError } = await perplexity(model, TEXT, { window: 4 });
  assertAlmostEquals(value, VOCABULARY, 1e-9);
  assertAlmostEquals(standardError, 0, 1e-6);
});

Deno.test("perplexity() of an oracle is 1", async () => {
  const { model } = fakeModel((tokens) => {
    const next = (tokens.at(-1)! + 1) % VOCABULARY;
    return uniform().map((_, id) => id === next ? 100 : 0);
  });
  assertAlmostEquals((await perplexity(model, TEXT)).perplexity, 1, 1e-9);
});

Deno.test("the loss of the token behind the beginning token counts", async () => {
  // Sure of everything but what a text begins with.
  const { model } = fakeModel((tokens) => {
    const next = (tokens.at(-1)! + 1) % VOCABULARY;
    return tokens.length === 1 ? uniform() : uniform().map((_, id) => id === next ? 100 : 0);
  }, [6]);
  const { nll, scored } = await perplexity(model, TEXT);
  assertEquals(scored, TEXT.length);
  assertAlmostEquals(nll, Math.log(VOCABULARY), 1e-9);
});

Deno.test("the standard error is that of a sample's mean", async () => {
  // Losses of ln 7 and 0 in turn: 5 of each, a variance of (ln 7)² / 4 over the 9 that are free.
  const { model } = fakeModel((tokens) => {
    const next = (tokens.at(-1)! + 1) % VOCABULARY;
    return uniform().map((_, id) => tokens.length % 2 === 0 && id === next ? 100 : 0);
  }, [6]);
  const { perplexity: value, standardError } = await perplexity(model, TEXT);
  assertAlmostEquals(value, Math.sqrt(VOCABULARY), 1e-9);
  assertAlmostEquals(standardError, value * Math.log(VOCABULARY) / 2 / 3, 1e-6);
});

Deno.test("windows start anew and count the beginning token, behind which the first is scored too", async () => {
  const bare = fakeModel(uniform);
  const result = await perplexity(bare.model, TEXT, { window: 4 });
  assertEquals(bare.opened, [[1, 2, 3], [5, 6, 0], [2]]);
  assertEquals(result.windows.map(({ scored }) => scored), [3, 3, 1]);
  assertEquals(result.scored, 7);
  const begun = fakeModel(uniform, [6]);
  const other = await perplexity(begun.model, TEXT, { window: 5, windows: 2 });
  assertEquals(begun.opened, [[6, 1, 2, 3], [6, 5, 6, 0]]);
  assertEquals(other.windows.map(({ scored }) => scored), [4, 4]);
  const { model, opened } = fakeModel(uniform);
  await perplexity(model, TEXT, { window: 4, stride: 3 });
  assertEquals(opened, [[1, 2, 3], [4, 5, 6], [0, 1, 2]]);
});

Deno.test("perplexity() refuses what it cannot score", async () => {
  const { model } = fakeModel(uniform);
  await assertRejects(() => perplexity(model, [1]), RangeError, "fewer than two tokens");
  await assertRejects(() => perplexity(model, TEXT, { window: 0 }), RangeError, "window 0");
  await assertRejects(() => perplexity(model, TEXT, { stride: 1.5 }), RangeError, "stride 1.5");
  const full = { window: 2, bos: [5, 6] };
  await assertRejects(() => perplexity(model, TEXT, full), RangeError, "window 2");
});
