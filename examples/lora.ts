// One model with an adapter that counts more or less: LoRA files of PEFT (a folder) or llama.cpp (GGUF).
//
//   deno run --allow-read --allow-env examples/lora.ts MODEL ADAPTER

import { generate, load } from "../mod.ts";

const [path = "smollm2-135m", adapter = "adapter.gguf"] = Deno.args;
using model = await load(path, { adapters: [{ path: adapter, name: "own" }] });

// The scale is chosen for each answer: 0 is the model without it.
for (const own of [0, 0.5, 1]) {
  const options = { maxTokens: 24, temperature: 0, ignoreEos: true, adapters: { own } };
  console.log(`${own}: ${await generate(model, "The sea is", options).text()}`);
}
