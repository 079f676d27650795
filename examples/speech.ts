// Says where in a WAV file somebody speaks.
//
//   deno run --allow-read --allow-write --allow-env --allow-run=pip examples/speech.ts FILE.wav

import { detectSpeech, loadGraph, pullModel, readWav } from "../mod.ts";

const [file] = Deno.args;
if (file === undefined) throw new TypeError("Name a WAV file of 8 or 16 kHz");
const { samples, rate } = readWav(await Deno.readFile(file), file);
if (rate !== 8000 && rate !== 16000) {
  throw new TypeError(`${file} has ${rate} Hz: convert to 16000`);
}

using graph = await loadGraph(await pullModel("silero-vad"));
const { segments } = await detectSpeech(graph, samples, { rate });
for (const { start, end } of segments) {
  console.log(`${(start / rate).toFixed(2)} s to ${(end / rate).toFixed(2)} s`);
}
