// The server as the page uses it: OpenAI's endpoints, nothing that another client could not call.

import type { AnswerToken, Choice } from "./conversation.ts";

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
  readonly contextLength?: number;
  /** Bytes that it takes, once it is loaded. */
  readonly memory?: number;
}

/** What came since the last piece. */
export interface Piece {
  readonly text?: string;
  readonly thinking?: string;
  readonly tokens?: readonly AnswerToken[];
  readonly finish?: string;
  readonly usage?: { readonly completion: number; readonly total: number };
  /** Tokens a second by the server's own clock. */
  readonly perSecond?: number;
  /** The seed that gives the answer again. */
  readonly seed?: number;
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
      .filter(({ tasks }) => !Array.isArray(tasks) || tasks.includes("answer"))
      .map(({ id, context_length, memory_bytes }) => ({
        id,
        contextLength: context_length,
        memory: memory_bytes,
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

function choiceOf({ token, bytes, logprob }: Json): Choice {
  // A part of a character has no text of its own.
  const text = token.includes("\ufffd") && bytes
    ? (bytes as number[]).map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")
    : token;
  return { text, probability: Math.exp(logprob) };
}

/** What a chunk of a stream says. */
export function pieceOf({ choices: [choice] = [], usage }: Json): Piece {
  const { delta = {}, logprobs, finish_reason, timings } = choice ?? {};
  const { tokens_per_second: perSecond, seed } = timings ?? {};
  return {
    ...delta.content && { text: delta.content },
    ...delta.reasoning_content && { thinking: delta.reasoning_content },
    ...logprobs?.content && {
      tokens: (logprobs.content as Json[]).map((entry) => ({
        ...choiceOf(entry),
        others: (entry.top_logprobs as Json[] ?? []).map(choiceOf),
      })),
    },
    ...finish_reason && { finish: finish_reason },
    ...usage && {
      usage: { completion: usage.completion_tokens, total: usage.total_tokens },
    },
    ...perSecond > 0 && { perSecond },
    ...seed !== undefined && { seed },
  };
}

/** The data of server-sent events, one a text (HTML standard, 9.2.6); other fields are left out. */
export async function* serverEvents(
  bytes: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<string> {
  const reader = bytes.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", data: string[] = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      // A carriage return at the end may be the first half of a line's end.
      const lines = text.split(/\r\n|\n|\r(?!$)/);
      text = lines.pop()!;
      for (const line of lines) {
        if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
        if (line !== "" || data.length === 0) continue;
        yield data.join("\n");
        data = [];
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
