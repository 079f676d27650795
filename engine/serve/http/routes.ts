// What is answered where, as a table.

import { notFound } from "./api_error.ts";
import type { Call } from "./call.ts";
import { chat } from "./chat.ts";
import { completions } from "./completions.ts";
import { inferflow } from "./inferflow.ts";
import { getModel, listModels, props } from "./models.ts";
import { responses } from "./responses.ts";
import { detokenize, tokenize } from "./tokens.ts";
import { embeddings, rerank } from "./vectors.ts";

/** How the server is. */
export interface ServerState {
  readonly isDraining: boolean;
  readonly isReady: boolean;
}

/** What an endpoint is told besides. */
export interface RouteContext {
  /** Of the path. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly state: ServerState;
}

/** An endpoint. */
export interface Route {
  /** As hono writes it; the label of its figures too. */
  readonly path: string;
  readonly aliases?: readonly string[];
  readonly methods: readonly string[];
  /** Whether it takes no key. */
  readonly isOpen?: boolean;
  /** Whether it wants something of the engine; such requests are refused while draining. */
  readonly asks?: boolean;
  readonly act: (call: Call, context: RouteContext) => Response | Promise<Response>;
}

/** An endpoint of OpenAI's API; llama.cpp's clients leave /v1 out. */
function openai(path: string, act: Route["act"]): Route {
  return { path: `/v1${path}`, aliases: [path], methods: ["POST"], asks: true, act };
}

/** All endpoints but the page. */
export const ROUTES: readonly Route[] = [
  openai("/chat/completions", chat),
  openai("/completions", completions),
  openai("/responses", responses),
  openai("/embeddings", embeddings),
  { ...openai("/rerank", rerank), aliases: ["/rerank", "/v2/rerank"] },
  { path: "/v1/models", aliases: ["/models"], methods: ["GET"], act: listModels },
  {
    path: "/v1/models/:name{.+}",
    aliases: ["/models/:name{.+}"],
    methods: ["GET"],
    act: (call, { parameters }) => getModel(call, parameters),
  },
  { path: "/tokenize", methods: ["POST"], asks: true, act: tokenize },
  { path: "/detokenize", methods: ["POST"], asks: true, act: detokenize },
  {
    path: "/",
    aliases: ["/inferflow"],
    methods: ["POST", "PUT"],
    asks: true,
    act: (call) => inferflow(call),
  },
  { path: "/health", methods: ["GET"], isOpen: true, act: () => Response.json({ status: "ok" }) },
  { path: "/ready", methods: ["GET"], isOpen: true, act: (_call, { state }) => ready(state) },
  { path: "/props", methods: ["GET"], act: props },
  { path: "/metrics", methods: ["GET"], act: metrics },
];

/** Whether requests should come here. */
function ready({ isDraining, isReady }: ServerState): Response {
  const status = isDraining ? "draining" : isReady ? "ready" : "loading";
  return Response.json({ status }, { status: status === "ready" ? 200 : 503 });
}

async function metrics({ signal, options: { metrics } }: Call): Promise<Response> {
  return new Response(await metrics.text(signal), {
    headers: { "content-type": metrics.contentType },
  });
}

/** What has no endpoint. Inferflow's queries go to any path [§4.10]; they are known by their header. */
export const UNKNOWN_PATH: Route = {
  path: "(none)",
  methods: [],
  asks: true,
  act: (call) => {
    if (["POST", "PUT"].includes(call.request.method)) return inferflow(call, { isKnown: false });
    throw notFound();
  },
};
