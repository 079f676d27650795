// A server that speaks OpenAI's API by a script, for tests of the page: it says what it is told for each question, in
// pieces, and keeps what it was asked.

import { pageAssets } from "../../engine/serve/page/page.ts";

/** An answer by the script. */
export interface ScriptedAnswer {
  /** Texts of its tokens. */
  readonly tokens?: readonly string[];
  readonly thinking?: readonly string[];
  /** Ends with this HTTP status and error object. */
  readonly error?: { readonly status: number; readonly message: string; readonly param?: string };
  readonly headers?: Readonly<Record<string, string>>;
  /** Holds the answer back after so many tokens, until `go` of the server is called or the client leaves. */
  readonly holdAfter?: number;
  /** Breaks off without an end. */
  readonly isCut?: boolean;
}

/** A server by a script. */
export interface ChatServer extends AsyncDisposable {
  readonly url: string;
  /** Bodies of the requests for answers. */
  // deno-lint-ignore no-explicit-any
  readonly bodies: any[];
  /** Paths that were asked for. */
  readonly paths: string[];
  /** Answers by the last question; others are echoed. */
  readonly answers: Map<string, ScriptedAnswer>;
  /** Where set, requests without it are refused. */
  key?: string;
  /** Answers that a client left before their end. */
  left: number;
  /** Lets held answers go on. */
  go(): void;
}

const MODELS = ["smollm2-135m", "gemma3-270m"];

/** Probabilities that go up and down, by place, so that all colours are seen. */
const PROBABILITIES = [0.97, 0.72, 0.41, 0.18, 0.06];

function logprobs(token: string, index: number): Record<string, unknown> {
  const at = (text: string, probability: number) => ({
    token: text,
    logprob: Math.log(probability),
    bytes: [...new TextEncoder().encode(text)],
  });
  const p = PROBABILITIES[index % PROBABILITIES.length]!;
  const top_logprobs = [at(token, p), at(" other", (1 - p) / 2), at("\n", (1 - p) / 4)];
  top_logprobs.sort((a, b) => b.logprob - a.logprob);
  return { content: [{ ...at(token, p), top_logprobs }] };
}

async function* events(
  { tokens = [], thinking = [], holdAfter, isCut = false }: ScriptedAnswer,
  { isWithProbabilities, hold }: {
    readonly isWithProbabilities: boolean;
    readonly hold: () => Promise<void>;
  },
): AsyncGenerator<string> {
  const chunk = (choice: unknown) =>
    `data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [choice] })}\n\n`;
  yield chunk({ index: 0, delta: { role: "assistant" } });
  for (const reasoning_content of thinking) yield chunk({ index: 0, delta: { reasoning_content } });
  for (const [index, content] of tokens.entries()) {
    if (index === holdAfter) await hold();
    const probabilities = isWithProbabilities ? logprobs(content, index) : null;
    yield chunk({ index: 0, delta: { content }, logprobs: probabilities });
  }
  if (isCut) return;
  const timings = { seed: 7, first_token_ms: 30, tokens_per_second: 152.4 };
  yield chunk({ index: 0, delta: {}, finish_reason: "stop", timings });
  const completion_tokens = tokens.length + thinking.length;
  const usage = { prompt_tokens: 20, completion_tokens, total_tokens: 20 + completion_tokens };
  yield `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`;
}

/** Starts one. */
export function chatServer(): ChatServer {
  const waiting = new Set<() => void>();
  const refusal = (status: number, error: Record<string, unknown>, headers = {}) =>
    Response.json({ error }, { status, headers });

  const answer = async (request: Request): Promise<Response> => {
    const body = await request.json();
    self.bodies.push(body);
    const { content } = body.messages.at(-1);
    const question = (typeof content === "string" ? content : content.at(-1).text) as string;
    const found = self.answers.get(question) ?? { tokens: ["You", " said", `: ${question}`] };
    const { error, headers } = found;
    if (error) {
      const { status, message, param = null } = error;
      return refusal(status, { message, param, type: "invalid_request_error" }, headers);
    }
    const hold = () => new Promise<void>((resolve) => waiting.add(resolve));
    const texts = events(found, { isWithProbabilities: body.logprobs === true, hold });
    const stream = new ReadableStream<string>({
      pull: async (controller) => {
        const { value, done } = await texts.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => {
        self.left++;
        // What is held has nobody to wait for.
        self.go();
      },
    });
    return new Response(stream.pipeThrough(new TextEncoderStream()), {
      headers: { "content-type": "text/event-stream" },
    });
  };

  const served = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const path = new URL(request.url).pathname;
      self.paths.push(path);
      const asset = (await pageAssets()).get(path);
      if (asset) {
        return new Response(asset.bytes, {
          headers: { "content-type": asset.type, ...asset.headers },
        });
      }
      const isAllowed = self.key === undefined ||
        request.headers.get("authorization") === `Bearer ${self.key}`;
      if (!isAllowed) return refusal(401, { message: "Incorrect API key provided" });
      if (path === "/v1/chat/completions") return await answer(request);
      if (path === "/v1/models") {
        const data = MODELS.map((id, i) => ({
          ...{ id, object: "model", tasks: ["answer"], context_length: 8192 },
          memory_bytes: (i + 1) * 112e6,
          sees: i > 0,
        }));
        data.push({ ...data[0]!, id: "minilm", tasks: ["embed"] });
        return Response.json({ object: "list", data });
      }
      return refusal(404, { message: "Not found" });
    },
  );
  const self: ChatServer = {
    url: `http://127.0.0.1:${served.addr.port}/`,
    bodies: [],
    paths: [],
    answers: new Map(),
    left: 0,
    go: () => {
      for (const resolve of waiting) resolve();
      waiting.clear();
    },
    [Symbol.asyncDispose]: () => {
      self.go();
      return served.shutdown();
    },
  };
  return self;
}
