// Orders documents by how well they answer a question, with a cross-encoder.
//
//   deno run --allow-read --allow-env examples/rerank.ts [MODEL]
//
// The model comes once from the hub (91 MB): deno task troodon pull ms-marco-minilm

import { load, rerank } from "../mod.ts";

const DOCUMENTS = [
  "Tokyo has been the capital of Japan since 1868.",
  "Cherry trees blossom in April.",
  "Kyoto was the seat of the emperor for a thousand years.",
];

using model = await load(Deno.args[0] ?? "ms-marco-minilm");
const ranked = await rerank(model, "What is the capital of Japan?", DOCUMENTS);
for (const { index, score } of ranked) console.log(`${score.toFixed(3)}  ${DOCUMENTS[index]}`);
