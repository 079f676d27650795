// `deno task bench cpu`: this engine and its peers on the same file, with the same thread counts, in the same
// run. Every figure is the median of rounds in which all take turns, because the machine's clock drifts by
// more than their difference; a first round warms all up and is thrown away. A case starts the processes
// that it needs, with a context as long as it needs, and ends them.

import { boundsOf } from "./bounds.ts";
import type { CaseInput, Contender, CpuBenchOptions, Measured } from "./case.ts";
import { CASES, type CpuCase } from "./cases.ts";
import { type Figure, machineName, median, ratioOf } from "../support/figures.ts";
import { limitsText, machineLimits } from "../support/limits.ts";
import { type BenchModel, releaseModel } from "../support/models.ts";
import { joiningArguments } from "../../wasm/joining_flag.ts";
import { startOwn, startRunner } from "../support/runner.ts";
import { type Peer, preparePeers, type Start } from "./peers.ts";

export { CASE_NAMES } from "./case.ts";

/** What a model is measured with unless it is said: one of a gigabyte takes seconds for what a small one does in tenths. */
const DEFAULTS = {
  small: { rounds: 5, decode: 64, prompts: [128, 512] },
  random: { rounds: 3, decode: 32, prompts: [128] },
} as const;

/** What is asked for; the rest hangs on the model. */
export type CpuBenchRequest =
  & Omit<CpuBenchOptions, keyof typeof DEFAULTS.small>
  & { readonly [Key in keyof typeof DEFAULTS.small]: CpuBenchOptions[Key] | undefined };

/** All figures, handed out as they are measured. */
export async function* cpuBench(request: CpuBenchRequest): AsyncGenerator<Figure> {
  const peers = request.peer ? await preparePeers() : [];
  try {
    for (const model of request.models) {
      const options = optionsFor(model, request);
      for (const threads of options.threads) yield* figuresOfModel(model, threads, options, peers);
    }
  } finally {
    for (const model of request.models) await releaseModel(model);
  }
}

function optionsFor({ isRandom }: BenchModel, request: CpuBenchRequest): CpuBenchOptions {
  const { threads, rounds, decode, prompts } = request;
  const usual = DEFAULTS[isRandom ? "random" : "small"];
  return {
    ...request,
    threads: isRandom && !request.areThreadsAsked ? [Math.max(...threads)] : threads,
    rounds: rounds ?? usual.rounds,
    decode: decode ?? usual.decode,
    prompts: prompts ?? usual.prompts,
  };
}

async function* figuresOfModel(
  model: BenchModel,
  threads: number,
  options: CpuBenchOptions,
  peers: readonly Peer[],
): AsyncGenerator<Figure> {
  const { precision } = options;
  const sides = contendersOf(model, threads, options, peers);
  const limits = await machineLimits(threads);
  console.error(`${threads} threads, ${limitsText(limits)}`);
  const bounds = await boundsOf(model.path, { threads, precision }, limits);
  for (const { name, run } of CASES.filter(wanted(options, model, threads))) {
    const minutes = (performance.now() / 60_000).toFixed(1);
    console.error(`${minutes} min: ${name}, ${label(model, threads, options)}`);
    try {
      for await (const measured of run({ model, threads, options, bounds, ...sides })) {
        yield* figuresOf(measured, label(model, threads, options));
      }
    } catch (error) {
      throw new Error(`Case ${name} of ${model.name} failed`, { cause: error });
    }
  }
}

/** Of a model with random weights, long contexts say nothing that the others do not. */
function wanted(options: CpuBenchOptions, { isRandom }: BenchModel, threads: number) {
  const most = Math.max(...options.threads);
  return ({ name, forLargeModels, withMostThreads }: CpuCase): boolean =>
    options.cases.includes(name) && (!isRandom || forLargeModels) &&
    (!withMostThreads || threads === most);
}

function label({ name }: BenchModel, threads: number, { precision }: CpuBenchOptions): string {
  const how = precision === "exact" ? ", exact" : "";
  return `${name} ${threads} thread${threads === 1 ? "" : "s"}${how}`;
}

/** Cases in which vectors of 128 bits are not worth a process of their own. */
const NOT_JOINED: Peer["refuses"] = {
  busy: "what happens to its threads is the same",
  memory: "it takes what the other one takes",
  start: "it loads the same",
};

function contendersOf(
  { path }: BenchModel,
  threads: number,
  { precision }: CpuBenchOptions,
  peers: readonly Peer[],
): Pick<CaseInput, "contenders" | "bare"> {
  const start = { path, threads, context: 1024, sequences: 1 };
  const command = (script: string, { context, sequences }: Start) => [
    ...[`bench/cpu/${script}.ts`, path, `${threads}`, `${context}`, precision, `${sequences}`],
  ];
  const ourSide = (name: string, script: string): Contender => ({
    ...{ name, peer: undefined },
    start: (changes) => startOwn(command(script, { ...start, ...changes })),
  });
  const canJoin = joiningArguments(Deno.build.arch).length > 0;
  const unjoined: Peer = {
    name: "troodon without V8's flag",
    ...{ refuses: NOT_JOINED, takesTokens: true, longest: 1024, isFarBehind: false },
    command: (start) => command("troodon", start),
  };
  const contenders = [
    ourSide("troodon", "troodon"),
    ...[...peers, ...peers.length > 0 && canJoin ? [unjoined] : []].map((peer): Contender => ({
      ...{ name: peer.name, peer },
      start: (changes) => startRunner(peer.command({ ...start, ...changes })),
    })),
  ];
  return { contenders, bare: ourSide("the executable alone", "troodon_batch") };
}

/** A line a peer; one line without, where nobody else took part. */
function* figuresOf(
  { name, unit, samples, bound }: Measured,
  label: string,
): Generator<Figure> {
  const [own, ...others] = [...samples].map(([{ name }, values]) => ({
    ...{ name, value: median(values) },
  }));
  for (const other of others.length > 0 ? others : [undefined]) {
    yield {
      bench: "cpu",
      case: `${name} ${label}`,
      unit,
      value: own!.value,
      peer: other?.name ?? null,
      peerValue: other?.value ?? null,
      ratio: ratioOf(unit, own!.value, other?.value ?? null),
      share: bound === undefined ? null : own!.value / bound,
      machine: machineName(),
    };
  }
}
