// Finds the passages of a folder of texts that are about a question.
//
//   deno run --allow-read --allow-env examples/folder_search.ts FOLDER "What bends light?"

import { embed, load } from "../mod.ts";

const [folder = ".", question = "What is this about?"] = Deno.args;

/** Paragraphs of a file, joined until they are some hundred words long. */
function passagesOf(text: string): string[] {
  const passages: string[] = [];
  for (const paragraph of text.split(/\n\s*\n/)) {
    const last = passages.at(-1);
    if (last !== undefined && last.length + paragraph.length < 800) {
      passages[passages.length - 1] = `${last}\n${paragraph}`;
    } else passages.push(paragraph);
  }
  return passages.filter((passage) => passage.trim() !== "");
}

const found: { readonly file: string; readonly text: string }[] = [];
for await (const { name, isFile } of Deno.readDir(folder)) {
  if (!isFile || !/\.(txt|md)$/.test(name)) continue;
  const text = await Deno.readTextFile(`${folder}/${name}`);
  for (const passage of passagesOf(text)) found.push({ file: name, text: passage });
}

// Vectors have length 1: their product is the cosine.
using model = await load("minilm");
const [wanted, ...vectors] = await embed(model, [question, ...found.map(({ text }) => text)]);
const scored = vectors.map((vector, i) => ({
  ...found[i]!,
  score: vector.reduce((sum, value, k) => sum + value * wanted![k]!, 0),
}));
for (const { file, text, score } of scored.sort((a, b) => b.score - a.score).slice(0, 3)) {
  console.log(`${score.toFixed(3)}  ${file}\n  ${text.replace(/\s+/g, " ").slice(0, 160)}…`);
}
