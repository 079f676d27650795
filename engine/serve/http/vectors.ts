// /v1/embeddings and /v1/rerank

import { badRequest } from "./api_error.ts";
import { EMBEDDING_FIELDS, RERANK_FIELDS } from "./answer_fields.ts";
import type { Call } from "./call.ts";
import { objectAt, readFields, wrong } from "./fields.ts";
import { modelOf } from "./model_choice.ts";
import { readTexts } from "./texts.ts";

/** Vectors of texts, as numbers or as the base64 of little-endian float32, which OpenAI's client asks for. */
export async function embeddings(call: Call): Promise<Response> {
  const { values, names } = readFields(await call.readJson(), EMBEDDING_FIELDS, {
    unknown: call.noteUnknown,
  });
  const { input, dimensions, encoding_format: form = "float" } = values;
  if (input === undefined) throw wrong("input", { wanted: "a text or a list", value: undefined });
  const texts = readTexts(input, "input");
  return await call.naming(names, async () => {
    const model = await modelOf(call, { name: values.model, task: "embed" });
    call.notes.model = model;
    call.admit(1);
    const { vectors, promptTokens } = await call.engine.call("embed", {
      model,
      input: texts,
      ...dimensions !== undefined && { dimensions },
    }, call.signal);
    call.notes.promptTokens = promptTokens;
    return Response.json({
      object: "list",
      data: vectors.map((vector, index) => ({
        object: "embedding",
        index,
        embedding: form === "base64" ? base64Of(vector) : Array.from(vector),
      })),
      model,
      usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
    });
  });
}

function base64Of(vector: Float32Array): string {
  const bytes = new Uint8Array(vector.length * 4);
  const view = new DataView(bytes.buffer);
  vector.forEach((value, i) => view.setFloat32(i * 4, value, true));
  return bytes.toBase64();
}

/** Most documents of a request. */
const MOST_DOCUMENTS = 1000;

/** Documents in the order of how well they answer a query, as Cohere and Jina tell it. */
export async function rerank(call: Call): Promise<Response> {
  const { values, names } = readFields(await call.readJson(), RERANK_FIELDS, {
    unknown: call.noteUnknown,
  });
  const { query, documents: given, top_n: top = Infinity, return_documents: tells = false } =
    values;
  if (query === undefined) throw wrong("query", { wanted: "a text", value: undefined });
  if (given === undefined) {
    throw wrong("documents", { wanted: "a list of texts", value: undefined });
  }
  if (given.length === 0 || given.length > MOST_DOCUMENTS) {
    throw badRequest(
      `Cannot use documents: there must be 1 to ${MOST_DOCUMENTS}, and are ${given.length}`,
      "documents",
    );
  }
  const documents = given.map((document, i) => documentText(document, `documents[${i}]`));
  return await call.naming(names, async () => {
    const model = await modelOf(call, { name: values.model, task: "rerank" });
    call.notes.model = model;
    call.admit(1);
    const { scores, promptTokens } = await call.engine.call(
      "rerank",
      { model, query, documents },
      call.signal,
    );
    call.notes.promptTokens = promptTokens;
    const order = documents.map((_, index) => index)
      .sort((a, b) => scores[b]! - scores[a]! || a - b).slice(0, top);
    return Response.json({
      id: `rerank-${call.uniqueId}`,
      object: "list",
      model,
      results: order.map((index) => ({
        index,
        relevance_score: scores[index],
        ...tells && { document: { text: documents[index] } },
      })),
      usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
    });
  });
}

function documentText(value: unknown, path: string): string {
  if (typeof value === "string") return value;
  const { text } = objectAt(value, path);
  if (typeof text === "string") return text;
  throw wrong(`${path}.text`, { wanted: "a text", value: text });
}
