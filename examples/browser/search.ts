// Search by meaning over lines of text, in this page.

import { element, modelOf, showList, shown, showProgress, startEngine } from "./client.ts";

const order = startEngine();
const texts = element<HTMLTextAreaElement>("texts");

const embed = async (lines: readonly string[]): Promise<Float32Array[]> =>
  await order({ kind: "embed", texts: lines }) as Float32Array[];

const dot = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, x, i) => sum + x * b[i]!, 0);

async function search(query: string): Promise<void> {
  const lines = texts.value.split("\n").filter((line) => line.trim() !== "");
  const [asked, ...vectors] = await embed([query, ...lines]);
  const found = lines.map((line, i) => ({ line, score: dot(asked!, vectors[i]!) }))
    .sort((a, b) => b.score - a.score);
  showList(found.map(({ line, score }) => `${score.toFixed(3)} ${line}`));
}

element<HTMLFormElement>("form").onsubmit = (event) => {
  event.preventDefault();
  void shown(search(element<HTMLInputElement>("text").value));
};

await shown(order(modelOf("/models/embed.gguf"), { onProgress: showProgress }));
element<HTMLInputElement>("text").disabled = false;
