// The same prompt under different ways of choosing tokens. A seed makes each of them repeatable.
//
//   deno run --allow-read --allow-env examples/samplers.ts [MODEL]

import { generate, load, type SamplerOptions } from "../mod.ts";

const WAYS: Readonly<Record<string, SamplerOptions>> = {
  "greedy": {},
  "temperature and top-p": { temperature: 0.8, topP: 0.95, seed: 7 },
  "min-p, temperature last": {
    temperature: 1.2,
    minP: 0.1,
    samplers: ["min_p", "temperature"],
    seed: 7,
  },
  "mirostat 2": { mirostat: 2, mirostatTau: 4, seed: 7 },
  "no word twice": { frequencyPenalty: 1, presencePenalty: 1 },
};

using model = await load(Deno.args[0] ?? "smollm2-135m");
for (const [name, options] of Object.entries(WAYS)) {
  const text = await generate(model, "The best thing about the sea is", {
    ...options,
    maxTokens: 24,
  }).text();
  console.log(`${name}:${text.replaceAll("\n", " ")}`);
}

// What the model itself thought of its first choices.
for await (const { tokens } of generate(model, "2 + 2 =", { maxTokens: 2, logprobs: 3 })) {
  for (const { alternatives = [] } of tokens) {
    const shown = alternatives.map(({ id, logProbability }) =>
      `${JSON.stringify(model.tokenizer.decode([id]))} ${
        (100 * Math.exp(logProbability)).toFixed(1)
      } %`
    );
    console.log(shown.join("  "));
  }
}
