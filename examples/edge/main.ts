// Embeddings and search by meaning on an edge platform: one file of code, a model that is fetched once an isolate, no
// permission to read, no worker, one thread. `build.ts` makes the file; the address of the model is put in there.

import {
  fileOfBytes,
  loadGraph,
  mount,
  sentenceVectors,
  tokenizerFromJson,
} from "../../engine/platform/browser/small.ts";

/** Folder with model.onnx (an encoder) and tokenizer.json; ends with a slash. */
declare const MODEL_URL: string;

/** Most texts of a request: a platform gives each some CPU time. */
const MOST_TEXTS = 64;

type Embed = (texts: readonly string[]) => Promise<Float32Array[]>;

async function fetchBytes(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(new URL(name, MODEL_URL));
  if (!response.ok) throw new Error(`${name}: the server answers ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function open(): Promise<Embed> {
  const [model, text] = await Promise.all([fetchBytes("model.onnx"), fetchBytes("tokenizer.json")]);
  const start = performance.now();
  const tokenizer = tokenizerFromJson(JSON.parse(new TextDecoder().decode(text)), {
    tokenizerConfig: undefined,
    name: "tokenizer.json",
  });
  mount("/model/model.onnx", fileOfBytes(model));
  const graph = await loadGraph("/model/model.onnx", { threads: 1 });
  console.log(`ready after ${Math.round(performance.now() - start)} ms besides fetching`);
  return async (texts) => await sentenceVectors(graph, texts.map((one) => tokenizer.encode(one)));
}

let opened: Promise<Embed> | undefined;

/** Opens the model once; what failed is tried again with the next request. */
async function embed(texts: readonly string[]): Promise<Float32Array[]> {
  opened ??= open();
  opened.catch(() => opened = undefined);
  return await (await opened)(texts);
}

function textsOf(value: unknown): readonly string[] {
  const isRight = Array.isArray(value) && value.length > 0 && value.length <= MOST_TEXTS &&
    value.every((one) => typeof one === "string" && one !== "");
  if (isRight) return value;
  throw new TypeError(`texts: give 1 to ${MOST_TEXTS} texts that are not empty`);
}

const ROUTES: Readonly<Record<string, (body: Record<string, unknown>) => Promise<unknown>>> = {
  "/embed": async ({ texts }) => (await embed(textsOf(texts))).map((vector) => [...vector]),
  "/search": async ({ query, texts }) => {
    const lines = textsOf(texts);
    const [asked, ...vectors] = await embed([...textsOf([query]), ...lines]);
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
      return Response.json(await route(await request.json()));
    } catch (error) {
      const status = error instanceof TypeError || error instanceof SyntaxError ? 400 : 503;
      return Response.json({ error: (error as Error).message }, { status });
    }
  },
};
