// `deno task bench serve`: our server beside llama.cpp's, both with the same model, threads and load, in turns. What the
// load generator takes of the machine it takes from both.

import { type Figure, machineName, median, ratioOf } from "../support/figures.ts";
import type { BenchModel } from "../support/models.ts";
import { ROOT } from "../../tools/support/task.ts";
import { startChild } from "../../tools/support/children.ts";
import { type LoadResult, mixedRequests, percentile, runLoad } from "./load.ts";
import { residentBytes, threadTicks } from "./process.ts";
import {
  llamaServer,
  NODE_LLAMA,
  type RunningServer,
  type ServerKind,
  type ServerOptions,
  TROODON,
} from "./servers.ts";

/** What is measured: streams beside each other, idle connections, cancels, health beside a prompt, start. */
export const PARTS = ["streams", "idle", "cancels", "health", "ready"] as const;

/** Options of the bench. */
export interface ServeBenchOptions {
  readonly model: BenchModel;
  readonly parts: readonly string[];
  readonly threads: number;
  readonly rounds: number;
  readonly peer: boolean;
  /** Path of llama.cpp's server. */
  readonly llamaServer: string | undefined;
  /** Requests of a round: each stream sends several, so that lengths mix. */
  readonly requests: number;
  /** How long clients come and leave. */
  readonly minutes: number;
}

const STREAMS = 32;
const IDLE = 1000;
const SETTINGS = { streams: STREAMS, cacheTokens: 16384, contextLength: 4096 };

interface Run extends ServeBenchOptions {
  readonly settings: ServerOptions;
  readonly kinds: readonly ServerKind[];
}

/** Measures. */
export async function* serveBench(options: ServeBenchOptions): AsyncGenerator<Figure> {
  const { model: { path }, threads } = options;
  const peer = options.llamaServer === undefined ? NODE_LLAMA : llamaServer(options.llamaServer);
  const run: Run = {
    ...options,
    settings: { ...SETTINGS, path, threads },
    kinds: options.peer ? [TROODON, peer] : [TROODON],
  };
  for (const part of options.parts) yield* RUN[part as typeof PARTS[number]](run);
}

const RUN: Readonly<Record<typeof PARTS[number], (run: Run) => AsyncGenerator<Figure>>> = {
  streams: measureStreams,
  idle: measureIdle,
  cancels: measureCancels,
  health: measureHealth,
  ready: measureReady,
};

/** A figure of ours beside the peer's, medians of the rounds. */
function figure(
  { kinds, threads }: Run,
  name: string,
  { unit, values }: { readonly unit: string; readonly values: readonly (readonly number[])[] },
): Figure {
  const [value, peerValue = null] = values.map(median);
  return {
    ...{ bench: "serve", case: `${name}, ${threads} threads`, unit, value: value! },
    ...{ peer: kinds[1]?.name ?? null, peerValue, ratio: ratioOf(unit, value!, peerValue) },
    ...{ share: null, machine: machineName() },
  };
}

/** In turns, a server at a time: two that compute would share the machine. */
async function eachRound<T>(
  { kinds, rounds, settings }: Run,
  measure: (server: RunningServer, round: number) => Promise<T>,
): Promise<T[][]> {
  const all: T[][] = kinds.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [k, kind] of kinds.entries()) {
      await using server = await kind.start(settings);
      all[k]!.push(await measure(server, round));
    }
  }
  return all;
}

async function* measureStreams(run: Run): AsyncGenerator<Figure> {
  const { requests: count, model: { ids } } = run;
  const all = await eachRound(run, async (server, round) => {
    await runLoad(server, { requests: mixedRequests(ids, { count: 4, seed: 99 }), streams: 4 });
    const before = threadTicks(server.pid);
    const requests = mixedRequests(ids, { count, seed: round + 1 });
    const result = await runLoad(server, { requests, streams: STREAMS });
    const { first, others } = threadTicks(server.pid);
    return { ...result, share: (first - before.first) / (others - before.others) * 100 };
  });
  const cases: readonly (readonly [string, string, (result: LoadResult) => number])[] = [
    ["decode", "tokens/s", ({ tokens, seconds }) => tokens / seconds],
    ["first token p50", "ms", ({ firstMs }) => percentile(firstMs, 0.5)],
    ["first token p99", "ms", ({ firstMs }) => percentile(firstMs, 0.99)],
    ["between tokens p50", "ms", ({ gapMs }) => percentile(gapMs, 0.5)],
    ["between tokens p99", "ms", ({ gapMs }) => percentile(gapMs, 0.99)],
  ];
  for (const [name, unit, valueOf] of cases) {
    const values = all.map((rounds) => rounds.map(valueOf));
    yield figure(run, `${name} ${STREAMS} streams`, { unit, values });
  }
  const values = [all[0]!.map(({ share }) => share)];
  yield figure(run, "HTTP thread beside the engine's", { unit: "%", values });
}

