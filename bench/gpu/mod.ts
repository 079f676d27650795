// `deno task bench gpu`: models on this machine's WebGPU device, a real one and shapes of larger ones with random weights.
// The public API is measured (`generate`: prompts, answers to real text, many queries, a schema) beside the executable
// below it (`plain`: one token at a time, each read before the next is submitted; `ahead`: steps submitted ahead; `batch`:
// many queries), and where a path to llama-bench is given llama.cpp on the same files in the same run. A second of
// decoding comes before what counts, because clocks and compilers take their time. Kernels are measured by GPU timestamps.
// Each part runs in a process of its own. Single kernels on rotating weights: bench/gpu/kernels.ts.

import { UsageError } from "../../engine/cli/args.ts";
import { pathKind } from "../../engine/io.ts";
import { TextLineStream } from "../support/lines.ts";
import { startChild } from "../../tools/support/children.ts";
import { type Figure, machineName, median, ratioOf } from "../support/figures.ts";
import { FIRST_TOKEN, type PeerFigures, peerFigures, peerValueOf } from "./llama_bench.ts";
import { findGpuModel, type GpuModel } from "./models.ts";

/** What to measure. */
export interface GpuBenchOptions {
  /** Names of models. */
  readonly models: readonly string[];
  /** Rounds that count; the first one is thrown away. */
  readonly rounds: number;
  /** Lengths of prompts. */
  readonly prompts: readonly number[];
  /** Tokens of a decode run. */
  readonly decode: number;
  /** Positions before decoding begins. */
  readonly contexts: readonly number[];
  /** Steps ahead. */
  readonly ahead: number;
  readonly precision: "fast" | "exact";
  /** Whose WebGPU, as `--gpu` says it. */
  readonly gpu: string;
}

/** What one process is asked for. */
export interface PartOptions extends GpuBenchOptions {
  readonly model: GpuModel;
}

/** Queries in one step. */
export const QUERIES = [8, 32] as const;

/** What is measured in one process: a driver that hangs takes no other figures with it. */
export const PARTS = ["start", "generate", "plain", "ahead", "batch", "kernels"] as const;
/** One of {@linkcode PARTS}. */
export type Part = typeof PARTS[number];

/** WebGPUs that `--gpu` has a name for; others are files. */
const GIVEN: ReadonlySet<string> = new Set(["built-in", "dawn"]);

/** All figures, handed out as they are measured; what takes longer than `timeout` seconds is given up. */
export async function* gpuBench(
  options: GpuBenchOptions,
  { parts = PARTS, timeout, llamaBench }: {
    readonly parts?: readonly Part[];
    readonly timeout: number;
    /** Path of llama.cpp's llama-bench. */
    readonly llamaBench?: string | undefined;
  },
): AsyncGenerator<Figure> {
  const { gpu } = options;
  // A program without a folder is one of PATH.
  const files = [llamaBench?.includes("/") ? llamaBench : "", GIVEN.has(gpu) ? "" : gpu];
  const absent = files.find((path) => path !== "" && pathKind(path) === undefined);
  if (absent !== undefined) throw new UsageError(`${absent}: no such file`);
  for (const name of options.models) {
    const model = await findGpuModel(name);
    const peer = llamaBench === undefined
      ? undefined
      : await peerFigures({ ...options, program: llamaBench, path: model.path, queries: QUERIES });
    for (const part of parts) {
      const figures = part === "start"
        ? startFigures({ ...options, model })
        : inProcess({ ...options, model }, part, timeout);
      for await (const figure of figures) yield peer ? beside(figure, peer) : figure;
    }
  }
}

/** The figure with what the peer reached in the same case. */
function beside(figure: Figure, peer: PeerFigures): Figure {
  const peerValue = figure.peer === null ? peerValueOf(peer, figure) : undefined;
  if (peerValue === undefined) return figure;
  const ratio = ratioOf(figure.unit, figure.value, peerValue);
  return { ...figure, peer: peer.name, peerValue, ratio };
}

/** The command line in the npm package, where that has been built (`deno task build package`). */
const PACKAGE_CLI = "dist/npm/bin/troodon.js";

/**
 * From the start of a process of the command line to its first token, and to its end, behind that token: of the sources, as
 * `deno task troodon` runs them, and of the npm package; they take turns.
 */
async function* startFigures(
  { model: { name, path }, gpu, rounds }: PartOptions,
): AsyncGenerator<Figure> {
  const cwd = new URL("../../", import.meta.url);
  const times = new Map([["main.ts", { tokens: [] as number[], ends: [] as number[] }]]);
  if (pathKind(new URL(PACKAGE_CLI, cwd).pathname)) {
    times.set(PACKAGE_CLI, { tokens: [], ends: [] });
  }
  const how = ["--device", "gpu", "--gpu", gpu, "--raw", "-p", "The sea is", "--max-tokens", "1"];
  for (let round = -1; round < rounds; round++) {
    for (const [entry, own] of times) {
      const start = performance.now();
      const run = ["run", "--allow-all", "--unstable-lazy-dynamic-imports", entry, "generate"];
      const child = startChild(Deno.execPath(), {
        args: [...run, path, ...how],
        ...{ cwd, stdin: "null", stdout: "piped", stderr: "inherit" },
      });
      let token = Infinity;
      for await (const _ of child.stdout) token = Math.min(token, performance.now() - start);
      const { success } = await child.status;
      if (!success) return console.error(`absent: a first token of ${name}: its process failed`);
      if (round < 0) continue;
      own.tokens.push(token);
      own.ends.push(performance.now() - start);
    }
  }
  const whose = gpu === "built-in" ? "" : ", Dawn";
  for (const [entry, own] of times) {
    const what = `${FIRST_TOKEN} ${name}${whose}${entry === PACKAGE_CLI ? ", npm package" : ""}`;
    for (const [until, ms] of [["", own.tokens], [", to its end", own.ends]] as const) {
      yield {
        ...{ bench: "gpu", case: `${what}${until}`, unit: "ms", value: median(ms) },
        ...{ peer: null, peerValue: null, ratio: null, share: null, machine: machineName() },
      };
    }
  }
}

async function* inProcess(
  options: PartOptions,
  part: Part,
  timeout: number,
): AsyncGenerator<Figure> {
  const child = startChild(Deno.execPath(), {
    args: ["run", "--allow-all", "bench/gpu/part.ts", part, JSON.stringify(options)],
    cwd: new URL("../../", import.meta.url),
    stdout: "piped",
    stderr: "inherit",
  });
  const timer = setTimeout(() => {
    console.error(`${part} of ${options.model.name} is stuck after ${timeout} s: given up`);
    child.kill("SIGKILL");
  }, timeout * 1000);
  try {
    const lines = child.stdout.pipeThrough(new TextDecoderStream())
      .pipeThrough(new TextLineStream());
    for await (const line of lines) if (line.startsWith("{")) yield JSON.parse(line) as Figure;
    const { code } = await child.status;
    if (code !== 0) console.error(`${part} of ${options.model.name} ended with code ${code}`);
  } finally {
    clearTimeout(timer);
  }
}
