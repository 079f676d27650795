// `troodon worker`: computes for fronts on other machines (`troodon serve --nats`), whose jobs lie in the queue of a NATS
// server. Ctrl-C and SIGTERM let jobs under way finish; what does not is given to other workers.

import type { Flags } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";
import { checkUrl, place } from "../nats_flag.ts";
import { MODELS_FLAGS, namedModels, workerSettings } from "../serve_flags.ts";
import { WorkerEngine } from "../../serve/host/worker_engine.ts";
import { QueueWorker } from "../../serve/queue/queue_worker.ts";

const DEFAULT_URL = "nats://127.0.0.1:4222";
const DEFAULT_SESSIONS = 16, DEFAULT_ACK_SECONDS = 5, DEFAULT_DRAIN_SECONDS = 30;

const WORKER_FLAGS = {
  nats: { type: "string", value: "URL", help: `the NATS server (${DEFAULT_URL})` },
  "ack-wait": {
    type: "number",
    min: 0.2,
    max: 3600,
    value: "SECONDS",
    help: `jobs of a worker that is silent so long go to another one (${DEFAULT_ACK_SECONDS})`,
  },
  drain: {
    type: "integer",
    min: 0,
    value: "SECONDS",
    help: `for jobs to finish when the worker is to stop (${DEFAULT_DRAIN_SECONDS})`,
  },
  ...MODELS_FLAGS,
} as const satisfies Flags;

/** The command. */
export const worker: Command = defineCommand({
  name: "troodon worker",
  summary: "Computes what `troodon serve --nats` is asked, on any number of machines.",
  positionals: ["[MODEL…]"],
  flags: WORKER_FLAGS,
  examples: [
    ["nats-server -js", "the queue, in JetStream"],
    ["troodon worker --nats nats://queue:4222 smollm2-135m", "as often as there are machines"],
    ["troodon serve --nats nats://queue:4222", "the front"],
  ],
  notes: [
    "MODEL is named as for troodon serve; workers that serve one name share its jobs, and must have the same file.",
    "The first model is loaded at once, the others when they are asked for; then `ready` is written.",
  ],
}, async ({ terminal, signal, version, isProcess: isLast = false }, { positionals, flags }) => {
  const models = namedModels(positionals), url = flags.nats ?? DEFAULT_URL;
  checkUrl(url, terminal);
  const names = models.map(({ name }) => name);
  const notice = (text: string): void => terminal.err(`${text}\n`);
  const tell = (event: string, text: string, facts: object = {}) =>
    terminal.out(flags.json ? `${JSON.stringify({ event, ...facts })}\n` : `${text}\n`);
  const settings = workerSettings(models, { flags, context: { terminal, signal } });
  await using engine = new WorkerEngine(settings, { onDeath: notice, isLast });
  await settings;
  await engine.call("describe", { model: names[0]! }, signal);
  await using worker = new QueueWorker({
    ...{ url, engine, models: names, notice },
    places: flags.sessions ?? DEFAULT_SESSIONS,
    ackWaitMs: (flags["ack-wait"] ?? DEFAULT_ACK_SECONDS) * 1000,
  });
  const facts = { worker: worker.id, models: names };
  tell("working", `Troodon ${version} works on ${names.join(", ")} for ${place(url)}`, facts);
  const stopped = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => stopped.resolve(), { once: true });
  if (signal.aborted) stopped.resolve();
  void worker.ready.then(() => signal.aborted || tell("ready", "ready"));
  await stopped.promise;
  await worker.drain(AbortSignal.timeout((flags.drain ?? DEFAULT_DRAIN_SECONDS) * 1000));
  return 0;
});
