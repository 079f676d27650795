// `troodon serve`: models over HTTP. The worker that computes is started first; while it reads its code and its first
// model, this thread listens and reads the code that answers. Ctrl-C and SIGTERM let answers under way finish.

import { readEnv } from "../../io.ts";
import type { Engine } from "../../serve/engine.ts";
import { listen } from "../../serve/host/listen.ts";
import { WorkerEngine } from "../../serve/host/worker_engine.ts";
import type { App } from "../../serve/http/app.ts";
import type { AppOptions } from "../../serve/http/app_options.ts";
import type { Flags, ParsedLine } from "../args.ts";
import { type Command, type Context, defineCommand } from "../command.ts";
import { MODELS_FLAGS, namedModels, workerSettings } from "../serve_flags.ts";

const DEFAULT_PORT = 8080;
const DEFAULT_DRAIN_SECONDS = 30;
const KEY_VARIABLE = "TROODON_API_KEY";

const SERVE_FLAGS = {
  port: {
    type: "integer",
    min: 0,
    max: 65535,
    value: "N",
    help: `0: any that is free (${DEFAULT_PORT})`,
  },
  host: { type: "string", value: "ADDRESS", help: "0.0.0.0: for other machines, too (127.0.0.1)" },
  "api-key-file": {
    type: "string",
    value: "FILE",
    help: `keys, one a line, of which every request must have one (or ${KEY_VARIABLE}, by commas)`,
  },
  cors: {
    type: "string",
    value: "ORIGIN",
    multiple: true,
    help: "origin whose pages may ask, or * (may be repeated)",
  },
  "max-queue": {
    type: "integer",
    min: 1,
    value: "N",
    help: "answers under way or waiting; more are refused with 429 (256)",
  },
  timeout: { type: "integer", min: 1, value: "SECONDS", help: "most time of an answer (3600)" },
  drain: {
    type: "integer",
    min: 0,
    value: "SECONDS",
    help: `for answers to finish when the server is to stop (${DEFAULT_DRAIN_SECONDS})`,
  },
  nats: {
    type: "string",
    value: "URL",
    help:
      "computes nothing: `troodon worker` does, for the queue of a NATS server (nats://host:4222)",
  },
  "no-page": { type: "boolean", help: "no chat page at /" },
  quiet: { type: "boolean", help: "no line a request on standard error" },
  ...MODELS_FLAGS,
} as const satisfies Flags;

/** The command. */
export const serve: Command = defineCommand({
  name: "troodon serve",
  summary: "Serves models over HTTP, as OpenAI's API does.",
  positionals: ["[MODEL…]"],
  flags: SERVE_FLAGS,
  examples: [
    ["troodon serve", `the default model at http://127.0.0.1:${DEFAULT_PORT}`],
    [
      "troodon serve small=smollm2-135m minilm --max-memory 1G",
      "an answering model and an encoder",
    ],
    ["troodon serve --nats nats://queue:4222", "the front of workers on other machines"],
    ["troodon serve model.gguf --host 0.0.0.0 --api-key-file keys.txt", "for other machines"],
  ],
  notes: [
    "MODEL is a name of the catalogue, a path, a URL, hf:… or pypi:…; requests call it so, or by its file's name " +
    "without the ending, or by NAME with NAME=MODEL. The first is loaded at once, the others when they are asked for.",
    "A browser finds a chat page at the address. A line with it is written first, then, when the first model is there, `ready`.",
  ],
}, async ({ terminal, signal, version, isProcess = false }, { positionals, flags }) => {
  const context = { terminal, signal, isProcess };
  const { what, models, known, ready, isUp, ...opened } = flags.nats === undefined
    ? openModels(positionals, { flags, context })
    : await openQueue(flags.nats, { positionals, context });
  await using engine = opened.engine;
  let isReady = false;
  const app = openApp(flags, { engine, version, terminal, isReady: () => isReady && isUp() });
  const listener = await listen(app, {
    hostname: flags.host ?? "127.0.0.1",
    port: flags.port ?? DEFAULT_PORT,
  });
  const tell = (event: string, text: string, facts: object = {}) =>
    terminal.out(flags.json ? `${JSON.stringify({ event, ...facts })}\n` : `${text}\n`);
  const drainSeconds = flags.drain ?? DEFAULT_DRAIN_SECONDS;
  try {
    await Promise.all([known, app]);
    tell("listening", `Troodon ${version} serves ${what} at ${listener.url}`, {
      ...{ url: listener.url, models },
    });
    await ready();
    signal.throwIfAborted();
    isReady = true;
    tell("ready", "ready");
    await aborted(signal);
    tell("stopping", `stopping: answers under way have ${drainSeconds} s`, { drainSeconds });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await listener.drain(signal.aborted ? drainSeconds * 1000 : 0);
    await engine[Symbol.asyncDispose]();
    await listener.close();
  }
  return 0;
});

