// What is said in a sound: the browser decodes and resamples it, segments are shown as they come.

import { element, modelOf, onFile, shown, showProgress, startEngine } from "./client.ts";

const order = startEngine();

/** Samples a second that speech models hear. */
const RATE = 16000;

async function writeDown(file: File): Promise<void> {
  const bytes = await file.arrayBuffer();
  const sound = await new OfflineAudioContext(1, RATE, RATE).decodeAudioData(bytes);
  const said = element("said");
  said.textContent = "";
  const onPiece = (text: string) => void (said.textContent += text);
  // A copy: the browser's array is not to be moved to a worker.
  const samples = sound.getChannelData(0).slice();
  said.lang = await order({ kind: "transcribe", samples }, { onPiece }) as string;
}

await shown(order(modelOf("/models/speech/"), { onProgress: showProgress }));
onFile(writeDown);
