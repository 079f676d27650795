// A model in a worker: the main thread stays free, and stops an answer whenever it likes.
//
//   deno run --allow-read --allow-env examples/worker.ts
//
// The same file is the script and its worker. Signals do not cross threads: a message does.

import { generate, load } from "../mod.ts";

interface Scope {
  onmessage: ((event: MessageEvent) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
}

if ("WorkerGlobalScope" in globalThis) {
  const scope = globalThis as unknown as Scope;
  using model = await load("smollm2-135m");
  const stop = new AbortController();
  scope.onmessage = () => stop.abort();
  scope.postMessage({ ready: model.info.name });
  const options = { maxTokens: 500, ignoreEos: true, signal: stop.signal };
  const answer = generate(model, "Once upon a time", options);
  for await (const { text } of answer) scope.postMessage({ text });
  scope.postMessage({ done: (await answer.result).finishReason });
  scope.close();
} else {
  const worker = new Worker(import.meta.url, { type: "module" });
  let pieces = 0, turns = 0;
  // What else a program does: it goes on beside the model.
  const timer = setInterval(() => turns++, 10);
  const { promise, resolve } = Promise.withResolvers<string>();
  worker.onmessage = ({ data: { ready, text, done } }) => {
    if (ready) console.log(`${ready} is ready`);
    if (text) Deno.stdout.writeSync(new TextEncoder().encode(text));
    if (text && ++pieces === 20) worker.postMessage("stop");
    if (done) resolve(done);
  };
  console.log(
    `\nended by ${await promise}; the main thread took ${turns > 0 ? "many turns" : "none"}`,
  );
  clearInterval(timer);
}
