// The engine in a worker: reads a prompt and answers, again and again, until it is told to stop.

import { generate, load, type LoadOptions } from "../../mod.ts";

/** What a worker is started with. */
export interface WorkerTask {
  readonly path: string;
  readonly options: LoadOptions;
  /** Prompts of one answer each, so many that texts are never found in the cache. */
  readonly prompts: readonly (readonly number[])[];
  readonly tokens: number;
}

const scope = globalThis as unknown as {
  onmessage: ((event: MessageEvent<WorkerTask>) => void) | null;
  postMessage(message: unknown): void;
};

scope.onmessage = async ({ data: { path, options, prompts, tokens } }) => {
  using model = await load(path, options);
  const answer = (prompt: readonly number[]) =>
    generate(model, [...prompt], { maxTokens: tokens, temperature: 0, ignoreEos: true }).result;
  await answer(prompts[0]!);
  scope.postMessage("ready");
  const start = performance.now();
  for (const prompt of prompts.slice(1)) await answer(prompt);
  scope.postMessage(performance.now() - start);
};
