// An engine in a process of its own that takes orders as JSON lines. Two engines that are measured
// against each other never share a process, so neither sees the other's memory, threads or warm caches,
// and the bench can alternate between them case by case.

import { joiningArguments } from "../../wasm/joining_flag.ts";
import { startChild } from "../../tools/support/children.ts";

/** One order to an engine. */
export type Order =
  | { readonly op: "prefill"; readonly ids: readonly number[] }
  | { readonly op: "again"; readonly ids: readonly number[] }
  | {
    readonly op: "decode";
    readonly ids: readonly number[];
    readonly count: number;
    /** Of this engine. */
    readonly options?: DecodeOptions;
  }
  | { readonly op: "check"; readonly ids: readonly number[]; readonly rows: number }
  | {
    readonly op: "batch";
    readonly prompts: readonly (readonly number[])[];
    readonly count: number;
  }
  | { readonly op: "embed"; readonly texts: readonly string[]; readonly batch: number }
  | { readonly op: "graph"; readonly runs: number }
  | { readonly op: "memory" };

/** How an answer is chosen, what binds it, and who proposes tokens of it. */
export interface DecodeOptions {
  readonly schema?: unknown;
  readonly topK?: number;
  readonly seed?: number;
  readonly draft?: "lookup";
}

/** What comes back: `ms` for work, `bytes` for memory, `loadMs` once at the start. */
export interface Reply {
  readonly ms?: number;
  readonly bytes?: number;
  readonly loadMs?: number;
  readonly ids?: readonly number[];
  /** The first of the vectors that were made, or the start of a graph's first output. */
  readonly vector?: readonly number[];
}

/** What an engine implements, as far as it is asked; `serve` does the rest. */
export interface Engine {
  readonly loadMs: number;
  /** Computes a prompt of which nothing was computed before. */
  prefill?(ids: readonly number[]): Promise<Reply>;
  /** Computes a prompt that begins with the last one of `prefill`, in another session. */
  again?(ids: readonly number[]): Promise<Reply>;
  decode?(ids: readonly number[], count: number, options?: DecodeOptions): Promise<Reply>;
  /** Computes so many tokens behind the ids in one step, with the best logit of each; `ms` is of one such step. */
  check?(ids: readonly number[], rows: number): Promise<Reply>;
  /** Greedy tokens after all prompts at once, `count` each; prompts but their last tokens do not count. */
  batch?(prompts: readonly (readonly number[])[], count: number): Promise<Reply>;
  /** Vectors of texts, `batch` at a time where the engine pads texts to a common length. */
  embed?(texts: readonly string[], batch: number): Promise<Reply>;
  /** Runs a graph on its inputs; `ms` is of one run. */
  graph?(runs: number): Promise<Reply>;
  close(): Promise<void>;
}

/** Peak resident memory of this process in bytes (Linux: VmHWM; elsewhere the present value). */
export function peakMemory(): number {
  try {
    const kilobytes = /^VmHWM:\s+(\d+)/m.exec(Deno.readTextFileSync("/proc/self/status"))?.[1];
    if (kilobytes) return Number(kilobytes) * 1024;
  } catch {
    // Not Linux.
  }
  return Deno.memoryUsage().rss;
}

async function* jsonLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  let pending = "";
  for await (const bytes of stream) {
    pending += decoder.decode(bytes, { stream: true });
    const lines = pending.split("\n");
    pending = lines.pop()!;
    for (const line of lines) if (line.startsWith("{")) yield JSON.parse(line);
  }
}

function answer(engine: Engine, order: Order): Reply | Promise<Reply> | undefined {
  switch (order.op) {
    case "memory":
      return { bytes: peakMemory() };
    case "prefill":
      return engine.prefill?.(order.ids);
    case "again":
      return engine.again?.(order.ids);
    case "decode":
      return engine.decode?.(order.ids, order.count, order.options);
    case "check":
      return engine.check?.(order.ids, order.rows);
    case "batch":
      return engine.batch?.(order.prompts, order.count);
    case "embed":
      return engine.embed?.(order.texts, order.batch);
    case "graph":
      return engine.graph?.(order.runs);
  }
}

/** The engine's side: answers orders until standard input ends. */
export async function serve(engine: Engine): Promise<void> {
  console.log(JSON.stringify({ loadMs: engine.loadMs }));
  for await (const order of jsonLines(Deno.stdin.readable) as AsyncGenerator<Order>) {
    const reply = await answer(engine, order);
    if (!reply) throw new Error(`This engine cannot ${order.op}`);
    console.log(JSON.stringify(reply));
  }
  await engine.close();
}

/** The bench's side: a running engine. */
export interface Runner {
  readonly loadMs: number;
  /** From the start of the process to the loaded model. */
  readonly startMs: number;
  ask(order: Order): Promise<Reply>;
  close(): Promise<void>;
}

/** Starts this engine as its users are told to (docs/tuning.md), else like `startRunner`. */
export function startOwn(args: readonly string[]): Promise<Runner> {
  return startRunner([...joiningArguments(Deno.build.arch), ...args]);
}

/** Starts `deno run` with the given arguments and waits until the model is loaded. */
export function startRunner(args: readonly string[]): Promise<Runner> {
  return startProgram(Deno.execPath(), ["run", "--allow-all", ...args]);
}

/** Starts another program that answers orders, and waits until the model is loaded. */
export async function startProgram(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Runner> {
  const start = performance.now();
  const child = startChild(program, {
    ...{ args: [...args], env: { ...env } },
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  });
  const replies = jsonLines(child.stdout) as AsyncGenerator<Reply>;
  const orders = child.stdin.getWriter();
  const next = async (): Promise<Reply> => {
    const { value, done } = await replies.next();
    if (done) throw new Error(`The engine ended early: ${program} ${args.join(" ")}`);
    return value;
  };
  const { loadMs = 0 } = await next();
  return {
    loadMs,
    startMs: performance.now() - start,
    ask: async (order) => {
      await orders.write(new TextEncoder().encode(JSON.stringify(order) + "\n"));
      return await next();
    },
    close: async () => {
      await orders.close();
      await child.stdout.cancel().catch(() => {});
      await child.status;
    },
  };
}
