// Embeddings and search by meaning on an edge platform: one file of code, a model that is fetched once an isolate, no
// permission to read, no worker, one thread. `build.ts` makes the file; the address of the model is put in there.

import {
  embed,
  fileOfBytes,
  load,
  type Model,
  mount,
} from "../../engine/platform/browser/small.ts";

/** A GGUF file, or the folder of a checkpoint: then it ends with a slash. */
declare const MODEL_URL: string;

/** Files of a checkpoint; the first three have to be there. */
const CHECKPOINT = [
  ...["model.safetensors", "config.json", "tokenizer.json"],
  ...["tokenizer_config.json", "modules.json", "sentence_bert_config.json"],
];
const NEEDED = 3;

/** Most texts of a request: a platform gives each some CPU time. */
const MOST_TEXTS = 64;

/** Fetches a file and makes it known as `path`. */
async function take(url: URL | string, path: string, isNeeded = true): Promise<void> {
  const response = await fetch(url);
  if (response.ok) return mount(path, fileOfBytes(new Uint8Array(await response.arrayBuffer())));
  await response.body?.cancel();
  const name = new URL(url).pathname.split("/").at(-1);
  if (isNeeded) throw new Error(`${name}: the server answers ${response.status}`);
}

async function fetchModel(): Promise<string> {
  if (!MODEL_URL.endsWith("/")) {
    await take(MODEL_URL, "/model.gguf");
    return "/model.gguf";
  }
  const files = CHECKPOINT.map((name, i) =>
    take(new URL(name, MODEL_URL), `/model/${name}`, i < NEEDED)
  );
  await Promise.all(files);
  return "/model";
}

/** Of an isolate's first answer: what it waited for, as the header Server-Timing has it. */
let timing: string | undefined;

async function open(): Promise<Model> {
  const begin = performance.now();
  const path = await fetchModel();
  const start = performance.now();
  const model = await load(path, { device: "wasm", threads: 1 });
  const [fetchMs, loadMs] = [start - begin, performance.now() - start].map((ms) => ms.toFixed(1));
  timing = `fetch;dur=${fetchMs}, load;dur=${loadMs}`;
  return model;
}

let opened: Promise<Model> | undefined;

/** Opens the model once; what failed is tried again with the next request. */
async function vectorsOf(texts: readonly string[]): Promise<Float32Array[]> {
  opened ??= open();
  opened.catch(() => opened = undefined);
  return await embed(await opened, [...texts]);
}

function textsOf(value: unknown): readonly string[] {
  const isRight = Array.isArray(value) && value.length > 0 && value.length <= MOST_TEXTS &&
    value.every((one) => typeof one === "string" && one !== "");
  if (isRight) return value;
  throw new TypeError(`texts: give 1 to ${MOST_TEXTS} texts that are not empty`);
}

const ROUTES: Readonly<Record<string, (body: Record<string, unknown>) => Promise<unknown>>> = {
  "/embed": async ({ texts }) => (await vectorsOf(textsOf(texts))).map((vector) => [...vector]),
  "/search": async ({ query, texts }) => {
    const lines = textsOf(texts);
    const [asked, ...vectors] = await vectorsOf([...textsOf([query]), ...lines]);
    return lines.map((text, i) => ({
      text,
      score: asked!.reduce((sum, x, k) => sum + x * vectors[i]![k]!, 0),
    })).sort((a, b) => b.score - a.score);
  },
};

/** Answers `POST /embed {texts}` and `POST /search {query, texts}`. */
export default {
  async fetch(request: Request): Promise<Response> {
    const route = ROUTES[new URL(request.url).pathname];
    if (!route || request.method !== "POST") {
      return Response.json({ error: "POST /embed or /search" }, { status: 404 });
    }
    try {
      const response = Response.json(await route(await request.json()));
      if (timing !== undefined) response.headers.set("server-timing", timing);
      timing = undefined;
      return response;
    } catch (error) {
      const status = error instanceof TypeError || error instanceof SyntaxError ? 400 : 503;
      return Response.json({ error: (error as Error).message }, { status });
    }
  },
};
