// generate(): text from a prompt. Checks every option before anything runs, turns the prompt into tokens,
// and hands the loop (run.ts) a session: the caller's own, or one borrowed from the model. chat() is in
// chat.ts.

import { isReasonOf } from "../pause.ts";
import { UnsupportedError } from "../errors.ts";
import { LoadedModel } from "./loaded_model.ts";
import type { Model } from "./model.ts";
import { adapterScales } from "./adapter_scales.ts";
import { checkCandidates } from "./candidate_limit.ts";
import { type GenerateOptions, resolveGenerateOptions } from "./generate_options.ts";
import { constrainSampler } from "./constrained_sampler.ts";
import {
  type Chunk,
  createGeneration,
  type GenerationResult,
  type GenerationSteps,
  type Structured,
  type StructuredGeneration,
} from "./generation.ts";
import type { SchemaValue } from "./schema_value.ts";
import type { Structure } from "./structured.ts";
import { type Constraint, createConstraint } from "../text/grammar/constraint.ts";
import { type BorrowedSession, type Prompt, runGeneration, type RunInput } from "./run.ts";
import { checkOptionKinds } from "../option_keys.ts";
import { picturePlaces, pictureTokens } from "./pictures/text_prompt.ts";
import type { Runtime } from "./runtime.ts";
import { checkForced, forceTokens } from "./sampling/forced.ts";
import { createSampler } from "./sampling/sampler.ts";
import type { Session } from "./session.ts";
import { resolveDraft } from "./speculate/draft_option.ts";
import { TimelineSession } from "./timeline_session.ts";

/** A text, or token ids, to which nothing is added. */
type PromptInput = string | readonly number[];

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
 * With a `schema` the answer is JSON that it allows, and `result` has its value, typed by the schema.
 *
 * @throws {RangeError | TypeError} At once, on a bad option or an empty prompt.
 * @throws {FormatError | UnsupportedError} At once, on a schema or grammar that cannot be used.
 * @throws {ResourceError} While it runs, if the prompt is longer than the context, or the context is full
 * (see {@linkcode GenerateOptions.onContextFull}).
 *
 * @example
 * ```ts
 * import { generate, load } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("model.gguf");
 * let text = "";
 * for await (const chunk of generate(model, "Once", { maxTokens: 8 })) text += chunk.text;
 * assertEquals(text, await generate(model, "Once", { maxTokens: 8 }).text());
 * ```
 * @category Text
 */
export function generate<const S = undefined>(
  target: Model | Session,
  prompt: string | readonly number[],
  options?: GenerateOptions & { readonly schema?: S },
): StructuredGeneration<SchemaValue<S>>;
/**
 * Continues several texts, each as if it were the only one. Those that are read at the same time share steps, as
 * many as the model has `sessions` (16 unless it was loaded with others); the rest wait for theirs.
 *
 * @param target A model.
 * @param prompts Texts, or lists of token ids.
 * @returns A generation for each, in their order.
 * @throws As for one prompt, before any of them runs. @throws {TypeError} On a session, which has one text.
 *
 * @example
 * ```ts
 * import { generate, load } from "@troodon/troodon";
 *
 * using model = await load("model.gguf");
 * const answers = generate(model, ["Once", "Twice", "Never"], { maxTokens: 8 });
 * for (const text of await Promise.all(answers.map((answer) => answer.text()))) console.log(text);
 * ```
 * @category Text
 */
export function generate<const S = undefined>(
  target: Model,
  prompts: readonly (string | readonly number[])[],
  options?: GenerateOptions & { readonly schema?: S },
): readonly StructuredGeneration<SchemaValue<S>>[];
export function generate(
  target: Model | Session,
  prompt: PromptInput | readonly PromptInput[],
  options: GenerateOptions = {},
): StructuredGeneration | readonly StructuredGeneration[] {
  checkOptionKinds(options, "generate()");
  const core = coreOf(target), { runtime } = core, { special = false, images = [] } = options;
  if (images.length > 0) return lookAndGenerate(target, prompt, { ...options, images });
  if (!isList(prompt)) return startGeneration(target, promptOf(runtime, prompt, special), options);
  if (core instanceof TimelineSession) {
    throw new TypeError("Cannot generate from several prompts on a session: give its model");
  }
  const prompts = prompt.map((one) => promptOf(runtime, one, special));
  return prompts.map((one) => startGeneration(target, one, options));
}

