// Errors that the AI SDK knows by their marks, whatever class they are of: its package is not needed to throw them.

const MARK = "vercel.ai.error";

/** An error of the AI SDK. */
class SdkError extends Error {
  /** @param facts What it carries besides. */
  constructor(name: string, message: string, facts: Readonly<Record<string, unknown>>) {
    super(message);
    this.name = name;
    Object.assign(this, facts, {
      [Symbol.for(MARK)]: true,
      [Symbol.for(`${MARK}.${name}`)]: true,
    });
  }
}

/** What a model of text cannot do. */
export function unsupported(functionality: string, message: string): Error {
  return new SdkError("AI_UnsupportedFunctionalityError", message, { functionality });
}

/** A model of a kind that there is none of here. */
export function noSuchModel(modelId: string, modelType: string): Error {
  const message = `Troodon has no model of the kind ${modelType}: ${modelId}`;
  return new SdkError("AI_NoSuchModelError", message, { modelId, modelType });
}
