// Several answers at once on one model. They join the same steps by themselves, and each is what it would be alone: a step
// for eight takes little longer than one for one, because reading the weights is what takes time.
//
//   deno run --allow-read --allow-env examples/batch.ts [MODEL]

import { generate, load } from "../mod.ts";

const PROMPTS = [
  "The best thing about the sea is",
  "The worst thing about the sea is",
  "A mountain is higher than",
  "In winter the days are",
];

using model = await load(Deno.args[0] ?? "smollm2-135m", { sessions: PROMPTS.length });
const start = performance.now();
// Whoever is in a hurry comes first where not all can.
const first = generate(model, "Now:", { maxTokens: 8, priority: "high" }).text();
const together = generate(model, PROMPTS, { maxTokens: 24, temperature: 0.8, topK: 40 });
const answers = await Promise.all(together.map(({ result }) => result));
const seconds = (performance.now() - start) / 1000;

console.log("Now:" + (await first).replaceAll("\n", " "));
let count = 0;
for (const [index, { text, ids }] of answers.entries()) {
  console.log(PROMPTS[index] + text.replaceAll("\n", " "));
  count += ids.length;
}
console.log(`${count} tokens in ${seconds.toFixed(2)} s`);
