// Figures in Prometheus' form: what HTTP sees (requests, times to and between tokens) is counted as it happens, what the
// engine knows (queue, rows of steps, caches, drafts) is asked for when somebody scrapes.

import type { Counter, Gauge, Histogram, Registry } from "prom-client";
import { importNpm } from "../../npm_packages.ts";
import type { AnswerEnd, Engine, EngineFigures } from "../engine.ts";

type PromClient = typeof import("prom-client");
type ModelFigures = EngineFigures["models"][number];

/** How the tokens of an answer come. */
export interface AnswerWatch {
  /** So many tokens have come. */
  tokens(count: number): void;
  end(end: AnswerEnd): void;
  /** Nobody waits for it any more; after `end` too. */
  leave(): void;
}

/** Figures of one server. */
export interface Metrics {
  readonly contentType: string;
  /** All of them, as text. */
  text(signal: AbortSignal): Promise<string>;
  /** A request that has ended; `route` is a pattern, never what a client chose. */
  request(
    route: string,
    labels: { readonly method: string; readonly status: number; readonly seconds: number },
  ): void;
  watchAnswer(model: string): AnswerWatch;
}

/** Gauges and counters of a model, by what the engine calls them. */
const OF_MODELS: readonly {
  readonly name: string;
  readonly help: string;
  readonly kind: "Gauge" | "Counter";
  readonly value: (figures: ModelFigures) => number;
}[] = [
  gauge("answers_running", "answers that are written now", ({ running }) => running),
  gauge("answers_waiting", "answers that wait for a place", ({ waiting }) => waiting),
  counter("steps_total", "steps of the model", ({ steps }) => steps),
  counter(
    "step_rows_total",
    "rows of all steps: by steps_total it is the batch size",
    ({ rows }) => rows,
  ),
  counter("prompt_tokens_total", "tokens of prompts", ({ promptTokens }) => promptTokens),
  counter(
    "cached_prompt_tokens_total",
    "tokens of prompts that were found in the cache",
    ({ cachedTokens }) => cachedTokens,
  ),
  counter("answer_tokens_total", "tokens of answers", ({ answerTokens }) => answerTokens),
  counter(
    "draft_tokens_proposed_total",
    "tokens that a draft proposed",
    ({ proposedTokens }) => proposedTokens,
  ),
  counter(
    "draft_tokens_accepted_total",
    "tokens of drafts that were accepted",
    ({ acceptedTokens }) => acceptedTokens,
  ),
  gauge("cache_rows", "rows of the cache in use", ({ cacheRows }) => cacheRows),
  gauge("cache_capacity_rows", "rows of the cache", ({ cacheCapacity }) => cacheCapacity),
  gauge("model_memory_bytes", "memory of the model", ({ memoryBytes }) => memoryBytes),
];

/** Gauges of the queue, where there is one. */
const OF_QUEUE: readonly {
  readonly name: string;
  readonly help: string;
  readonly value: (queue: NonNullable<EngineFigures["queue"]>) => number;
}[] = [
  {
    name: "queue_jobs_waiting",
    help: "jobs in the queue that nobody has taken",
    value: ({ waiting }) => waiting,
  },
  { name: "queue_jobs_taken", help: "jobs that workers are at", value: ({ taken }) => taken },
  { name: "queue_workers", help: "workers that take jobs", value: ({ workers }) => workers },
];

function gauge(name: string, help: string, value: (figures: ModelFigures) => number) {
  return { name, help, kind: "Gauge" as const, value };
}

function counter(name: string, help: string, value: (figures: ModelFigures) => number) {
  return { name, help, kind: "Counter" as const, value };
}

const TOKEN_BUCKETS = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
const FIRST_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const SPEED_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const REQUEST_BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Labels of models: so many, whatever clients call them. */
const MOST_MODELS = 100;

