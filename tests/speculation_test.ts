// Speculative decoding on tiny models: proposals change how answers come about, never what they are. Greedy answers, and
// all those for which no proposal is drawn, are compared token by token with plain ones; drawn ones with the exact
// distribution. What acceptance and residuals are says fixtures/decoding, computed in exact fractions.

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertLess,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { generate } from "../engine/decode/generate.ts";
import type { GenerateOptions } from "../engine/decode/generate_options.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import type { LoadOptions, Model } from "../engine/decode/model.ts";
import { createSampler } from "../engine/decode/sampling/sampler.ts";
import type { TimelineSession } from "../engine/decode/timeline_session.ts";
import { UnsupportedError } from "../engine/errors.ts";
import { load } from "../engine/models/load.ts";
import { openModel } from "../engine/models/open_model.ts";
import { quantizeModel } from "../engine/quantize/quantize.ts";
import { getPolicy } from "../quant/policies.ts";
import { runCase } from "../tools/fixtures/case.ts";
import { lookupCases, speculativeCases } from "../tools/fixtures/decoding_speculation.ts";
import { fixturePath } from "./support/fixtures.ts";
import { troodon } from "./support/cli.ts";
import { measurePair } from "./support/draft_pair.ts";
import { gpuTest } from "./support/gpu.ts";
import { withFolder } from "./support/folder.ts";
import { loadTiny, TINY_LLAMA } from "./support/models.ts";

for (const cases of [speculativeCases, lookupCases]) {
  for (const fixture of cases(fixturePath("decoding"))) {
    Deno.test(fixture.name, async () => {
      const { outcome, reason } = await runCase(fixture);
      assertEquals(outcome, "passed", reason);
    });
  }
}

const EXACT: LoadOptions = { device: "wasm", threads: 1, precision: "exact" };

/** The tiny llama, and what is left of it when its weights are rounded to 4 bit. */
async function loadPair(options: LoadOptions = {}): Promise<{ target: Model; draft: Model }> {
  const all: LoadOptions = { ...EXACT, sessions: 4, ...options };
  const target = await load(TINY_LLAMA, all);
  return await withFolder(async (folder) => {
    const path = `${folder}/rounded.gguf`;
    const file = await openModel(TINY_LLAMA);
    await quantizeModel(file, { path, policy: getPolicy("Q4_0") });
    file.close();
    return { target, draft: await load(path, all) };
  });
}

const PROMPT = [1, 40, 41, 42, 43, 44, 45, 40, 41, 42];

const CHAINS: Readonly<Record<string, GenerateOptions>> = {
  greedy: {},
  "with penalties": { repeatPenalty: 1.3, frequencyPenalty: 0.2 },
  "top-k": { topK: 8, temperature: 0.5, seed: 3 },
  "all tokens": { temperature: 0.3, seed: 4 },
  mirostat: { mirostat: 2, mirostatTau: 2, seed: 5 },
  "XTC and DRY": { xtcProbability: 0.5, dryMultiplier: 0.8, temperature: 0.4, seed: 6 },
  "random FSD": { strategy: "random_fsd", seed: 7 },
  "a bypassed end": { eosBypassingMax: 2, temperature: 0.6, seed: 8 },
  "log-probabilities": { logprobs: 2 },
  "a grammar": { grammar: "root ::= [a-z ]+", temperature: 0.5, seed: 9 },
  "a step of one's own": {
    samplers: [function favour({ ids, logits, history }) {
      for (let i = 0; i < ids.length; i++) if (ids[i] === history.length % 50) logits[i]! += 3;
    }],
    seed: 10,
  },
};

for (const [name, chain] of Object.entries(CHAINS)) {
  Deno.test(`what is proposed without a draw leaves the answer as it is: ${name}`, async () => {
    using model = await loadTiny({ ...EXACT, sessions: 2 });
    const options = { maxTokens: 48, ignoreEos: true, ...chain };
    const plain = await generate(model, PROMPT, options).result;
    for (const draft of ["lookup", "history", "history"] as const) {
      for (const k of [1, 5, undefined]) {
        const from = k === undefined ? { draft } : { draft: { from: draft, k } };
        const { ids, stats } = await generate(model, PROMPT, { ...options, ...from }).result;
        assertEquals(ids, plain.ids, `${draft}, k ${k}`);
        const { drafted, accepted } = stats.speculation!;
        assert(accepted <= drafted);
        if (k !== undefined && name === "greedy") assert(accepted > 0);
      }
    }
  });
}

