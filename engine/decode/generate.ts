// generate(): text from a prompt. Checks every option before anything runs, turns the prompt into tokens,
// and hands the loop (run.ts) a session: the caller's own, or one borrowed from the model. chat() is in
// chat.ts.

import { LoadedModel } from "./loaded_model.ts";
import type { Model } from "./model.ts";
import { adapterScales } from "./adapter_scales.ts";
import { checkCandidates } from "./candidate_limit.ts";
import { type GenerateOptions, resolveGenerateOptions } from "./generate_options.ts";
import { createGeneration, type Generation, type GenerationSteps } from "./generation.ts";
import { type BorrowedSession, type Prompt, runGeneration, type RunInput } from "./run.ts";
import type { Runtime } from "./runtime.ts";
import { createSampler } from "./sampling/sampler.ts";
import type { Session } from "./session.ts";
import { resolveDraft } from "./speculate/draft_option.ts";
import { TimelineSession } from "./timeline_session.ts";

/**
 * Continues a text. Without sampling options the best token is taken each time.
 *
 * An encoder-decoder reads the prompt with its encoder and writes an answer to it.
 *
 * On a session the prompt is the whole text so far: what it has in common with the session's tokens is not
 * computed again. On a model a session is borrowed for the time of the call.
 *
 * @param target A model, or a session of one.
 * @param prompt Text, or token ids, to which nothing is added.
 * @throws {RangeError | TypeError} At once, on a bad option or an empty prompt.
 * @throws {ResourceError} While it runs, if the prompt is longer than the context, or the context is full
 * (see {@linkcode GenerateOptions.onContextFull}).
 *
 * @example
 * ```ts
 * import { generate, load } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("tests/fixtures/models/llama_formats/llama.Q8_0.gguf");
 * let text = "";
 * for await (const chunk of generate(model, "Once", { maxTokens: 8 })) text += chunk.text;
 * assertEquals(text, await generate(model, "Once", { maxTokens: 8 }).text());
 * ```
 */
export function generate(
  target: Model | Session,
  prompt: string | readonly number[],
  options: GenerateOptions = {},
): Generation {
  const { runtime } = coreOf(target);
  return startGeneration(target, promptOf(runtime, prompt, options.special ?? false), options);
}

/** Starts a generation from tokens; for {@linkcode generate} and `chat`. */
export function startGeneration(
  target: Model | Session,
  prompt: Prompt,
  options: GenerateOptions,
): Generation {
  const run = prepareRun(target, options);
  if (prompt.tokens.length === 0) {
    throw new RangeError("Cannot generate from an empty prompt: give at least one token");
  }
  return createGeneration((leave) => run({ prompt, leave }));
}

/** Runs answers one after the other, with one sampler. */
export type RunAnswer = (
  answer: Pick<RunInput, "prompt" | "leave"> & { readonly maxTokens?: number },
) => GenerationSteps;

/** Checks the options of answers; nothing is run yet. */
export function prepareRun(target: Model | Session, options: GenerateOptions): RunAnswer {
  const core = coreOf(target);
  const resolved = resolveGenerateOptions(options);
  adapterScales(core.runtime, resolved.adapters); // refuses at once what is not loaded
  checkCandidates(core.runtime, resolved);
  const draft = resolved.draft && resolveDraft(resolved.draft, core.runtime);
  const tokenizer = core.runtime.tokenizer();
  const sampler = createSampler(resolved.sampler, tokenizer);
  return ({ prompt, leave, maxTokens = resolved.maxTokens }) =>
    runGeneration({
      runtime: core.runtime,
      borrow: (signal) =>
        borrow(core, { length: prompt.tokens.length, priority: resolved.priority, signal }),
      prompt,
      options: { ...resolved, maxTokens },
      sampler,
      draft,
      leave,
    });
}

/** What stands behind the public objects. @throws {TypeError} If they are none of this library. */
export function coreOf(target: Model | Session): LoadedModel | TimelineSession {
  if (target instanceof LoadedModel || target instanceof TimelineSession) return target;
  throw new TypeError("Cannot generate: give a model from load(), or a session of one");
}

function promptOf(
  runtime: Runtime,
  prompt: string | readonly number[],
  special: boolean,
): Prompt {
  const { source } = runtime;
  if (source) {
    const given = typeof prompt === "string"
      ? runtime.tokenizer().encode(prompt, { special })
      : prompt;
    return { source: [...given], tokens: source.start, keep: 0, continues: false };
  }
  if (typeof prompt !== "string") return { tokens: [...prompt], keep: 0, continues: true };
  const tokenizer = runtime.tokenizer();
  const tokens = tokenizer.encode(prompt, { special });
  return { tokens, keep: tokenizer.prefixIds.length, continues: true };
}

async function borrow(
  core: LoadedModel | TimelineSession,
  { length, ...options }: {
    readonly length: number;
    readonly priority: number;
    readonly signal: AbortSignal;
  },
): Promise<BorrowedSession> {
  const isOwn = core instanceof TimelineSession;
  const session = isOwn ? core : await core.borrow(length, options);
  const { release } = await session.acquire(options.signal);
  return {
    session,
    isKept: isOwn,
    [Symbol.dispose]() {
      release();
      if (!isOwn) session.dispose();
    },
  };
}
