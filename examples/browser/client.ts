// A page's side of the engine: orders that are promises, and what elements show meanwhile.

import type { News, Order } from "./messages.ts";

/** What is heard before an order is done. */
export interface Listener {
  readonly onPiece?: (text: string) => void;
  readonly onProgress?: (text: string, share: number) => void;
}

/** Starts the engine's worker. */
export function startEngine(): (order: Order, listener?: Listener) => Promise<unknown> {
  const worker = new Worker(new URL("./engine.js", import.meta.url), { type: "module" });
  const waiting = new Map<number, Listener & PromiseWithResolvers<unknown>>();
  let ids = 0;
  worker.onmessage = ({ data: news }: MessageEvent<News>) => {
    const one = waiting.get(news.id)!;
    if (news.kind === "piece") return one.onPiece?.(news.text);
    if (news.kind === "progress") return one.onProgress?.(news.text, news.share);
    waiting.delete(news.id);
    if (news.kind === "done") one.resolve(news.value);
    else one.reject(new Error(news.message));
  };
  worker.onerror = ({ message }) => {
    for (const { reject } of waiting.values()) reject(new Error(message));
  };
  return (order, listener = {}) => {
    const id = ++ids;
    const result = Promise.withResolvers<unknown>();
    waiting.set(id, { ...listener, ...result });
    worker.postMessage({ id, order });
    return result.promise;
  };
}

/** An element of the page. */
export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** Shows how far something is. */
export function showProgress(text: string, share: number): void {
  element("state").textContent = `${text} ${Math.round(100 * share)} %`;
}

/** Shows what came of something in the line below, also where it failed. */
export async function shown<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    const value = await work;
    element("state").textContent = Array.isArray(value) && typeof value[0] === "string"
      ? value.join("; ")
      : "";
    return value;
  } catch (error) {
    element("state").textContent = (error as Error).message;
    return undefined;
  }
}

/** Shows lines in the list of the page. */
export function showList(lines: readonly string[]): void {
  element("found").replaceChildren(...lines.map((line) => {
    const item = document.createElement("li");
    item.textContent = line;
    return item;
  }));
}

/** Does something with each file that is chosen; until then none can be. */
export function onFile(work: (file: File) => Promise<void>): void {
  const input = element<HTMLInputElement>("file");
  input.onchange = async () => {
    input.disabled = true;
    await shown(work(input.files![0]!));
    input.disabled = false;
  };
  input.disabled = false;
}

/** The model that an address names (`?model=…&device=wasm`), or another one. */
export function modelOf(other: string): Order & { readonly kind: "load" } {
  const query = new URLSearchParams(location.search);
  const device = query.get("device");
  return {
    kind: "load",
    url: new URL(query.get("model") ?? other, location.href).href,
    ...(device === "wasm" || device === "gpu") && { device },
  };
}
