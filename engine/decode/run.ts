// The decode loop: prompt into the session, then sample, show, append, until something ends it. It uses
// only the session's verbs and the sampler's, so a speculative or batched loop can stand beside it with
// the same chunks. The session is held from the first step to the end; calls on it wait.

import { isReasonOf } from "../pause.ts";
import { ResourceError } from "../errors.ts";
import { createStreamDecoder } from "../text/stream_decoder.ts";
import type { AnswerReader } from "../text/answer/answer_reader.ts";
import { type AnswerStream, createAnswerStream } from "../text/answer/answer_stream.ts";
import { adapterScales } from "./adapter_scales.ts";
import { slide, slidPrompt } from "./context_slide.ts";
import type { ResolvedGenerateOptions } from "./generate_options.ts";
import type { Chunk, FinishReason, GenerationSteps, TokenInfo } from "./generation.ts";
import { createMeter, type Meter, statsOf } from "./meter.ts";
import { logProbability, topAlternatives } from "./sampling/log_softmax.ts";
import type { Executable } from "../run/executable.ts";
import { MOST_BEST } from "../run/step.ts";
import type { TokenHistory } from "./sampling/history.ts";
import type { ConstrainedSampler } from "./constrained_sampler.ts";
import type { Sampler } from "./sampling/sampler.ts";
import type { ResolvedDraft } from "./speculate/draft_option.ts";
import type { Speculation } from "./speculate/speculation.ts";
import type { Runtime } from "./runtime.ts";
import type { TimelineSession } from "./timeline_session.ts";

/** Best tokens taken one behind the other that make it likely that the next one is taken too. */
const CONFIDENCE = 3;
/** √streak for each step of a round, from what a step and a wait cost on large GPUs (1 and 0.1 ms). */
const ROUNDS = 4;

/** A prompt in tokens. */
export interface Prompt {
  readonly tokens: readonly number[];
  /** Leading tokens that a sliding context keeps. */
  readonly keep: number;
  /** What an encoder reads first. */
  readonly source?: readonly number[];
  /** Whether the answer goes on in the middle of a text. */
  readonly continues: boolean;
  /** Splits the answer, and the control tokens that it has to see. */
  readonly answer?: { readonly reader: AnswerReader; readonly shown: ReadonlySet<number> };
  /** Tokens that end the answer besides the model's own. */
  readonly ends?: ReadonlySet<number>;
  /** What stands in a full context instead, the answer so far included; undefined if it cannot be shorter. */
  readonly shorten?: (answer: readonly number[]) => readonly number[] | undefined;
}

/** What a run needs. */
export interface RunInput {
  readonly runtime: Runtime;
  /** Gives the session, to be disposed of if it was made for this run; waits its turn. */
  borrow(signal: AbortSignal): Promise<BorrowedSession>;
  readonly prompt: Prompt;
  readonly options: ResolvedGenerateOptions;
  readonly sampler: Sampler;
  /** The sampler, if a grammar binds it. */
  readonly bound?: ConstrainedSampler | undefined;
  /** Who proposes tokens. */
  readonly draft?: ResolvedDraft | undefined;
  /** Fires when the reader leaves. */
  readonly leave: AbortSignal;
}

/** A session that nobody else uses until it is given back. */
export interface BorrowedSession extends Disposable {
  readonly session: TimelineSession;
  /** Somebody goes on with it afterwards. */
  readonly isKept: boolean;
}

/** Runs a generation. */
export async function* runGeneration(input: RunInput): GenerationSteps {
  const { options, leave, sampler, runtime } = input;
  const signal = options.signal ? AbortSignal.any([options.signal, leave]) : leave;
  const meter = createMeter();
  let finishReason: FinishReason;
  try {
    using borrowed = await input.borrow(signal);
    const { session } = borrowed;
    try {
      using speculation = input.draft || copiesForms(input)
        ? await speculate(session, input, signal)
        : undefined;
      meter.speculation = input.draft && speculation?.stats;
      finishReason = yield* decode(session, input, { signal, meter, speculation });
    } finally {
      // Whoever goes on with the session finds all its logits. What fails here was told before, or will be.
      if (borrowed.isKept) await session.settle().catch(() => {});
    }
  } catch (error) {
    if (!isReasonOf(signal, error)) throw error;
    finishReason = "abort";
  }
  const constraint = input.bound?.constraint;
  const isWhole = !constraint || constraint.canEnd || constraint.isComplete;
  return { finishReason, isWhole, seed: sampler.seed, stats: statsOf(meter, runtime) };
}