/** Who computes, what that is for people, and when it can. */
interface Opened {
  readonly engine: Engine;
  readonly what: string;
  readonly models: readonly string[];
  /** Rejects where the command line cannot be followed. */
  readonly known: Promise<unknown>;
  readonly ready: () => Promise<unknown>;
  /** Whether it still can. */
  readonly isUp: () => boolean;
}

interface Opening {
  readonly flags: ParsedLine<typeof SERVE_FLAGS>["flags"];
  readonly context: Pick<Context, "terminal" | "signal"> & {
    readonly isProcess: boolean;
  };
}

function openModels(positionals: readonly string[], { flags, context }: Opening): Opened {
  const models = namedModels(positionals), names = models.map(({ name }) => name);
  const known = workerSettings(models, { flags, context });
  const engine = new WorkerEngine(known, {
    isLast: context.isProcess,
    onDeath: (message) => context.terminal.err(`${message}\n`),
  });
  return {
    ...{ engine, what: names.join(", "), models: names, known },
    ready: () => engine.call("describe", { model: names[0]! }, context.signal),
    isUp: () => true,
  };
}

async function openQueue(
  url: string,
  { positionals, context }: Pick<Opening, "context"> & { readonly positionals: readonly string[] },
): Promise<Opened> {
  const { place, queueEngine } = await import("../nats_flag.ts");
  const { terminal, signal } = context;
  const engine = queueEngine(url, { models: positionals, terminal });
  return {
    ...{ engine, what: `workers of ${place(url)}`, models: [], known: Promise.resolve() },
    ready: () => Promise.race([engine.ready, aborted(signal)]),
    isUp: () => engine.isUp,
  };
}

/** What answers requests. Its code is read while the worker reads its own. */
async function openApp(
  flags: Opening["flags"],
  { terminal, ...parts }:
    & Pick<Context, "terminal" | "version">
    & Required<Pick<AppOptions, "engine" | "isReady">>,
): Promise<App> {
  const { createApp } = await import("../../serve/http/app.ts");
  const { jsonLines } = await import("../../serve/http/request_log.ts");
  const { pageAssets } = await import("../../serve/page/page.ts");
  const keys = await apiKeys(flags["api-key-file"]);
  return await createApp({
    ...{ ...parts, ...keys && { keys } },
    ...!flags["no-page"] && { page: pageAssets },
    ...flags.cors && { cors: flags.cors },
    ...!flags.quiet && { log: jsonLines((line) => terminal.err(line)) },
    limits: {
      ...flags["max-queue"] !== undefined && { answers: flags["max-queue"] },
      ...flags.timeout !== undefined && { answerMs: flags.timeout * 1000 },
    },
  });
}

async function apiKeys(file: string | undefined): Promise<string[] | undefined> {
  const { parseKeys } = await import("../../serve/http/keys.ts");
  if (file !== undefined) {
    const { readText } = await import("../machine.ts");
    return parseKeys(await readText(file), file);
  }
  const keys = readEnv(KEY_VARIABLE);
  return keys === undefined ? undefined : parseKeys(keys, KEY_VARIABLE);
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true })
  );
}
