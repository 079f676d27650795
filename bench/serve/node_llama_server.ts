// node-llama-cpp behind the completions endpoint, for machines without llama.cpp's own server: no more than what load.ts
// asks for. Started with --no-lock and --no-config, so nobody but a bench ever downloads it.
//
// deno run -A --no-lock --no-config bench/serve/node_llama_server.ts MODEL PORT THREADS STREAMS CACHE_TOKENS

const PACKAGE = "npm:node-llama-cpp@3.21.1";

interface Sequence {
  clearHistory(): Promise<void>;
  evaluate(
    ids: readonly number[],
    options: { readonly temperature: number; readonly yieldEogToken: boolean },
  ): AsyncIterable<number>;
}

interface Package {
  readonly LlamaLogLevel: { readonly error: string };
  getLlama(options: Record<string, unknown>): Promise<{
    loadModel(options: { readonly modelPath: string }): Promise<{
      detokenize(ids: readonly number[]): string;
      createContext(options: Record<string, unknown>): Promise<{ getSequence(): Sequence }>;
    }>;
  }>;
}

const [modelPath, port, threads, streams, cacheTokens] = Deno.args;
const { getLlama, LlamaLogLevel } = await import(PACKAGE) as Package;
const llama = await getLlama({
  ...{ gpu: false, build: "never", logLevel: LlamaLogLevel.error },
  maxThreads: Number(threads),
});
const model = await llama.loadModel({ modelPath: modelPath! });
const context = await model.createContext({
  ...{ contextSize: Math.ceil(Number(cacheTokens) / Number(streams)), batchSize: 512 },
  ...{ threads: Number(threads), sequences: Number(streams) },
});
const idle = Array.from({ length: Number(streams) }, () => context.getSequence());
const waiting: ((sequence: Sequence) => void)[] = [];

async function* answer(prompt: readonly number[], count: number): AsyncGenerator<string> {
  const sequence = idle.pop() ?? await new Promise<Sequence>((resolve) => waiting.push(resolve));
  try {
    await sequence.clearHistory();
    let taken = 0;
    for await (const id of sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
      // What reads as nothing counts as well: the generator asks for so many tokens.
      yield JSON.stringify({ choices: [{ text: model.detokenize([id]) || " " }] });
      if (++taken === count) break;
    }
    yield JSON.stringify({ choices: [], usage: { completion_tokens: taken } });
    yield "[DONE]";
  } finally {
    const next = waiting.shift();
    if (next) next(sequence);
    else idle.push(sequence);
  }
}

Deno.serve({ port: Number(port), hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
  if (request.method !== "POST") return Response.json({ status: "ok" });
  const { prompt, max_tokens: count } = await request.json();
  const events = answer(prompt, count);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await events.next();
      if (done) controller.close();
      else controller.enqueue(new TextEncoder().encode(`data: ${value}\n\n`));
    },
    cancel: () => void events.return(undefined),
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
});
console.log("ready");