async function* decode(
  session: TimelineSession,
  { prompt, runtime, options, sampler, bound, draft }: RunInput,
  { signal, meter, speculation }: {
    signal: AbortSignal;
    meter: Meter;
    speculation: Speculation | undefined;
  },
): AsyncGenerator<Chunk, FinishReason, void> {
  const { maxTokens, stop, ignoreEos, logprobs } = options;
  const tokenizer = runtime.tokenizer();
  // Where the sampler looks at few logits, a device need not hand over all.
  const isNarrow = logprobs === undefined && sampler.bestNeeded <= MOST_BEST;
  const best = isNarrow ? sampler.bestNeeded : undefined;
  const { continues, answer } = prompt;
  const stream = createAnswerStream({
    decoder: createStreamDecoder(tokenizer, { skipSpecial: true, shown: answer?.shown, continues }),
    reader: answer?.reader,
    stops: stop,
  });
  // Whoever looks at the history sees the token of rows where a picture stands.
  const { sight } = runtime;
  const tokens = sight ? prompt.tokens.map((id) => id < 0 ? sight.rowId : id) : [...prompt.tokens];
  const history = {
    tokens,
    promptLength: tokens.length,
    get length() {
      return tokens.length;
    },
  };
  session.useScales(adapterScales(runtime, options.adapters));
  await prefill(session, prompt, { options, signal, meter, best });
  const { promptTokens, prefillTokens } = meter;
  options.onStart?.({ promptTokens, prefillTokens, seed: sampler.seed });
  speculation?.notePrompt(meter.prefillTokens, meter.prefillMs);

  // A device that picks among what is allowed takes what the sampler would.
  const allowed = runtime.executable.picksAllowed && !draft ? bound?.allowed : undefined;
  const next = [0];
  let streak = 0;
  for (let taken = 0; taken < maxTokens;) {
    const start = performance.now();
    const likely = session.bestLogits()?.ids[0];
    const id = speculation?.take(history) ?? await sampleNext(session, sampler, history);
    streak = id === likely ? streak + 1 : 0;
    if (taken++ === 0) meter.firstTokenMs = start - meter.start;
    tokens.push(id);
    meter.decodeTokens = taken;
    const shown = { text: "", tokens: [tokenInfo(id, session, logprobs)] };
    const isEnd = !ignoreEos &&
      (tokenizer.endOfGenerationIds.has(id) || (prompt.ends?.has(id) ?? false));
    if (!isEnd) stream.push(id, shown);
    const reason = isEnd
      ? "eos"
      : stream.stoppedBy !== undefined || bound?.constraint.isComplete
      ? "stop"
      : taken === maxTokens
      ? "length"
      : undefined;
    meter.decodeMs += performance.now() - start;
    if (reason) {
      stream.finish(shown, reason !== "length");
      yield shown;
      return stream.stoppedBy === undefined ? reason : "stop";
    }
    yield shown;
    next[0] = id;
    try {
      signal.throwIfAborted();
      const wanted = maxTokens - taken;
      const isSure = sampler.isGreedy && !bound;
      const worth = isSure ? Infinity : likelySteps(streak, runtime.executable);
      if (
        !await append(session, next, {
          ...{ prompt, options, signal, meter, best, worth, allowed, speculation, tokens, wanted },
          meanwhile: bound?.prepare,
        })
      ) {
        yield* flush(stream);
        return "context";
      }
    } catch (error) {
      yield* flush(stream);
      throw error;
    }
  }
  return "length";
}

/**
 * Steps worth going ahead after so many best tokens in a row. They go in rounds, of which one is served while the device
 * computes the next; that one is in vain, and has to be waited for, when a token is not the best. If one in n is not, rounds
 * of b steps cost about b steps / n a token, and waits for the host 1 / b: together least at b ~ √n, where the streak is
 * taken for n. Where a wait is a pause of the event loop, it outweighs any step.
 */
function likelySteps(streak: number, { readsAtOnce }: Pick<Executable, "readsAtOnce">): number {
  if (streak < CONFIDENCE) return 0;
  return readsAtOnce ? 2 * Math.max(1, Math.floor(Math.sqrt(streak) / ROUNDS)) - 1 : Infinity;
}

/**
 * Whether an answer copies itself where nobody asked for drafts: a bound one that a device picks, whose steps have several rows
 * at little more than one's cost, and which waits for each token otherwise.
 */
