// /v1/models and /props: what is served.

import type { ServedModel } from "../engine.ts";
import { ApiError } from "./api_error.ts";
import type { Call } from "./call.ts";

/** All models. */
export async function listModels(call: Call): Promise<Response> {
  const models = await call.engine.call("models", null, call.signal);
  return Response.json({ object: "list", data: models.map(modelObject) });
}

/** One of them, by the name that ends the path; names may have slashes. */
export async function getModel(call: Call, { name = "" }: { name?: string }): Promise<Response> {
  const models = await call.engine.call("models", null, call.signal);
  const model = models.find((one) => one.name === name);
  if (model) return Response.json(modelObject(model));
  throw new ApiError(404, "No such model is served", { param: "model", code: "model_not_found" });
}

function modelObject({ name, created, ...facts }: ServedModel): Readonly<Record<string, unknown>> {
  return {
    id: name,
    object: "model",
    created,
    owned_by: "troodon",
    tasks: facts.tasks,
    loaded: facts.isLoaded,
    ...facts.contextLength !== undefined && { context_length: facts.contextLength },
    ...facts.sees !== undefined && { sees: facts.sees },
    ...facts.memoryBytes !== undefined && { memory_bytes: facts.memoryBytes },
  };
}

/** The server and its bounds; with `?model=NAME` what is known of a model, which is loaded for it. */
export async function props(call: Call): Promise<Response> {
  const { engine, signal, options: { version, limits } } = call;
  const name = new URL(call.request.url).searchParams.get("model");
  const models = await engine.call("models", null, signal);
  if (name === null) {
    return Response.json({
      version,
      models: models.map(modelObject),
      limits: {
        body_bytes: limits.bodyBytes,
        body_ms: limits.bodyMs,
        answers: limits.answers,
        answer_ms: limits.answerMs,
      },
    });
  }
  const about = await engine.call("describe", { model: name }, signal);
  return Response.json({
    version,
    ...modelObject(about),
    device: about.device,
    vocabulary_size: about.vocabularySize,
    chat_template: about.chatTemplate ?? null,
  });
}