Deno.test("a draft model leaves a greedy answer as it is, also where it is wrong", async () => {
  const { target, draft } = await loadPair();
  using _target = target, _draft = draft;
  const options = { maxTokens: 50, ignoreEos: true };
  const plain = await generate(target, PROMPT, options).result;
  for (const k of [1, 3, 15, undefined]) {
    const given = k === undefined ? draft : { from: draft, k };
    const { ids, stats } = await generate(target, PROMPT, { ...options, draft: given }).result;
    assertEquals(ids, plain.ids);
    if (k !== undefined) assert(stats.speculation!.accepted > 0);
  }
  // A text that the draft model would not write: all that it proposes is refused, and nothing else happens.
  const biased = { ...options, logitBias: { 7: 100 }, repeatPenalty: 1.5, penaltyLastN: 4 };
  const forced = await generate(target, PROMPT, biased).result;
  const checked = await generate(target, PROMPT, { ...biased, draft: { from: draft, k: 4 } })
    .result;
  assertEquals(checked.ids, forced.ids);
});

Deno.test("drawn answers have the target's distribution (χ² over all triples)", async () => {
  const { target, draft } = await loadPair();
  using _target = target, _draft = draft;
  const options = { topK: 3, temperature: 1.5, maxTokens: 3, ignoreEos: true } as const;
  const exact = await tripleProbabilities(target, options);
  const counts = new Map<string, number>();
  const runs = 1500;
  let accepted = 0, drafted = 0;
  for (let run = 0; run < runs; run++) {
    const seed = run * 0x9e3779b97f % 2 ** 48; // seeds side by side begin alike
    const { ids, stats } = await generate(target, PROMPT, {
      ...{ ...options, seed },
      draft: { from: draft, k: 2 },
    }).result;
    counts.set(ids.join(), (counts.get(ids.join()) ?? 0) + 1);
    accepted += stats.speculation!.accepted;
    drafted += stats.speculation!.drafted;
  }
  assert(accepted > 0 && accepted < drafted, "some are taken, some refused");
  assertEquals(exact.size, 27);
  assertEquals([...counts.keys()].filter((key) => !exact.has(key)), []);
  let chi = 0;
  for (const [key, probability] of exact) {
    chi += ((counts.get(key) ?? 0) - runs * probability) ** 2 / (runs * probability);
  }
  assertLess(chi, 54.05); // 99.9 % point of 26 degrees of freedom
});

/** Of all answers of three tokens, from the model alone. */
async function tripleProbabilities(
  model: Model,
  { topK, temperature }: { readonly topK: number; readonly temperature: number },
): Promise<Map<string, number>> {
  using session = model.createSession();
  const sampler = createSampler({ topK, temperature, seed: 1 });
  const all = new Map<string, number>();
  const visit = async (ids: readonly number[], chance: number): Promise<void> => {
    if (ids.length === 3) return void all.set(ids.join(), chance);
    await session.sync([...PROMPT, ...ids]);
    const history = { tokens: ids, length: ids.length, promptLength: 0 };
    const found = sampler.probabilities(session.logits(), history);
    const next = [...found.ids], probabilities = [...found.probabilities];
    for (const [i, id] of next.entries()) await visit([...ids, id], chance * probabilities[i]!);
  };
  await visit([], 1);
  return all;
}

Deno.test("the same seed gives the same answer, whatever the clock says", async () => {
  const { target, draft } = await loadPair();
  using _target = target, _draft = draft;
  const options = { temperature: 0.9, topP: 0.95, seed: 11, maxTokens: 48, ignoreEos: true };
  for (const given of [draft, { from: draft, k: 3 }]) {
    const first = await generate(target, PROMPT, { ...options, draft: given }).result;
    for (let i = 0; i < 3; i++) {
      const again = await generate(target, PROMPT, { ...options, draft: given }).result;
      assertEquals(again.ids, first.ids);
    }
  }
});

