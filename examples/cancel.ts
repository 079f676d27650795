// Three ways to end an answer early: a deadline, a signal from elsewhere, and leaving the loop. What was
// made so far is kept, and the model is free for the next call at once.
//
//   deno run --allow-read --allow-env examples/cancel.ts [MODEL]

import { generate, load } from "../mod.ts";

using model = await load(Deno.args[0] ?? "smollm2-135m");
const prompt = "Numbers in English: one, two, three,";
const options = { maxTokens: 500, ignoreEos: true };

// A deadline: the result says that it was cut.
const timed = await generate(model, prompt, { ...options, signal: AbortSignal.timeout(500) })
  .result;
console.log(`${timed.finishReason} after ${timed.ids.length} tokens:${timed.text.slice(0, 60)}…`);

// A signal, here from a count of tokens; elsewhere a closed connection or Ctrl-C.
const controller = new AbortController();
let count = 0;
for await (const _ of generate(model, prompt, { ...options, signal: controller.signal })) {
  if (++count === 5) controller.abort();
}
console.log(`aborted after ${count} tokens`);

// Leaving the loop.
for await (const { text } of generate(model, prompt, options)) {
  if (text.includes(",")) break;
}
console.log("left at the first comma");
