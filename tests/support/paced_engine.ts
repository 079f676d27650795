// An engine whose tokens follow from the seed and their index, one at each step that a test allows: what a queue does
// with answers is seen without a model, and stops where the test wants it to.

import type { AnswerEvent, AnswerJob, Engine, EngineCalls } from "../../engine/serve/engine.ts";
import { JobError } from "../../engine/serve/job_error.ts";

/** The answer to a job, as one list of token ids. */
export function pacedIds({ options: { seed = 0, maxTokens = 8 } }: AnswerJob): number[] {
  return Array.from({ length: maxTokens }, (_, i) => (seed * 7919 + i * i * 31) % 1000);
}

/** The engine. */
export class PacedEngine implements Engine {
  readonly models: readonly string[];
  /** Jobs that it was given. */
  readonly jobs: AnswerJob[] = [];
  /** Answers that were left before their end. */
  left = 0;
  #steps = Infinity;
  #wake = Promise.withResolvers<void>();

  constructor(models: readonly string[] = ["tiny"]) {
    this.models = models;
  }

  /** Allows so many steps more, of all answers together; Infinity: all. */
  allow(steps: number): void {
    this.#steps = steps;
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  async *answer(job: AnswerJob, signal: AbortSignal): AsyncGenerator<AnswerEvent, void, void> {
    this.jobs.push(job);
    let isWhole = false;
    try {
      if (job.options.temperature === -1) {
        throw new JobError({
          status: 400,
          message: "Cannot use temperature -1",
          param: "temperature",
        });
      }
      yield { kind: "start", promptTokens: 3, seed: job.options.seed ?? 0 };
      const ids = pacedIds(job);
      for (let at = 0; at < ids.length; at++) {
        while (this.#steps <= 0 && !signal.aborted) await this.#next(signal);
        if (signal.aborted) return;
        this.#steps--;
        // Parts are cut otherwise by every engine that goes on.
        const count = job.options.forced && at % 3 === 0 ? Math.min(2, ids.length - at) : 1;
        const tokens = ids.slice(at, at + count).map((id) => ({ id }));
        yield { kind: "part", at, tokens, text: tokens.map(({ id }) => `${id} `).join("") };
        at += count - 1;
      }
      isWhole = true;
      yield {
        ...{ kind: "end", finishReason: "length", toolCalls: [], promptTokens: 3, cachedTokens: 0 },
        ...{ answerTokens: ids.length, firstTokenMs: 1, decodePerSecond: 1 },
      };
    } finally {
      if (!isWhole) this.left++;
    }
  }

  call<K extends keyof EngineCalls>(
    kind: K,
    argument: EngineCalls[K]["argument"],
  ): Promise<EngineCalls[K]["result"]> {
    const results: Partial<{ [C in keyof EngineCalls]: () => EngineCalls[C]["result"] }> = {
      models: () =>
        this.models.map((name) => ({ name, tasks: ["answer"], created: 1, isLoaded: true })),
      figures: () => ({
        models: this.models.map((name) => ({
          ...{ name, running: 1, waiting: 0, steps: 10, rows: 20, promptTokens: 3 },
          ...{ cachedTokens: 1, answerTokens: 5, proposedTokens: 0, acceptedTokens: 0 },
          ...{ cacheRows: 64, cacheCapacity: 128, memoryBytes: 1000 },
        })),
      }),
      embed: () => {
        const { input } = argument as EngineCalls["embed"]["argument"];
        const vectors = input.map((text) => Float32Array.of(text.length, 0.1, -0));
        return { vectors, promptTokens: input.length };
      },
    };
    return Promise.resolve(results[kind]!() as EngineCalls[K]["result"]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  async #next(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => resolve(), { once: true });
    await Promise.race([this.#wake.promise, promise]);
  }
}
