// Prints a text while it is made, then how fast that was.
//
//   deno run --allow-read --allow-env examples/streaming.ts [MODEL] [PROMPT]

import { generate, load } from "../mod.ts";

const [name = "smollm2-135m", prompt = "Once upon a time, a small dinosaur"] = Deno.args;
using model = await load(name);
const generation = generate(model, prompt, { maxTokens: 80, stop: ["\n\n"] });

const encoder = new TextEncoder();
await Deno.stdout.write(encoder.encode(prompt));
for await (const { text } of generation) await Deno.stdout.write(encoder.encode(text));

const { finishReason, stats } = await generation.result;
console.log(
  `\n[${finishReason}; first token after ${stats.firstTokenMs.toFixed(0)} ms, ` +
    `${stats.decodePerSecond.toFixed(1)} tokens a second]`,
);
