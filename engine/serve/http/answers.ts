// Answers as endpoints use them: several jobs under way at once as one sequence of events, each watched for the metrics,
// and whole answers put together from their events. Nothing is sent before the first event, so that what is wrong with a
// request becomes its status; only a stream begins without one where a prompt takes long.

import type { AnswerEnd, AnswerEvent, AnswerJob, AnswerStart, AnswerToken } from "../engine.ts";
import { ApiError } from "./api_error.ts";
import type { Call } from "./call.ts";

/** An event of one of several answers. */
export interface IndexedEvent {
  readonly index: number;
  readonly event: AnswerEvent;
}

/** Events of answers under way. */
export type Events = AsyncGenerator<IndexedEvent, void, void>;

/**
 * Asks for answers.
 *
 * @param options Where a stream is wanted, it is not waited longer than `Limits.headMs` on a model that is loaded.
 * @returns Their events, when the first has come.
 * @throws {JobError} What is wrong with one of them. @throws {ApiError} 429 where too many are under way.
 */
export async function startAnswers(
  call: Call,
  jobs: readonly AnswerJob[],
  { isStreamed }: { readonly isStreamed: boolean },
): Promise<Events> {
  call.admit(jobs.length);
  call.notes.model = jobs[0]!.model;
  const timer = setTimeout(() => call.abort(TOO_LONG), call.options.limits.answerMs);
  call.onEnd(() => clearTimeout(timer));
  const events = jobs.length === 1 ? single(call, jobs[0]!) : merged(call, jobs);
  const first = events.next();
  await (isStreamed ? patience(call, { first, model: jobs[0]!.model }) : first);
  return resumed(first, events);
}

/** Waits for the first event, but not for long on a model that is there: what is wrong with a request is known by then. */
async function patience(
  call: Call,
  { first, model }: { readonly first: Promise<unknown>; readonly model: string },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setInterval(async () => {
    const models = await call.engine.call("models", null, call.signal).catch(() => []);
    if (models.some(({ name, isLoaded }) => isLoaded && name === model)) resolve();
  }, call.options.limits.headMs);
  first.then(() => resolve(), reject);
  try {
    await promise;
  } finally {
    clearInterval(timer);
  }
}

const TOO_LONG = new ApiError(503, "The answer took longer than this server allows", {
  code: "timeout",
});

async function* resumed(first: Promise<IteratorResult<IndexedEvent, void>>, rest: Events): Events {
  try {
    const { done, value } = await first;
    if (done) return;
    yield value;
    yield* rest;
  } finally {
    await rest.return();
  }
}

async function* single(call: Call, job: AnswerJob): Events {
  for await (const event of watched(call, job, true)) yield { index: 0, event };
}

async function* merged(call: Call, jobs: readonly AnswerJob[]): Events {
  // Several answers to a prompt share it, and count it once.
  const isFirst = (job: AnswerJob, i: number) =>
    jobs.findIndex(({ input }) => input === job.input) === i;
  const sources = jobs.map((job, i) => watched(call, job, isFirst(job, i)));
  const next = (index: number) => sources[index]!.next().then((result) => ({ index, result }));
  const pending = new Map(sources.map((_, index) => [index, next(index)]));
  try {
    while (pending.size > 0) {
      const { index, result } = await Promise.race(pending.values());
      if (result.done) pending.delete(index);
      else {
        yield { index, event: result.value };
        pending.set(index, next(index));
      }
    }
  } finally {
    if (pending.size > 0) call.abort();
    // Those that fail when they are left have nobody to tell.
    await Promise.allSettled([...pending.values(), ...sources.map((source) => source.return())]);
  }
}

/** An answer whose times and counts are noted, those of its prompt where it is the first one to it. */
async function* watched(
  call: Call,
  job: AnswerJob,
  isFirst: boolean,
): AsyncGenerator<AnswerEvent, void, void> {
  const { engine, signal, notes, options: { metrics } } = call;
  const watch = metrics.watchAnswer(job.model);
  let isOver = false;
  const counts = { promptTokens: 0, cachedTokens: 0, answerTokens: 0 };
  // Noted as they come, so that the log has them of answers, too, that somebody leaves.
  const note = (name: keyof typeof counts, count: number) => {
    notes[name] = (notes[name] ?? 0) + count - counts[name];
    counts[name] = count;
  };
  try {
    for await (const event of engine.answer(job, signal)) {
      if (event.kind === "start") {
        if (isFirst) note("promptTokens", event.promptTokens);
      } else if (event.kind === "part") {
        watch.tokens(event.tokens.length);
        note("answerTokens", counts.answerTokens + event.tokens.length);
      } else {
        isOver = true;
        watch.end(event);
        if (isFirst) {
          note("promptTokens", event.promptTokens);
          note("cachedTokens", event.cachedTokens);
        }
        note("answerTokens", event.answerTokens);
        notes.finishReason = event.finishReason;
        if (event.finishReason === "abort") throw reasonOf(signal);
      }
      yield event;
    }
    if (!isOver) throw reasonOf(signal);
  } catch (error) {
    if (signal.aborted) throw reasonOf(signal);
    throw error;
  } finally {
    watch.leave();
  }
}

