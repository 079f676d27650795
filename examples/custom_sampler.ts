// A sampling step of one's own, between those that are there: words of the answer in no letter but lower case.
//
//   deno run --allow-read --allow-env examples/custom_sampler.ts [MODEL]

import { generate, load, type SamplingFunction } from "../mod.ts";

using model = await load(Deno.args[0] ?? "smollm2-135m");
const { tokenizer } = model;

const lowerCase: SamplingFunction = ({ ids, logits }) => {
  const isAllowed = (id: number) => !/\p{Lu}/u.test(tokenizer.decode([id]));
  const allowed = Array.from(ids, isAllowed);
  // At least one candidate has to stay.
  if (allowed.includes(true)) allowed.forEach((is, i) => is || (logits[i] = -Infinity));
};

const answer = generate(model, "The best thing about the sea is", {
  samplers: ["top_k", lowerCase, "temperature"],
  ...{ topK: 40, temperature: 0.9, seed: 7, maxTokens: 32 },
});
for await (const { text } of answer) await Deno.stdout.write(new TextEncoder().encode(text));
console.log();
