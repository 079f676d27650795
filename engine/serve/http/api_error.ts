// What went wrong, in the words of OpenAI's API: `{ error: { message, type, param, code } }` and a status. Whatever fails
// below becomes one of these before it is sent; a fault of ours says nothing of itself but an id to look for in the log.

import { JobError, type JobFailure } from "../job_error.ts";
import { type FieldNames, fieldOf, inFields } from "./engine_words.ts";

/** Statuses that this server answers with when something is wrong; 499 is for the log: nobody is there to read it. */
export type ErrorStatus = 400 | 401 | 404 | 405 | 408 | 413 | 429 | 499 | 500 | 501 | 503;

/** What an error says beside its message. */
export interface ApiErrorDetails {
  /** The field that is wrong, as a path: `messages[2].content`. */
  readonly param?: string | undefined;
  /** For programs. */
  readonly code?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

const TYPES: Readonly<Record<ErrorStatus, string>> = {
  400: "invalid_request_error",
  401: "invalid_request_error",
  404: "invalid_request_error",
  405: "invalid_request_error",
  408: "invalid_request_error",
  413: "invalid_request_error",
  429: "rate_limit_error",
  499: "invalid_request_error",
  500: "server_error",
  501: "invalid_request_error",
  503: "service_unavailable_error",
};

/** An error with its status. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    readonly status: ErrorStatus,
    message: string,
    readonly details: ApiErrorDetails = {},
  ) {
    super(message);
  }

  /** The body that is sent. */
  get body(): { readonly error: Readonly<Record<string, string | null>> } {
    const { param = null, code = null } = this.details;
    return { error: { message: this.message, type: TYPES[this.status], param, code } };
  }

  /** The whole response. */
  response(): Response {
    return Response.json(this.body, { status: this.status, headers: this.details.headers ?? {} });
  }
}

/** A request that cannot be used. */
export function badRequest(message: string, param?: string): ApiError {
  return new ApiError(400, message, { param, code: "invalid_value" });
}

/** A path that leads nowhere. */
export function notFound(): ApiError {
  const message =
    "Nothing is served at this path. OpenAI's paths are, such as /v1/chat/completions";
  return new ApiError(404, message, { code: "not_found" });
}

/**
 * An error of any kind as one that can be sent.
 *
 * @param names Fields of this request by the option that they set: what the engine says of an option is said of them.
 */
export function apiErrorOf(error: unknown, names: FieldNames = new Map()): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof JobError) return ofFailure(error.failure, names);
  return new ApiError(500, "The server failed at this. Its log tells more", {
    code: "internal_error",
  });
}

function ofFailure(failure: JobFailure, names: FieldNames): ApiError {
  const { status, message, param, code, retryAfter } = failure;
  // A fault of ours may speak of what is on this machine.
  if (status === 500) return apiErrorOf(undefined);
  return new ApiError(status, inFields(message, names), {
    param: status === 400 ? fieldOf(failure, names) : param,
    code: code ?? (status === 400 ? "invalid_value" : undefined),
    ...retryAfter !== undefined && { headers: { "retry-after": String(Math.ceil(retryAfter)) } },
  });
}