/** Why an answer ended that nobody finished. */
function reasonOf({ aborted, reason }: AbortSignal): Error {
  if (aborted && reason instanceof ApiError) return reason;
  return aborted
    ? new ApiError(499, "The client has left", { code: "client_left" })
    : new ApiError(503, "The answer was ended from outside", { code: "aborted" });
}

/** An answer, complete. */
export interface WholeAnswer {
  readonly start: AnswerStart | undefined;
  readonly text: string;
  readonly thinking: string;
  readonly tokens: readonly AnswerToken[];
  /** Tokens that were thought. */
  readonly thinkingTokens: number;
  readonly end: AnswerEnd;
}

/** What is known of an answer so far. */
export class AnswerRecord {
  start: AnswerStart | undefined;
  text = "";
  thinking = "";
  tokens: AnswerToken[] = [];
  thinkingTokens = 0;
  end: AnswerEnd | undefined;

  /** Takes an event; `keepsTokens` where somebody wants log-probabilities. */
  take(event: AnswerEvent, { keepsTokens }: { readonly keepsTokens: boolean }): void {
    if (event.kind === "start") this.start = event;
    else if (event.kind === "end") this.end = event;
    else {
      this.text += event.text;
      if (event.thinking) {
        this.thinking += event.thinking;
        if (event.text === "") this.thinkingTokens += event.tokens.length;
      }
      if (keepsTokens) this.tokens.push(...event.tokens);
    }
  }
}

/** Waits for answers to be complete. */
export async function wholeAnswers(
  events: Events,
  { count, keepsTokens }: { readonly count: number; readonly keepsTokens: boolean },
): Promise<WholeAnswer[]> {
  const records = Array.from({ length: count }, () => new AnswerRecord());
  for await (const { index, event } of events) records[index]!.take(event, { keepsTokens });
  return records as WholeAnswer[];
}

/** Why an answer ended, in OpenAI's words. */
export function finishReason(
  { finishReason: reason }: AnswerEnd,
): "stop" | "length" | "tool_calls" {
  if (reason === "tool_calls") return reason;
  return reason === "length" || reason === "context" ? "length" : "stop";
}

/** Tokens that answers took. */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number };
  readonly completion_tokens_details: {
    readonly reasoning_tokens: number;
    readonly accepted_prediction_tokens: number;
    readonly rejected_prediction_tokens: number;
  };
}

/** Adds up answers; a prompt with `perPrompt` answers counts once. */
export function usageOf(answers: readonly WholeAnswer[], perPrompt: number): Usage {
  const firsts = answers.filter((_, i) => i % perPrompt === 0);
  const sum = (list: readonly WholeAnswer[], of: (answer: WholeAnswer) => number) =>
    list.reduce((total, answer) => total + of(answer), 0);
  const prompt = sum(firsts, ({ end }) => end.promptTokens);
  const completion = sum(answers, ({ end }) => end.answerTokens);
  const accepted = sum(answers, ({ end }) => end.drafts?.accepted ?? 0);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: sum(firsts, ({ end }) => end.cachedTokens) },
    completion_tokens_details: {
      reasoning_tokens: sum(answers, ({ thinkingTokens }) => thinkingTokens),
      accepted_prediction_tokens: accepted,
      rejected_prediction_tokens: sum(answers, ({ end }) => end.drafts?.proposed ?? 0) - accepted,
    },
  };
}

/** What only this server tells of an answer: with the seed it can be had again. */
export function timingsOf({ start, end }: WholeAnswer): Readonly<Record<string, number>> {
  return {
    ...start && { seed: start.seed },
    first_token_ms: rounded(end.firstTokenMs),
    tokens_per_second: rounded(end.decodePerSecond),
  };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
