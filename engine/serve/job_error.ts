// What went wrong with a job, as data that goes through workers and queues and becomes an HTTP status.

import {
  DeviceError,
  FormatError,
  ResourceError,
  SourceError,
  TroodonError,
  UnsupportedError,
} from "../errors.ts";

/** Whose fault it is, in the words of OpenAI's API, with the statuses of HTTP. */
export type JobFailure = {
  /** 400 the request, 404 no such model, 429 too many, 503 not now, 500 a fault of ours. */
  readonly status: 400 | 404 | 429 | 500 | 503;
  readonly message: string;
  /** The option that is wrong, as the engine names it (`maxTokens`, `schema`, …). */
  readonly param?: string;
  /** For programs: `context_length_exceeded`, `model_not_found`, …. */
  readonly code?: string;
  /** After how many seconds it may go better. */
  readonly retryAfter?: number;
};

/** A job that failed. */
export class JobError extends Error {
  override readonly name = "JobError";

  constructor(readonly failure: JobFailure, options?: ErrorOptions) {
    super(failure.message, options);
  }
}

/** A failure of what an error says: the request's where the engine refuses what it was given, else ours. */
export function failureOf(error: unknown): JobFailure {
  if (error instanceof JobError) return error.failure;
  const message = messageOf(error);
  // A picture of the request that is broken or too large: it will be so the next time, too.
  if (isOfRequest(error)) return { status: 400, message };
  if (error instanceof SourceError) return { status: 404, message, code: "model_not_found" };
  if (error instanceof ResourceError && error.tokens) {
    return { status: 400, message, code: "context_length_exceeded" };
  }
  if (error instanceof ResourceError || error instanceof DeviceError) {
    return { status: 503, message };
  }
  const isRefusal = error instanceof RangeError || error instanceof TypeError ||
    error instanceof FormatError || error instanceof UnsupportedError;
  const param = isRefusal ? /^Cannot use (\w+)/.exec(message)?.[1] : undefined;
  return { status: isRefusal ? 400 : 500, message, ...param && { param } };
}

function isOfRequest(error: unknown): boolean {
  return error instanceof TroodonError && error.file === "data: URL";
}

/** Without the file in front, whose path on this machine is nobody's business who asks over a network. */
function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const { file = "" } = error instanceof TroodonError && !isOfRequest(error) ? error : {};
  return file !== "" && message.startsWith(file)
    ? message.slice(file.length).replace(/^[:,] /, "")
    : message;
}