async function* measureIdle(run: Run): AsyncGenerator<Figure> {
  const all = await eachRound({ ...run, rounds: 1 }, async (server) => {
    const { hostname, port } = new URL(server.url);
    const open = () => Deno.connect({ hostname, port: Number(port) });
    for (let i = 0; i < 20; i++) await askHealth(await open(), { closes: true });
    const before = residentBytes(server.pid);
    const connections: Deno.Conn[] = [];
    for (let i = 0; i < IDLE; i++) {
      const connection = await open();
      await askHealth(connection, { closes: false });
      connections.push(connection);
    }
    const bytes = residentBytes(server.pid) - before;
    for (const connection of connections) connection.close();
    return bytes / 1e6;
  });
  yield figure(run, `memory ${IDLE} idle connections`, { unit: "MB", values: all });
}

async function askHealth(
  connection: Deno.Conn,
  { closes }: { readonly closes: boolean },
): Promise<void> {
  await connection.write(
    new TextEncoder().encode("GET /health HTTP/1.1\r\nhost: a\r\nconnection: keep-alive\r\n\r\n"),
  );
  await connection.read(new Uint8Array(4096));
  if (closes) connection.close();
}

interface Sample {
  readonly x: number;
  readonly y: number;
}

/** Of the straight line nearest to samples. */
function slope(samples: readonly Sample[]): number {
  const mean = (of: (sample: Sample) => number) =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const x = mean((sample) => sample.x), y = mean((sample) => sample.y);
  return mean((sample) => (sample.x - x) * (sample.y - y)) / mean((sample) => (sample.x - x) ** 2);
}

/** Share of the time of cancels that is for warming up. */
const WARM = 0.4;

async function* measureCancels(run: Run): AsyncGenerator<Figure> {
  const { model: { ids }, minutes, requests: count } = run;
  const all = await eachRound({ ...run, rounds: 1 }, async (server) => {
    const churn = async (seed: number, until: number) => {
      for (; performance.now() < until; seed++) {
        const requests = mixedRequests(ids, { count, seed }).map((request, i) =>
          i % 3 === 0 ? request : { ...request, leavesAfter: 1 + (i * 7 + seed) % 20 }
        );
        await runLoad(server, { requests, streams: STREAMS });
      }
    };
    // Warm: compiled, the cache's pages touched, V8's heaps at the size that they take between collections.
    await churn(1000, performance.now() + minutes * 60_000 * WARM);
    const samples: Sample[] = [];
    const start = performance.now();
    const timer = setInterval(() => {
      samples.push({ x: (performance.now() - start) / 60_000, y: residentBytes(server.pid) / 1e6 });
    }, 1000);
    await churn(1, start + minutes * 60_000 * (1 - WARM));
    clearInterval(timer);
    return slope(samples);
  });
  yield figure(run, `memory growth, ${STREAMS} streams with cancels`, {
    unit: "MB/min",
    values: all,
  });
}

async function* measureHealth(run: Run): AsyncGenerator<Figure> {
  const { ids } = run.model;
  const all = await eachRound(run, async (server) => {
    const times: number[] = [];
    let isOver = false;
    const prompt = Array.from({ length: 2000 }, (_, i) => ids[1 + (i * 31) % (ids.length - 1)]!);
    const reading = runLoad(server, { requests: [{ prompt, tokens: 1 }], streams: 1 })
      .finally(() => isOver = true);
    while (!isOver) {
      const start = performance.now();
      await (await fetch(`${server.url}/health`)).body?.cancel();
      times.push(performance.now() - start);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await reading;
    return percentile(times, 0.99);
  });
  yield figure(run, "health p99 while 2000 tokens are read", { unit: "ms", values: all });
}

/** From the start of a process to `ready`, beside one that does nothing but load the model. */
async function* measureReady(run: Run): AsyncGenerator<Figure> {
  const all = await eachRound(run, (server) => Promise.resolve(server.readyMs));
  yield figure(run, "ready", { unit: "ms", values: all });
  const loads: number[] = [];
  for (let round = 0; round < run.rounds; round++) loads.push(await loadMs(run.settings));
  const [ours] = all as [number[]];
  const base = figure(run, "ready beside a process that loads", { unit: "ms", values: [ours] });
  const peerValue = median(loads);
  yield { ...base, peer: "load()", peerValue, ratio: ratioOf("ms", base.value, peerValue) };
}

async function loadMs({ path, threads, streams, cacheTokens }: ServerOptions): Promise<number> {
  const options = JSON.stringify({ threads, sessions: streams, cacheTokens });
  const script = `import { load } from ${JSON.stringify(`file://${ROOT}/mod.ts`)};
    await load(${JSON.stringify(path)}, ${options}); Deno.exit(0);`;
  const start = performance.now();
  const child = startChild(Deno.execPath(), {
    args: ["eval", "--no-check", script],
    ...{ stdin: "null", stdout: "null", stderr: "null", cwd: ROOT },
  });
  if (!(await child.status).success) throw new Error("The model could not be loaded");
  return performance.now() - start;
}
