// What is in a picture: the browser decodes it, the model's labels come best first.

import type { LabelScore } from "../../engine/platform/browser/mod.ts";
import { element, modelOf, onFile, showList, shown, showProgress, startEngine } from "./client.ts";

const order = startEngine();

async function classify(file: File): Promise<void> {
  const bitmap = await createImageBitmap(file), { width, height } = bitmap;
  const canvas = Object.assign(element<HTMLCanvasElement>("shown"), { width, height });
  const context = canvas.getContext("2d")!;
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const picture = { width, height, channels: 4, data: new Uint8Array(data.buffer) } as const;
  const labels = await order({ kind: "classify", picture }) as LabelScore[];
  showList(labels.map(({ label, probability }) => `${probability.toFixed(3)} ${label}`));
}

await shown(order(modelOf("/models/picture/"), { onProgress: showProgress }));
onFile(classify);
