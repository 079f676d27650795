// Compares sentences by a session's state after their last token. A language model is no embedding model,
// but its state is a usable fingerprint of a text; the session keeps what sentences have in common.
//
//   deno run --allow-read --allow-env examples/embeddings.ts [MODEL]

import { load } from "../mod.ts";

const SENTENCES = [
  "The cat sleeps on the sofa.",
  "A kitten is napping on the couch.",
  "Interest rates rose by half a percent.",
];

using model = await load(Deno.args[0] ?? "smollm2-135m", { embeddings: true });
using session = model.createSession();

async function embed(text: string): Promise<Float32Array> {
  await session.sync(model.tokenizer.encode(text));
  const state = session.embedding().slice(); // the session's own array is overwritten by the next step
  const norm = Math.hypot(...state);
  return state.map((value) => value / norm);
}

const states: Float32Array[] = [];
for (const sentence of SENTENCES) states.push(await embed(sentence));
for (const [i, a] of states.entries()) {
  const row = states.map((b) => a.reduce((sum, value, k) => sum + value * b[k]!, 0).toFixed(3));
  console.log(`${row.join("  ")}  ${SENTENCES[i]}`);
}
