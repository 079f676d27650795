// `deno task bench cpu`: this engine and llama.cpp (node-llama-cpp's CPU build) on the same file, with
// the same thread counts, in the same run. Every figure is the median of rounds in which the two take
// turns, because the machine's clock drifts by more than their difference; a first round warms both up
// and is thrown away.

import { type Figure, machineName, median, ratioOf } from "../support/figures.ts";
import { type Reply, type Runner, startRunner } from "../support/runner.ts";

const PEER = "llama.cpp (node-llama-cpp 3.21.1)";
const DECODE_PREFIX = 32;

// Arguments of `deno run`.
const ours = (path: string, threads: number, precision: string): string[] => [
  ...["bench/cpu/troodon.ts", path, String(threads), precision],
];
const theirs = (path: string, threads: number): string[] => [
  ...["--no-lock", "--no-config", "bench/cpu/llama_cpp.ts", path, String(threads)],
];

/** What to measure. */
export interface CpuBenchOptions {
  /** Short name and path of each model, with ids of a long text in its vocabulary. */
  readonly models: readonly {
    readonly name: string;
    readonly path: string;
    readonly ids: readonly number[];
  }[];
  readonly threads: readonly number[];
  /** Rounds that count. */
  readonly rounds: number;
  /** Lengths of the prompts of `prefill`. */
  readonly prompts: readonly number[];
  /** Tokens of `decode`. */
  readonly decode: number;
  /** Without the peer there is nothing to install. */
  readonly peer: boolean;
  /** Of this engine; the peer has one only. */
  readonly precision: "fast" | "exact";
}

interface Samples {
  readonly ours: number[];
  readonly theirs: number[];
}

/** Runs `measure` on each engine in turn, the order changing with the round. */
async function alternate(
  engines: readonly (Runner | undefined)[],
  rounds: number,
  measure: (engine: Runner) => Promise<number>,
): Promise<Samples> {
  const samples: [number[], number[]] = [[], []];
  for (let round = -1; round < rounds; round++) {
    for (const side of round % 2 === 0 ? [0, 1] as const : [1, 0] as const) {
      const engine = engines[side];
      if (!engine) continue;
      const value = await measure(engine);
      if (round >= 0) samples[side].push(value);
    }
  }
  return { ours: samples[0], theirs: samples[1] };
}

function figure(name: string, unit: string, samples: Samples): Figure {
  const value = median(samples.ours);
  const peerValue = samples.theirs.length > 0 ? median(samples.theirs) : null;
  return {
    bench: "cpu",
    case: name,
    unit,
    value,
    peer: peerValue === null ? null : PEER,
    peerValue,
    ratio: ratioOf(unit, value, peerValue),
    share: null,
    machine: machineName(),
  };
}

const rate = (tokens: number) => ({ ms = NaN }: Reply): number => tokens / ms * 1000;

/** Fresh processes, from the start of `deno` to the first token of a short prompt. */
async function measureStart(
  path: string,
  threads: number,
  ids: readonly number[],
  { rounds, peer, precision }: CpuBenchOptions,
): Promise<{ first: Samples; load: Samples }> {
  const first: Samples = { ours: [], theirs: [] };
  const load: Samples = { ours: [], theirs: [] };
  for (let round = 0; round < rounds; round++) {
    for (const side of ["ours", "theirs"] as const) {
      if (side === "theirs" && !peer) continue;
      const runner = await startRunner(
        side === "ours" ? ours(path, threads, precision) : theirs(path, threads),
      );
      const { ms = NaN } = await runner.ask({ op: "prefill", ids: ids.slice(0, DECODE_PREFIX) });
      first[side].push(runner.startMs + ms);
      load[side].push(runner.loadMs);
      await runner.close();
    }
  }
  return { first, load };
}

/** All figures, handed out as they are measured. */
export async function* cpuBench(options: CpuBenchOptions): AsyncGenerator<Figure> {
  const { models, threads, rounds, prompts, decode, peer, precision } = options;
  for (const { name, path, ids } of models) {
    for (const count of threads) {
      const how = precision === "exact" ? ", exact" : "";
      const label = `${name} ${count} thread${count === 1 ? "" : "s"}${how}`;
      const engines = [
        await startRunner(ours(path, count, precision)),
        peer ? await startRunner(theirs(path, count)) : undefined,
      ];
      const prefix = ids.slice(0, DECODE_PREFIX);
      const decoded = await alternate(
        engines,
        rounds,
        async (engine) =>
          rate(decode)(await engine.ask({ op: "decode", ids: prefix, count: decode })),
      );
      yield figure(`decode ${label}`, "tokens/s", decoded);
      for (const length of prompts) {
        const prompt = ids.slice(0, length);
        const measured = await alternate(
          engines,
          rounds,
          async (engine) => rate(length)(await engine.ask({ op: "prefill", ids: prompt })),
        );
        yield figure(`prefill ${length} ${label}`, "tokens/s", measured);
      }
      const memory = await alternate(
        engines,
        1,
        async (engine) => (await engine.ask({ op: "memory" })).bytes! / 1e6,
      );
      yield figure(`memory ${label}`, "MB", memory);
      for (const engine of engines) await engine?.close();
      const start = await measureStart(path, count, ids, options);
      yield figure(`first token ${label}`, "ms", start.first);
      yield figure(`load ${label}`, "ms", start.load);
    }
  }
}
