// `troodon client`: asks a text service over HTTP and streams its answer. Services of OpenAI's form (ours, llama.cpp, vLLM)
// and Inferflow's are spoken to; the address tells which, unless `--form` does.

import { SourceError } from "../../errors.ts";
import { UsageError } from "../args.ts";
import { readAnswer, type ServiceForm } from "../client_stream.ts";
import { type Command, type Context, defineCommand } from "../command.ts";
import { textOrStdin } from "../stdin.ts";

const DEFAULT_SERVICE = "http://localhost:8080";
const CHAT_PATH = "/v1/chat/completions";

/** The command. */
export const client: Command = defineCommand({
  name: "troodon client",
  summary: "Asks a service over HTTP and streams its answer.",
  positionals: ["[SERVICE]"],
  flags: {
    prompt: { type: "string", short: "p", help: "what to ask; - or nothing: standard input" },
    system: { type: "string", help: "instruction to the model" },
    form: {
      type: "string",
      choices: ["openai", "inferflow"],
      help: "how the service speaks (by the address: openai, if it has a path to chat completions)",
    },
    model: {
      ...{ type: "string", short: "m", value: "NAME" },
      help: "model of the service (openai)",
    },
    prefix: { type: "string", help: "beginning of the answer (inferflow)" },
    "decoding-alg": { type: "string", value: "NAME", help: "sampling strategy (inferflow)" },
    temperature: { type: "number", min: 0, help: "of sampling" },
    seed: { type: "integer", min: 0, help: "of sampling" },
    "max-tokens": { type: "integer", short: "n", min: 1, help: "most tokens of the answer" },
    whole: { type: "boolean", help: "wait for the whole answer instead of streaming" },
    request: {
      type: "string",
      value: "JSON",
      help: "the whole request, instead of the flags above",
    },
    key: { type: "string", value: "TOKEN", help: "sent as a bearer token" },
  },
  examples: [
    [`troodon client ${DEFAULT_SERVICE}${CHAT_PATH} -p 'Hello'`, "a service of OpenAI's form"],
    [`troodon client ${DEFAULT_SERVICE} -p 'Hello' --prefix 'Dear'`, "Inferflow's service"],
  ],
  notes: [`SERVICE defaults to ${DEFAULT_SERVICE}. Needs --allow-net of it.`],
}, async (context, { positionals: [service = DEFAULT_SERVICE], flags }) => {
  const form = flags.form ?? formOf(service);
  const { prompt, request, key, json = false } = flags;
  if (request !== undefined && prompt !== undefined) {
    throw new UsageError("--request and --prompt exclude each other");
  }
  for (const [name, owner] of FORM_FLAGS) {
    if (flags[name] !== undefined && owner !== form) {
      throw new UsageError(`--${name} is for services of form ${owner}: this one is ${form}`);
    }
  }
  const asked = request === undefined
    ? await textOrStdin(context.terminal, { given: prompt, flag: "--prompt" })
    : "";
  if (request === undefined && asked.trim() === "") {
    throw new UsageError("Nothing to ask: give --prompt TEXT, or pipe the text in");
  }
  const body = request ??
    JSON.stringify(
      BODIES[form](asked, {
        system: flags.system,
        model: flags.model,
        prefix: flags.prefix,
        strategy: flags["decoding-alg"],
        temperature: flags.temperature,
        seed: flags.seed,
        maxTokens: flags["max-tokens"],
        stream: !flags.whole,
      }),
    );
  return await sendRequest(context, { service, request: body, form, key, json });
});

const FORM_FLAGS = [["model", "openai"], ["prefix", "inferflow"], [
  "decoding-alg",
  "inferflow",
]] as const;

interface Wishes {
  readonly system: string | undefined;
  readonly model: string | undefined;
  readonly prefix: string | undefined;
  readonly strategy: string | undefined;
  readonly temperature: number | undefined;
  readonly seed: number | undefined;
  readonly maxTokens: number | undefined;
  readonly stream: boolean;
}

/** Bodies of requests; what is undefined is not sent. */
const BODIES: Readonly<Record<ServiceForm, (prompt: string, wishes: Wishes) => object>> = {
  openai: (prompt, { system, model, temperature, seed, maxTokens, stream }) => ({
    model,
    messages: [
      ...system === undefined ? [] : [{ role: "system", content: system }],
      { role: "user", content: prompt },
    ],
    temperature,
    seed,
    max_tokens: maxTokens,
    stream,
  }),
  inferflow: (prompt, { system, prefix, strategy, temperature, seed, maxTokens, stream }) => ({
    header: { fn: "process_query" },
    text: prompt,
    system_prompt: system,
    res_prefix: prefix,
    decoding_alg: strategy,
    random_seed: seed,
    temperature,
    max_output_len: maxTokens,
    is_streaming_mode: stream,
  }),
};

/** The form that an address tells. */
export function formOf(service: string): ServiceForm {
  return service.includes("/chat/completions") ? "openai" : "inferflow";
}

/** What is sent. */
export interface ClientRequest {
  readonly service: string;
  /** JSON text. */
  readonly request: string;
  readonly form?: ServiceForm;
  readonly key?: string | undefined;
  readonly json: boolean;
}

/**
 * Sends a request and writes the answer as it comes.
 *
 * @returns The exit code.
 * @throws {UsageError} If the request is no JSON or the address none.
 * @throws {SourceError} If the service cannot be reached, or fails.
 */
export async function sendRequest(
  { terminal, signal }: Context,
  { service, request, form = formOf(service), key, json }: ClientRequest,
): Promise<number> {
  checkJson(request);
  const address = addressOf(service, form);
  const start = performance.now();
  const response = await post(address, { request, key, signal });
  let text = "", end = "", firstMs: number | undefined;
  for await (const piece of readAnswer(response, form)) {
    if (piece.text !== "") firstMs ??= performance.now() - start;
    text += piece.text;
    end = piece.end ?? end;
    if (!json) terminal.out(piece.text);
  }
  const ms = performance.now() - start;
  if (json) terminal.out(`${JSON.stringify({ text, finishReason: end, firstMs, ms })}\n`);
  else if (!text.endsWith("\n")) terminal.out("\n");
  return 0;
}

function checkJson(request: string): void {
  try {
    const value: unknown = JSON.parse(request);
    if (typeof value === "object" && value !== null) return;
  } catch {
    // told below
  }
  throw new UsageError("The request is no JSON object");
}

function addressOf(service: string, form: ServiceForm): URL {
  const address = URL.canParse(service) ? new URL(service) : undefined;
  if (!address || !/^https?:$/.test(address.protocol)) {
    throw new UsageError(`The service is no http address: ${service}`);
  }
  if (form === "openai" && address.pathname === "/") address.pathname = CHAT_PATH;
  return address;
}

async function post(
  address: URL,
  { request, key, signal }: { request: string; key: string | undefined; signal: AbortSignal },
): Promise<Response> {
  try {
    return await fetch(address, {
      method: "POST",
      body: request,
      headers: {
        "content-type": "application/json",
        ...key !== undefined && { authorization: `Bearer ${key}` },
      },
      signal,
    });
  } catch (cause) {
    signal.throwIfAborted();
    const isDenied = cause instanceof Error && cause.name === "NotCapable";
    throw new SourceError(isDenied ? "Deno may not reach it" : "cannot be reached", {
      file: address.href,
      remedy: isDenied
        ? `Run with --allow-net=${address.host}`
        : "Check that the service runs, and its port",
      cause,
    });
  }
}
