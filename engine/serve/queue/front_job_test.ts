import { assertEquals, assertRejects } from "@std/assert";
import type { AnswerEvent, AnswerPart } from "../engine.ts";
import { JobError } from "../job_error.ts";
import { type Attempt, FrontJob } from "./front_job.ts";
import { type AttemptMessage, decodeMessage, encodeMessage, framesOf } from "./wire.ts";

const part = (text: string, extra: Partial<AnswerPart> = {}): AnswerPart => ({
  ...{ kind: "part", at: 0, text, tokens: [...text].map((sign) => ({ id: sign.charCodeAt(0) })) },
  ...extra,
});
const start = { kind: "start", promptTokens: 2, seed: 1 } as const;
const end: AnswerEvent = {
  ...{ kind: "end", finishReason: "eos", toolCalls: [], promptTokens: 2, cachedTokens: 0 },
  ...{ answerTokens: 3, firstTokenMs: 1, decodePerSecond: 1 },
};

function jobOf(): FrontJob {
  const job = { model: "m", input: { prompt: "p" }, options: { maxTokens: 9 } };
  return new FrontJob({ id: "1", model: "m", work: { kind: "answer", job }, prefixes: [] });
}

function begin(job: FrontJob, id: string): Attempt {
  return job.begin({ id, worker: id, beatMs: 100, chunkSize: 1000, now: 0 });
}

/** Messages of an attempt, in frames. */
function framesFor(messages: readonly AttemptMessage[], size = 1000): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (const message of messages) {
    frames.push(...framesOf(encodeMessage(message), { from: frames.length, size }));
  }
  return frames;
}

const events = (...list: AnswerEvent[]): AttemptMessage[] => [
  ...list.map((event) => ({ event })),
  { done: true },
];

/** What is told, with texts and tokens of parts joined. */
async function told(job: FrontJob) {
  const all = await Array.fromAsync(job.events());
  const parts = all.filter((event) => event.kind === "part");
  let count = 0;
  for (const { at, tokens } of parts) {
    assertEquals(at, count);
    count += tokens.length;
  }
  return {
    kinds: all.map(({ kind }) => kind).filter((kind, i, kinds) => kind !== kinds[i - 1]),
    text: parts.map(({ text }) => text).join(""),
    thinking: parts.map(({ thinking = "" }) => thinking).join(""),
    ids: parts.flatMap(({ tokens }) => tokens.map(({ id }) => id)),
    calls: parts.flatMap(({ calls = [] }) => calls.map(({ argumentsText }) => argumentsText)),
  };
}

Deno.test("frames of any size, in any order, twice and with gaps are one answer", async () => {
  const frames = framesFor(events(start, part("ab"), part("cé"), part("z"), end), 40);
  const job = jobOf(), attempt = begin(job, "a");
  const asked: (number | undefined)[] = [];
  // The third comes late: from there on all are sent again.
  for (const [i, frame] of frames.entries()) if (i !== 2) asked.push(job.take(frame, attempt));
  assertEquals(asked.filter((from) => from !== undefined), [2]);
  job.take(frames[0]!, attempt);
  for (const frame of frames.slice(2)) assertEquals(job.take(frame, attempt), undefined);
  assertEquals(attempt.received, frames.length);
  assertEquals((await told(job)).text, "abcéz");
  assertEquals(job.take(new Uint8Array(2), attempt), undefined);
});

Deno.test("another worker goes on with what was given, however either cuts it", async () => {
  const job = jobOf();
  const calls = (argumentsText: string) => ({
    calls: [{ index: 0, id: "call00000", name: "f", argumentsText }],
  });
  const first = begin(job, "a");
  const frames = framesFor(events(
    ...[start, part("ab", { text: "a", thinking: "th" })],
    ...[part("c", { text: "", ...calls("{") }), part("never")],
  ));
  for (const frame of frames.slice(0, 3)) job.take(frame, first);
  const second = begin(job, "b");
  assertEquals(decodeMessage(second.body), {
    kind: "answer",
    job: {
      ...{ model: "m", input: { prompt: "p" } },
      options: { maxTokens: 9, forced: [..."abc"].map((sign) => sign.charCodeAt(0)) },
    },
  });
  const again = events(
    ...[
      start,
      part("a", { text: "", thinking: "t" }),
      part("bcde", { text: "abx", thinking: "hi" }),
    ],
    ...[part("f", { text: "", ...calls("{}") }), end],
  );
  for (const frame of framesFor(again)) job.take(frame, second);
  assertEquals(await told(job), {
    kinds: ["start", "part", "end"],
    ...{ text: "abx", thinking: "thi", calls: ["{", "{}"] },
    ids: [..."abcdef"].map((sign) => sign.charCodeAt(0)),
  });
});

Deno.test("a worker that tells another answer than the one that was begun ends it with an error", async () => {
  const job = jobOf();
  for (const frame of framesFor(events(start, part("ab"))).slice(0, 2)) {
    job.take(frame, job.attempt ?? begin(job, "a"));
  }
  const second = begin(job, "b");
  for (const frame of framesFor(events(start, part("aX")))) job.take(frame, second);
  const error = await assertRejects(() => told(job), JobError);
  assertEquals([error.failure.status, error.failure.code], [500, "answers_differ"]);
});

Deno.test("failures come through, and nothing behind them", async () => {
  const job = jobOf(), attempt = begin(job, "a");
  const failure = { status: 400, message: "Cannot use topK", param: "topK" } as const;
  for (const frame of framesFor([{ failure }, { event: start }])) job.take(frame, attempt);
  const error = await assertRejects(() => told(job), JobError);
  assertEquals(error.failure, failure);
});