Deno.test("an answer of a session goes on where one with proposals has ended", async () => {
  using model = await loadTiny({ ...EXACT, sessions: 2 });
  using session = model.createSession(), plain = model.createSession();
  const options = { maxTokens: 40, ignoreEos: true };
  for (const prompt of [PROMPT, [...PROMPT, 50, 51], [...PROMPT, 50, 51, 40, 41]]) {
    const given = { ...options, draft: { from: "lookup", k: 6 } } as const;
    const { ids } = await generate(session, prompt, given).result;
    assertEquals(ids, (await generate(plain, prompt, options).result).ids);
    assertEquals(session.tokens, plain.tokens);
    assertEquals(session.logits(), plain.logits());
  }
});

Deno.test("a full context ends, slides or fails as it does without proposals", async () => {
  for (const onContextFull of ["stop", "slide"] as const) {
    using model = await loadTiny({ ...EXACT, contextLength: 32, sessions: 2 });
    const options = { maxTokens: 70, ignoreEos: true, onContextFull };
    const plain = await generate(model, PROMPT, options).result;
    const draft = { from: "lookup", k: 7 } as const;
    const checked = await generate(model, PROMPT, { ...options, draft }).result;
    assertEquals(checked.ids, plain.ids);
    assertEquals(checked.finishReason, plain.finishReason);
  }
});

Deno.test("in company each answer keeps its own proposals, and is what it is alone", async () => {
  const { target, draft } = await loadPair();
  using _target = target, _draft = draft;
  const drafts = ["lookup", { from: draft, k: 3 }, undefined, { from: "history", k: 9 }] as const;
  const asked = drafts.map((draft, i) => ({
    prompt: [...PROMPT, 60 + i, 40, 41],
    options: { maxTokens: 30 + 7 * i, ignoreEos: true, ...draft && { draft } },
  }));
  const alone = [];
  for (const { prompt, options: { maxTokens } } of asked) {
    alone.push((await generate(target, prompt, { maxTokens, ignoreEos: true }).result).ids);
  }
  const together = await Promise.all(
    asked.map(({ prompt, options }) => generate(target, prompt, options).result),
  );
  assertEquals(together.map(({ ids }) => ids), alone);
});

Deno.test("an answer with proposals can be left at any token", async () => {
  const { target, draft } = await loadPair({ sessions: 1 });
  using _target = target, _draft = draft;
  for (const from of ["lookup", draft] as const) {
    let count = 0;
    for await (const { tokens } of generate(target, PROMPT, { draft: { from, k: 4 } })) {
      count += tokens.length;
      if (count > 6) break;
    }
    const stop = new AbortController();
    const generation = generate(target, PROMPT, { draft: { from, k: 4 }, signal: stop.signal });
    for await (const _chunk of generation) stop.abort();
    assertEquals((await generation.result).finishReason, "abort");
  }
  // Both models have their only session back.
  target.createSession().dispose();
  draft.createSession().dispose();
});

Deno.test("a draft that cannot be one is refused at once, by name", async () => {
  const { target, draft } = await loadPair();
  using _target = target;
  const refused = (
    draft: unknown,
    kind: abstract new (...args: never) => unknown,
    words: string,
  ) => {
    const options = { draft } as GenerateOptions;
    const error = assertThrows(() => generate(target, PROMPT, options), Error, words);
    assert(error instanceof kind);
  };
  refused("guess", TypeError, 'Cannot use draft "guess"');
  refused({ from: "guess" }, TypeError, 'Cannot use draft "guess"');
  refused(7, TypeError, "Cannot use draft 7");
  refused({ from: "lookup", kk: 3 }, TypeError, 'Cannot use draft option "kk"');
  for (const k of [-1, 1.5, NaN, 16, "3"]) {
    refused({ from: "lookup", k }, RangeError, `Cannot use draft.k ${JSON.stringify(k)}`);
  }
  using narrow = await loadTiny({ logitRows: 1 });
  assertThrows(
    () => generate(narrow, PROMPT, { draft: "lookup" }),
    UnsupportedError,
    "gives the logits of one token a step",
  );
  refused(target, TypeError, "a model is not its own draft");
  draft.dispose();
  refused(draft, TypeError, "is disposed");
  using translator = await load(fixturePath("models/m2m100"), { device: "reference" });
  refused(translator, UnsupportedError, "is an encoder-decoder, which cannot draft");
  assertThrows(
    () => generate(translator, PROMPT, { draft: "lookup" }),
    UnsupportedError,
    "drafts are for models that continue texts",
  );
});

