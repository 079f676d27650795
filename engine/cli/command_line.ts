// The table of commands; each is a file in engine/cli/commands and is loaded when it is called. It stands apart from
// main.ts, so that tests call commands without a process for each.

import { type CommandEntry, dispatch } from "./command.ts";
import type { Terminal } from "./terminal.ts";

/** Commands by name. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  chat: {
    summary: "talk with a model",
    load: async () => (await import("./commands/chat.ts")).chat,
  },
  generate: {
    summary: "answer one prompt, streaming",
    load: async () => (await import("./commands/generate.ts")).generate,
  },
  image: {
    summary: "paint a picture from a text, or change one",
    load: async () => (await import("./commands/image.ts")).image,
  },
  translate: {
    summary: "translate a text",
    load: async () => (await import("./commands/translate.ts")).translate,
  },
  transcribe: {
    summary: "write down what is said in a sound",
    load: async () => (await import("./commands/transcribe.ts")).transcribe,
  },
  embed: {
    summary: "turn texts into vectors",
    load: async () => (await import("./commands/embed.ts")).embed,
  },
  "fill-mask": {
    summary: "fill the gaps of a text",
    load: async () => (await import("./commands/fill_mask.ts")).fillMask,
  },
  rerank: {
    summary: "order documents by how well they answer a query",
    load: async () => (await import("./commands/rerank.ts")).rerank,
  },
  classify: {
    summary: "give texts the labels of a classification model",
    load: async () => (await import("./commands/classify.ts")).classify,
  },
  "classify-image": {
    summary: "say what is in pictures, by a model's labels or your own",
    load: async () => (await import("./commands/classify_image.ts")).classifyImage,
  },
  run: {
    summary: "do what an Inferflow configuration (.ini) says",
    load: async () => (await import("./commands/run.ts")).run,
  },
  serve: {
    summary: "serve models over HTTP, as OpenAI's API does",
    load: async () => (await import("./commands/serve.ts")).serve,
  },
  worker: {
    summary: "compute for servers that share a queue (NATS)",
    load: async () => (await import("./commands/worker.ts")).worker,
  },
  client: {
    summary: "ask a service over HTTP",
    load: async () => (await import("./commands/client.ts")).client,
  },
  tokenize: {
    summary: "show a text as token ids",
    load: async () => (await import("./commands/tokenize.ts")).tokenize,
  },
  tune: {
    summary: "measure kernels on this machine, use the fastest",
    load: async () => (await import("./commands/tune.ts")).tune,
  },
  info: {
    summary: "architecture, tensors and memory of a model, also before a download",
    load: async () => (await import("./commands/info.ts")).info,
  },
  spec: {
    summary: "check a file that describes a model family, show a model's blocks",
    load: async () => (await import("./commands/spec.ts")).spec,
  },
  pull: {
    summary: "download and verify a model",
    load: async () => (await import("./commands/pull.ts")).pull,
  },
  list: {
    summary: "models in the catalogue and in the cache",
    load: async () => (await import("./commands/list.ts")).list,
  },
  remove: {
    summary: "delete a model from the cache",
    load: async () => (await import("./commands/remove.ts")).remove,
  },
  quantize: {
    summary: "write a model anew in another number format",
    load: async () => (await import("./commands/quantize.ts")).quantize,
  },
  "quant-error": {
    summary: "measure how far number formats are from a model's weights",
    load: async () => (await import("./commands/quant_error.ts")).quantError,
  },
  perplexity: {
    summary: "measure how well a model predicts a text",
    load: async () => (await import("./commands/perplexity.ts")).perplexityCommand,
  },
  plan: {
    summary: "steps and memory of ONNX graphs, without running them",
    load: async () => (await import("./commands/plan.ts")).planCommand,
  },
  peer: {
    summary: "compute layers of a model for another process",
    load: async () => (await import("./commands/peer.ts")).peerCommand,
  },
  graph: {
    summary: "a picture of an ONNX graph and of its memory over time",
    load: async () => (await import("./commands/graph.ts")).graphCommand,
  },
  completions: {
    summary: "what a shell needs to complete commands, flags and models",
    load: async () => (await import("./commands/completions.ts")).completions(COMMANDS),
  },
  doctor: {
    summary: "check this machine: permissions, threads, adapter, cache, every kernel",
    load: async () => (await import("./commands/doctor.ts")).doctor,
  },
  bench: {
    summary: "measure load, prefill, decode and memory of a model",
    load: async () => (await import("./commands/bench.ts")).bench,
  },
};

/** Runs one command line on a terminal; returns the exit code. */
export function runCommandLine(
  args: readonly string[],
  { terminal, version, exit, isProcess = false }: {
    readonly terminal: Terminal;
    /** Of the package. */
    readonly version: string;
    /** Ends the process at a second Ctrl-C. */
    readonly exit: (code: number) => never;
    /** Whether the process exits when the command has ended. */
    readonly isProcess?: boolean;
  },
): Promise<number> {
  // Inferflow's programs are called so.
  const isRun = args[0] === "--config" || args[0]?.startsWith("--config=");
  const line = isRun ? ["run", ...args] : args;
  return dispatch(COMMANDS, { terminal, version, exit, isProcess, args: line });
}
