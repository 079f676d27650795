// The engine, in a worker of the page: it may wait there, and the page stays awake. One order after another.

import {
  chat,
  type ChatMessage,
  classifyImage,
  DeviceError,
  embed,
  fetchFile,
  type FetchFileProgress,
  fetchFolder,
  generate,
  kernelReport,
  load,
  type Model,
  transcribe,
} from "../../engine/platform/browser/mod.ts";
import type { News, Order } from "./messages.ts";

type Loading = Order & { readonly kind: "load" };

let model: Model | undefined;
let loaded: Loading | undefined;
let messages: ChatMessage[] = [];
let last: Promise<void> = Promise.resolve();

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<{ readonly id: number; readonly order: Order }>) => void;
  postMessage(news: News): void;
};

scope.onmessage = ({ data: { id, order } }) => {
  last = last.then(async () => {
    try {
      scope.postMessage({ id, kind: "done", value: await obey(id, order) });
    } catch (error) {
      scope.postMessage({ id, kind: "failed", message: (error as Error).message });
    }
  });
};

async function obey(id: number, order: Order): Promise<unknown> {
  switch (order.kind) {
    case "load":
      return await open(id, order);
    case "chat":
      return await answer(id, order.text, order.maxTokens);
    case "embed":
      return await embed(opened(), [...order.texts]);
    case "classify":
      return (await classifyImage(opened(), order.picture, { top: 5 }))[0];
    case "transcribe":
      return await writeDown(id, order.samples);
    case "check": {
      const { device, ops } = order;
      const onProgress = (share: number) =>
        scope.postMessage({ id, kind: "progress", text: "checking kernels", share });
      return await kernelReport({ device, onProgress, ...ops && { ops } });
    }
  }
}

/** Fetches what is missing and loads. @returns What is to be said about it. */
async function open(id: number, order: Loading): Promise<readonly string[]> {
  model?.[Symbol.dispose]();
  const onProgress = ({ phase, received, total }: FetchFileProgress) =>
    scope.postMessage({ id, kind: "progress", text: phase, share: received / total });
  const path = order.url.endsWith("/")
    ? await fetchFolder(order.url, { onProgress })
    : await fetchFile(order.url, { ...order.sha256 && { sha256: order.sha256 }, onProgress });
  model = await load(path, { device: order.device ?? "auto" });
  [loaded, messages] = [order, []];
  return [`computed on ${model.device}`, ...model.notes];
}

function opened(): Model {
  if (!model) throw new Error("Load a model first");
  return model;
}

async function answer(id: number, text: string, maxTokens = 200): Promise<readonly number[]> {
  messages.push({ role: "user", content: text });
  try {
    const options = { maxTokens, temperature: 0 };
    // A model that was not taught to talk goes on with the text.
    const generation = opened().chatTemplate
      ? chat(opened(), messages, options)
      : generate(opened(), text, options);
    for await (const { text } of generation) scope.postMessage({ id, kind: "piece", text });
    const { text: whole, ids } = await generation.result;
    messages.push({ role: "assistant", content: whole });
    return ids;
  } catch (error) {
    messages.pop();
    // A GPU can go away at any time: the model is on the disk, and the CPU stays.
    if (!(error instanceof DeviceError) || loaded?.device === "wasm" || !loaded) throw error;
    const [earlier, reason] = [messages, error.message];
    scope.postMessage({ id, kind: "progress", text: `${reason}; going on without it`, share: 0 });
    await open(id, { ...loaded, device: "wasm" });
    messages = earlier;
    return await answer(id, text, maxTokens);
  }
}

/** Segments go out as they come. @returns The language. */
async function writeDown(id: number, samples: Float32Array): Promise<string> {
  const transcription = transcribe(opened(), samples);
  for await (const { start, text } of transcription) {
    scope.postMessage({ id, kind: "piece", text: `${start.toFixed(1)} s: ${text}\n` });
  }
  return (await transcription.result).language;
}
