// A model beside a user interface: in a worker, so that the thread that draws computes nothing, and with a low priority,
// which cuts its work into pieces of 8 ms, so that a GPU draws in between.
//
//   deno run --allow-read --allow-env examples/beside_ui.ts [MODEL]
//
// A timer stands for what is drawn; how late it gets is printed in the end.

import { generate, load } from "../mod.ts";

const FRAME_MS = 16;

if ("WorkerGlobalScope" in globalThis) {
  addEventListener("message", async ({ data: path }: MessageEvent<string>) => {
    {
      using model = await load(path, { priority: "low", maxSubmitMs: 8 });
      const answer = generate(model, "Once upon a time", { maxTokens: 60, ignoreEos: true });
      for await (const { text } of answer) self.postMessage({ text });
    }
    // The model is gone: now the process may end.
    self.postMessage({ isDone: true });
  });
} else {
  const worker = new Worker(import.meta.url, { type: "module" });
  const { promise: done, resolve } = Promise.withResolvers<void>();
  worker.onmessage = ({ data: { text, isDone } }) => {
    if (text) Deno.stdout.writeSync(new TextEncoder().encode(text));
    if (isDone) resolve();
  };
  worker.postMessage(Deno.args[0] ?? "smollm2-135m");
  const gaps: number[] = [];
  let last = performance.now();
  const frames = setInterval(() => {
    const now = performance.now();
    gaps.push(now - last);
    last = now;
  }, FRAME_MS);
  await done;
  clearInterval(frames);
  gaps.sort((a, b) => a - b);
  const late = gaps[Math.floor(0.99 * gaps.length)] ?? FRAME_MS;
  console.log(`\n99 of 100 frames came within ${late.toFixed(0)} ms; one takes ${FRAME_MS}`);
  // Ends the worker, too. One that is ended by itself takes the GPU's driver down, which a process must not do meanwhile.
  Deno.exit();
}