/** Makes the figures of a server. */
export async function createMetrics(engine: Engine): Promise<Metrics> {
  const prom = await importNpm<PromClient>("prom-client");
  const registry = new prom.Registry();
  const own = ownMetrics(prom, registry);
  const ofEngine = engineMetrics(prom, registry);
  const models = new Set<string>();

  return {
    contentType: registry.contentType,
    async text(signal) {
      ofEngine.set(await engine.call("figures", null, signal));
      return await registry.metrics();
    },
    request(route, { method, status, seconds }) {
      own.requests.inc({ route, method, status });
      own.duration.observe({ route }, seconds);
    },
    watchAnswer(name) {
      const model = models.has(name) || models.size < MOST_MODELS ? name : "other";
      const start = performance.now();
      let last = 0, isDone = false;
      return {
        tokens(count) {
          const now = performance.now();
          if (count === 0) return;
          if (last === 0) {
            models.add(model); // a name that nobody serves gets no token, and no label
            own.first.observe({ model }, (now - start) / 1000);
          } else own.between.observe({ model }, (now - last) / 1000 / count);
          last = now;
        },
        end({ finishReason: reason, decodePerSecond }) {
          isDone = true;
          own.answers.inc({ model, reason });
          if (decodePerSecond > 0) own.speed.observe({ model }, decodePerSecond);
        },
        leave() {
          if (!isDone && last > 0) own.answers.inc({ model, reason: "left" });
        },
      };
    },
  };
}

interface OwnMetrics {
  readonly requests: Counter;
  readonly duration: Histogram;
  readonly answers: Counter;
  readonly first: Histogram;
  readonly between: Histogram;
  readonly speed: Histogram;
}

function ownMetrics({ Counter, Histogram }: PromClient, registry: Registry): OwnMetrics {
  const registers = [registry];
  const histogram = (
    name: string,
    help: string,
    more: { labelNames: string[]; buckets: number[] },
  ) => new Histogram({ name: `troodon_${name}`, help, registers, ...more });
  return {
    requests: new Counter({
      name: "troodon_http_requests_total",
      help: "requests that have ended",
      labelNames: ["route", "method", "status"],
      registers,
    }),
    duration: histogram("http_request_duration_seconds", "from a request to its last byte", {
      labelNames: ["route"],
      buckets: REQUEST_BUCKETS,
    }),
    answers: new Counter({
      name: "troodon_answers_total",
      help: "answers that have ended, by reason",
      labelNames: ["model", "reason"],
      registers,
    }),
    first: histogram("first_token_seconds", "from the wish for an answer to its first token", {
      labelNames: ["model"],
      buckets: FIRST_BUCKETS,
    }),
    between: histogram("between_tokens_seconds", "from a token to the next", {
      labelNames: ["model"],
      buckets: TOKEN_BUCKETS,
    }),
    speed: histogram("tokens_per_second", "speed of an answer after its first token", {
      labelNames: ["model"],
      buckets: SPEED_BUCKETS,
    }),
  };
}

function engineMetrics(
  prom: PromClient,
  registry: Registry,
): { set(figures: EngineFigures): void } {
  const registers = [registry];
  const listed = OF_MODELS.map(({ name, help, kind, value }) => ({
    metric: new prom[kind]({ name: `troodon_${name}`, help, labelNames: ["model"], registers }),
    value,
  }));
  const queued = OF_QUEUE.map(({ name, help, value }) => ({
    metric: new prom.Gauge({ name: `troodon_${name}`, help, registers }),
    value,
  }));
  const busy: Counter = new prom.Counter({
    name: "troodon_engine_busy_seconds_total",
    help: "processor time of the thread that computes",
    registers,
  });
  return {
    set({ models, queue, busyMs }) {
      for (const { metric, value } of listed) {
        metric.reset();
        for (const figures of models) {
          // A counter is set anew to what the engine has counted.
          (metric as Gauge).inc({ model: figures.name }, value(figures));
        }
      }
      for (const { metric, value } of queued) metric.set(queue ? value(queue) : 0);
      busy.reset();
      if (busyMs !== undefined) busy.inc(busyMs / 1000);
    },
  };
}