/** Pictures are looked at when the answer begins. */
function lookAndGenerate(
  target: Model | Session,
  prompt: PromptInput | readonly PromptInput[],
  options: GenerateOptions & Required<Pick<GenerateOptions, "images">>,
): StructuredGeneration {
  const { runtime } = coreOf(target), { images, special = false, signal } = options;
  if (typeof prompt !== "string") {
    throw new TypeError("Cannot use images with tokens or several prompts: give one text");
  }
  const places = picturePlaces(runtime, { prompt, count: images.length });
  const run = prepareRun(target, options);
  return createGeneration<Chunk, GenerationResult & Structured<unknown>>(async function* (leave) {
    const stop = signal ? AbortSignal.any([signal, leave]) : leave;
    const look = { prompt: places, images, special, signal: stop };
    const tokens = await pictureTokens(runtime, look).catch((error) => {
      if (!isReasonOf(stop, error)) throw error;
      return []; // the run ends as it begins
    });
    const keep = runtime.tokenizer().prefixIds.length;
    return yield* withValue(run, { prompt: { tokens, keep, continues: true }, leave });
  });
}

function isList(prompt: PromptInput | readonly PromptInput[]): prompt is readonly PromptInput[] {
  return Array.isArray(prompt) && prompt.length > 0 && typeof prompt[0] !== "number";
}

/** Starts a generation from tokens; for {@linkcode generate} and `chat`. */
export function startGeneration(
  target: Model | Session,
  prompt: Prompt,
  options: GenerateOptions,
): StructuredGeneration {
  const run = prepareRun(target, options);
  if (prompt.tokens.length === 0) {
    throw new RangeError("Cannot generate from an empty prompt: give at least one token");
  }
  return createGeneration<Chunk, GenerationResult & Structured<unknown>>((leave) =>
    withValue(run, { prompt, leave })
  );
}

async function* withValue(
  run: PreparedRun,
  input: Pick<RunInput, "prompt" | "leave">,
): GenerationSteps {
  const steps = run.start(input);
  let text = "";
  for (;;) {
    const next = await steps.next();
    if (next.done) {
      return { ...next.value, getValue: await run.structure?.getterOf({ text, ...next.value }) };
    }
    text += next.value.text;
    yield next.value;
  }
}

/** Runs answers one after the other, with one sampler. */
export interface PreparedRun {
  /** What binds answers. */
  readonly structure: Structure | undefined;
  /** @param answer With `constraint` bound by that, not by the options. */
  start(
    answer: Pick<RunInput, "prompt" | "leave"> & {
      readonly maxTokens?: number;
      readonly constraint?: Constraint | undefined;
    },
  ): GenerationSteps;
}

/** Checks the options of answers; nothing is run yet. */
export function prepareRun(target: Model | Session, options: GenerateOptions): PreparedRun {
  const core = coreOf(target);
  const resolved = resolveGenerateOptions(options);
  adapterScales(core.runtime, resolved.adapters); // refuses at once what is not loaded
  checkCandidates(core.runtime, resolved);
  const draft = resolved.draft && resolveDraft(resolved.draft, core.runtime);
  if (resolved.forced.length > 0 && draft && typeof draft.from !== "string") {
    throw new RangeError("Cannot use forced with a model as draft: leave one of them out");
  }
  const tokenizer = core.runtime.tokenizer();
  checkForced(resolved.forced, tokenizer.vocabSize);
  const sampler = forceTokens(createSampler(resolved.sampler, tokenizer), resolved.forced);
  const { structure } = resolved;
  return {
    structure,
    start({ prompt, leave, maxTokens = resolved.maxTokens, constraint: given }) {
      const leadingBlanks = prompt.continues ? 0 : tokenizer.leadingBlanks;
      const constraint = given ??
        (structure && createConstraint(structure.grammar, { tokenizer, leadingBlanks }));
      const bound = constraint && constrainSampler(sampler, constraint);
      return runGeneration({
        runtime: core.runtime,
        borrow: (signal) =>
          borrow(core, { length: prompt.tokens.length, priority: resolved.priority, signal }),
        prompt,
        options: { ...resolved, maxTokens },
        sampler: bound ?? sampler,
        bound,
        draft,
        leave,
      });
    },
  };
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
  if (typeof prompt !== "string" && !Array.isArray(prompt) && !ArrayBuffer.isView(prompt)) {
    throw new TypeError("Cannot generate: a prompt is a text or a list of token ids");
  }
  const { source } = runtime;
  if (source?.sound) {
    throw new UnsupportedError("listens and does not read: it has no prompt", {
      ...{ file: runtime.name, remedy: "Use transcribe()" },
    });
  }
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
  const giveBack = () => {
    if (!isOwn) session.dispose();
  };
  try {
    const { release } = await session.acquire(options.signal);
    return {
      session,
      isKept: isOwn,
      [Symbol.dispose]() {
        release();
        giveBack();
      },
    };
  } catch (error) {
    giveBack(); // stopped since it was borrowed
    throw error;
  }
}