Deno.test("a draft model with another vocabulary is refused, and told by its first other token", async () => {
  const { target, draft } = await loadPair();
  using _target = target, _draft = draft;
  const bytes = Deno.readFileSync(TINY_LLAMA);
  const text = new TextEncoder().encode(target.tokenizer.tokenText(280));
  const stored = [text.length, 0, 0, 0, 0, 0, 0, 0, ...text];
  const at = bytes.findIndex((_, i) => stored.every((byte, j) => bytes[i + j] === byte));
  bytes[at + stored.length - 1]! ^= 1;
  using other = await withFolder(async (folder) => {
    Deno.writeFileSync(`${folder}/other.gguf`, bytes);
    return await load(`${folder}/other.gguf`, { device: "reference" });
  });
  assertThrows(
    () => generate(target, PROMPT, { draft: other }),
    UnsupportedError,
    `cannot draft for ${target.name}: its vocabulary is another one, token `,
  );
});

Deno.test("a draft model that is disposed of on the way ends the answer by a named error", async () => {
  const { target, draft } = await loadPair();
  using _target = target;
  const generation = generate(target, PROMPT, {
    ...{ maxTokens: 40, ignoreEos: true },
    draft: { from: draft, k: 2 },
  });
  await assertRejects(
    async () => {
      for await (const _chunk of generation) draft.dispose();
    },
    TypeError,
    "is disposed",
  );
});

Deno.test("of a real pair as many proposals are taken at each place as its distributions say, within 5 %", async () => {
  const { target, draft } = await loadPair();
  using _target = target, _draft = draft;
  const { expected, accepted } = await measurePair(
    { target, draft },
    { prompt: PROMPT, texts: 70, tokens: 50, temperature: 2 },
  );
  for (const [place, count] of accepted.entries()) {
    assert(count > 300, `${count} at place ${place}`);
    assertAlmostEquals(count, expected[place]!, 0.05 * expected[place]!);
  }
});

for (const device of ["reference", "gpu"] as const) {
  const test = device === "gpu" ? gpuTest : Deno.test;
  test(`proposals are checked on device ${device}, too`, async () => {
    using model = await loadTiny({ device, precision: "exact", sessions: 2 });
    for (const chance of [{}, { topK: 5, seed: 3 }]) {
      const options = { maxTokens: 30, ignoreEos: true, ...chance };
      const plain = await generate(model, PROMPT, options).result;
      const draft = { from: "lookup", k: 5 } as const;
      const { ids, stats } = await generate(model, PROMPT, { ...options, draft }).result;
      assertEquals(ids, plain.ids);
      assert(stats.speculation!.drafted > 0);
    }
  });
}

Deno.test("--draft takes a model or a word, and says what came of it", async () => {
  const args = [
    "generate",
    TINY_LLAMA,
    "--raw",
    "-p",
    "abababab",
    "--max-tokens",
    "24",
    "--ignore-eos",
  ];
  const plain = await troodon([...args, "--json"]);
  for (const draft of ["lookup", "history"]) {
    const { code, out } = await troodon([...args, "--draft", draft, "--json"]);
    assertEquals(code, 0);
    assertEquals(JSON.parse(out).text, JSON.parse(plain.out).text);
    assert(JSON.parse(out).stats.speculation !== undefined);
  }
  const missing = await troodon([...args, "--draft", "nothing-of-that-name", "--offline"]);
  assert(missing.code !== 0);
  assertStringIncludes(missing.err, "nothing-of-that-name");
});

Deno.test("a check that is stopped between its steps leaves no row behind the session's tokens", async () => {
  using model = await loadTiny({ ...EXACT, batch: 2, logitRows: 8 });
  const { runtime: { executable } } = model as LoadedModel, { run } = executable;
  using session = model.createSession() as TimelineSession;
  await session.eval(PROMPT);
  const controller = new AbortController();
  executable.run = (step) => {
    controller.abort();
    return run(step);
  };
  const { signal } = controller;
  await assertRejects(() => session.checkNow([3, 4, 5, 6, 7], { signal }), DOMException, "aborted");
  executable.run = run;
  assertEquals(session.tokens, PROMPT);
  await session.eval([8]);
  const logits = [...session.logits()];
  await session.sync([9]);
  await session.sync([...PROMPT, 8]);
  assertEquals(logits, [...session.logits()]);
});
