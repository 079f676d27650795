// The server as the page uses it: OpenAI's endpoints, nothing that another client could not call.

import { serverEvents } from "./event_stream.ts";
import { type Piece, pieceOf } from "./piece.ts";

/** An answer of the server that is none. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    message: string,
    /** HTTP status; 0 where no answer came. */
    readonly status: number,
    /** The field of the request that is wrong. */
    readonly param?: string,
  ) {
    super(message);
  }
}

/** A model that answers. */
export interface ModelEntry {
  readonly id: string;
  readonly isLoaded: boolean;
  readonly contextLength?: number;
  /** Bytes that it takes, once it is loaded. */
  readonly memory?: number;
  /** It takes pictures, which is known once it is loaded. */
  readonly sees?: boolean;
}

// deno-lint-ignore no-explicit-any
type Json = any;

/** The server behind the page. */
export class Api {
  /** Sent with every request once it is known. */
  key = "";

  /** The models that answer. */
  async models(): Promise<readonly ModelEntry[]> {
    const { data } = await (await this.#fetch("v1/models")).json() as Json;
    return (data as readonly Json[])
      // What a model is for is known once it is loaded.
      .filter(({ tasks = [] }) => tasks.length === 0 || tasks.includes("answer"))
      .map(({ id, loaded, context_length, memory_bytes, sees }) => ({
        id,
        isLoaded: loaded !== false,
        contextLength: context_length,
        memory: memory_bytes,
        sees,
      }));
  }

  /**
   * The pieces of an answer as they come.
   *
   * @throws {ApiError} What the server says, or that it fell silent. @throws {DOMException} If `signal` was aborted.
   */
  async *answer(body: unknown, signal: AbortSignal): AsyncGenerator<Piece> {
    const response = await this.#fetch("v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
    let isComplete = false;
    try {
      for await (const data of serverEvents(response.body!)) {
        if (data === "[DONE]") return;
        const chunk = JSON.parse(data) as Json;
        if (chunk.error) throw errorOf(chunk.error, response.status);
        const piece = pieceOf(chunk);
        isComplete ||= piece.finish !== undefined;
        yield piece;
      }
    } catch (error) {
      if (error instanceof ApiError || signal.aborted) throw error;
      throw new ApiError("The connection was lost in the middle of the answer.", 0);
    }
    if (!isComplete) throw new ApiError("The server ended the answer before it was complete.", 0);
  }

  /** A response that says ok. Addresses are relative, so that the server may stand below a path. */
  async #fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.key !== "") headers.set("authorization", `Bearer ${this.key}`);
    let response: Response;
    try {
      response = await fetch(path, { ...init, headers });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new ApiError("The server cannot be reached. Is it still running?", 0);
    }
    if (response.ok) return response;
    const { error } = await response.json().catch(() => ({})) as Json;
    const wait = response.headers.get("retry-after");
    const found = errorOf(error ?? {}, response.status);
    if (wait === null) throw found;
    throw new ApiError(`${found.message} Try again in ${wait} s.`, found.status, found.param);
  }
}

function errorOf({ message, param }: Json, status: number): ApiError {
  const text = typeof message === "string" ? message : `The server answered ${status}.`;
  return new ApiError(
    /[.!?]$/.test(text) ? text : `${text}.`,
    status,
    typeof param === "string" ? param : undefined,
  );
}
