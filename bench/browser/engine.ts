// The engine in a worker of the page that `deno task bench browser` opens: loads the model that the page's server has, and
// answers how long the two phases of a completion took.

import {
  fileOfBytes,
  generate,
  load,
  type Model,
  mount,
} from "../../engine/platform/browser/mod.ts";

interface Loading {
  readonly threads: number;
  readonly context: number;
}

interface Completion {
  readonly prompt: string;
  readonly count: number;
}

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<Loading | Completion>) => void;
  postMessage(reply: unknown): void;
};
let model: Model | undefined;

async function open({ threads, context }: Loading) {
  const start = performance.now();
  const response = await fetch("/model");
  mount("/model.gguf", fileOfBytes(new Uint8Array(await response.arrayBuffer())));
  model = await load("/model.gguf", { device: "wasm", threads, contextLength: context });
  return { ms: performance.now() - start, notes: model.notes };
}

async function complete({ prompt, count }: Completion) {
  const options = { maxTokens: count, temperature: 0, ignoreEos: true };
  const { stats } = await generate(model!, prompt, options).result;
  return {
    prefill: stats.prefillPerSecond,
    decode: stats.decodePerSecond,
    tokens: stats.prefillTokens,
  };
}

scope.onmessage = async ({ data: order }) => {
  try {
    scope.postMessage(await ("threads" in order ? open(order) : complete(order)));
  } catch (error) {
    scope.postMessage({ error: (error as Error).message });
  }
};