function copiesForms({ bound, options, runtime }: RunInput): boolean {
  const { picksAllowed } = runtime.executable;
  return bound !== undefined && bound.isGreedy && options.logprobs === undefined &&
    bound.bestNeeded <= MOST_BEST && picksAllowed === true && runtime.network === "decoder" &&
    runtime.logitRows > 1;
}

/** The sampler's choice; by the best logits if those are all that the device has brought. */
async function sampleNext(
  session: TimelineSession,
  sampler: Sampler,
  history: TokenHistory,
): Promise<number> {
  const best = session.bestLogits();
  const id = best && sampler.sampleBest(best, history);
  if (id !== undefined) return id;
  await session.settle();
  return sampler.sample(session.logits(), history);
}

// What was held back is text of the answer, however it ends.
function* flush(stream: AnswerStream): Generator<Chunk> {
  const rest = { text: "", tokens: [] };
  stream.finish(rest, false);
  if (rest.text !== "" || Object.keys(rest).length > 2) yield rest;
}

async function speculate(
  session: TimelineSession,
  { draft, options, sampler, prompt }: RunInput,
  signal: AbortSignal,
): Promise<Speculation> {
  const { openSpeculation } = await import("./speculate/open.ts");
  const promptLength = prompt.tokens.length;
  return await openSpeculation({ draft, options, session, sampler, promptLength, signal });
}

async function prefill(
  session: TimelineSession,
  { tokens: whole, source, keep }: Prompt,
  { options, signal, meter, best }: {
    options: ResolvedGenerateOptions;
    signal: AbortSignal;
    meter: Meter;
    best: number | undefined;
  },
): Promise<void> {
  const start = performance.now();
  if (source) await session.encodeNow(source, { signal });
  const tokens = options.onContextFull === "slide"
    ? slidPrompt(whole, { keep: options.keep ?? keep, capacity: session.capacity })
    : whole;
  const kept = await session.syncNow(tokens, { signal, best, priority: options.priority });
  meter.promptTokens = (source?.length ?? 0) + tokens.length;
  meter.prefillTokens = meter.promptTokens - kept;
  meter.prefillMs = performance.now() - start;
}

// Computes the token that was taken; false if the context is full and the rule is to stop.
async function append(
  session: TimelineSession,
  next: readonly number[],
  { prompt, options, signal, meter, best, worth, allowed, speculation, tokens, wanted, meanwhile }:
    {
      prompt: Prompt;
      options: ResolvedGenerateOptions;
      signal: AbortSignal;
      meter: Meter;
      best: number | undefined;
      worth: number;
      allowed: (() => Uint32Array | undefined) | undefined;
      speculation: Speculation | undefined;
      tokens: readonly number[];
      wanted: number;
      meanwhile: (() => void) | undefined;
    },
): Promise<boolean> {
  const start = performance.now(), { priority } = options, feedback = wanted - 1;
  if (session.length < session.capacity && speculation) {
    const isStep = await speculation.append(tokens, {
      ...{ signal, best, worth, allowed, wanted, priority, meanwhile },
    });
    if (!isStep) return true;
  } else if (session.length < session.capacity) {
    await session.evalNow(next, {
      ...{ signal, best, feedback, worth, priority, meanwhile },
      allowed: allowed?.(),
    });
  } else if (prompt.shorten) {
    const shorter = prompt.shorten(tokens.slice(prompt.tokens.length));
    if (!shorter) return false;
    await session.syncNow(shorter, { signal, best, priority });
  } else if (options.onContextFull === "stop") {
    return false;
  } else if (options.onContextFull === "slide") {
    await slide(session, { keep: options.keep ?? prompt.keep, next, signal });
  } else {
    throw new ResourceError(
      `the context is full: ${session.capacity} tokens, ${prompt.tokens.length} of them the prompt`,
      {
        file: session.runtime.name,
        remedy: 'Load with a larger contextLength, or use onContextFull: "slide" or "stop"',
        tokens: { given: session.capacity + 1, room: session.capacity },
      },
    );
  }
  meter.decodeMs += performance.now() - start;
  signal.throwIfAborted();
  return true;
}

function tokenInfo(id: number, session: TimelineSession, logprobs: number | undefined): TokenInfo {
  if (logprobs === undefined) return { id };
  const logits = session.logits();
  const info = { id, logProbability: logProbability(logits, id) };
  return logprobs === 0 ? info : { ...info, alternatives: topAlternatives(logits, logprobs) };
}
