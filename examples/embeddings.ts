// Compares sentences by their vectors.
//
//   deno run --allow-read --allow-env examples/embeddings.ts [MODEL]
//
// Any encoder will do (minilm, bge-small-en), and any language model: a decoder's vector is its last state.

import { embed, load } from "../mod.ts";

const SENTENCES = [
  "The cat sleeps on the sofa.",
  "A kitten is napping on the couch.",
  "Interest rates rose by half a percent.",
];

using model = await load(Deno.args[0] ?? "minilm", { embeddings: true });
const vectors = await embed(model, SENTENCES);
for (const [i, a] of vectors.entries()) {
  const row = vectors.map((b) => a.reduce((sum, value, k) => sum + value * b[k]!, 0).toFixed(3));
  console.log(`${row.join("  ")}  ${SENTENCES[i]}`);
}
