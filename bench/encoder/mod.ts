// `deno task bench encoder`: sentences a second with all-MiniLM-L6-v2, beside onnxruntime-web and
// transformers.js on native onnxruntime (float32, as they are published), same sentences, same threads. The
// engines take turns every hundred sentences, because the machine's clock drifts by more than their
// difference. Peers get the batch that suits them best: the padding of a large one costs them more than it
// brings.

import { type Figure, machineName, median, ratioOf } from "../support/figures.ts";
import { type Runner, startOwn, startRunner } from "../support/runner.ts";
import { preparePeers, versionOf } from "./peers.ts";
import { benchSentences } from "./sentences.ts";

/** What to measure. */
export interface EncoderBenchOptions {
  /** The model's safetensors file. */
  readonly path: string;
  readonly threads: readonly number[];
  /** Rounds that count; in each every engine embeds all sentences. */
  readonly rounds: number;
  readonly sentences: number;
  readonly peer: boolean;
  /** ONNX file of the model, for the peers. */
  readonly onnx: string | undefined;
}

const SLICE = 100;
const BATCHES: readonly number[] = [1, 8, 32];
/** Vectors of the peers are those of the model; of the fast path, near them. */
const LEAST_COSINE = 0.999;

interface Contender {
  readonly name: string;
  readonly runner: Runner;
  batch: number;
  /** Milliseconds of each round. */
  readonly times: number[];
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const product = a.reduce((sum, value, i) => sum + value * b[i]!, 0);
  return product / Math.hypot(...a) / Math.hypot(...b);
}

async function time({ runner, batch }: Contender, texts: readonly string[]): Promise<number> {
  return (await runner.ask({ op: "embed", texts, batch })).ms!;
}

/** Starts the engines, and has each embed some sentences in every batch: the fastest is kept. */
async function warmUp(contenders: readonly Contender[], texts: readonly string[]): Promise<void> {
  let exact: readonly number[] | undefined;
  for (const contender of contenders) {
    const { vector } = await contender.runner.ask({ op: "embed", texts, batch: 8 });
    exact ??= vector!;
    const similar = cosine(exact, vector!);
    if (similar < LEAST_COSINE) {
      throw new Error(`${contender.name} makes another vector: cosine ${similar}`);
    }
  }
  for (const contender of contenders) {
    let best = Infinity;
    for (const batch of BATCHES) {
      const ms = await time({ ...contender, batch }, texts);
      if (ms < best) [best, contender.batch] = [ms, batch];
    }
  }
}

/** All figures, handed out as they are measured. */
export async function* encoderBench(options: EncoderBenchOptions): AsyncGenerator<Figure> {
  const { path, rounds, peer, onnx } = options;
  const texts = benchSentences(options.sentences);
  const slices = Array.from(
    { length: Math.ceil(texts.length / SLICE) },
    (_, i) => texts.slice(i * SLICE, (i + 1) * SLICE),
  );
  const folders = peer ? await preparePeers(path.replace(/[^/]*$/, ""), onnx) : undefined;
  for (const threads of options.threads) {
    const start = async (name: string, runner: Promise<Runner>): Promise<Contender> => ({
      ...{ name, runner: await runner, batch: 1, times: [] },
    });
    const ours = (precision: string) =>
      startOwn(["bench/encoder/troodon.ts", path, `${threads}`, precision]);
    const theirs = (kind: string) =>
      startRunner([
        ...[
          "--no-lock",
          "--no-config",
          "--node-modules-dir=manual",
          "bench/encoder/transformers_js.ts",
        ],
        ...[folders!.packages, folders!.models, kind, `${threads}`],
      ]);
    const [float, fast] = [await start("float", ours("exact")), await start("fast", ours("fast"))];
    const web = `onnxruntime-web ${versionOf("onnxruntime-web")}`;
    const native = `transformers.js ${versionOf("@huggingface/transformers")}, native`;
    const peers = folders
      ? [await start(web, theirs("web")), await start(native, theirs("native"))]
      : [];
    const all = [float, fast, ...peers];
    await warmUp(all, slices[0]!);
    for (let round = 0; round < rounds; round++) {
      for (const contender of all) contender.times.push(0);
      for (const [i, slice] of slices.entries()) {
        for (const contender of i % 2 === 0 ? all : all.toReversed()) {
          contender.times[round]! += await time(contender, slice);
        }
      }
    }
    for (const { runner } of all) await runner.close();
    const label = `${threads} thread${threads === 1 ? "" : "s"}`;
    for (const own of [float, fast]) {
      for (const other of peers.length > 0 ? peers : [undefined]) {
        yield figure(`embed ${own.name} minilm ${label}`, texts.length, own, other);
      }
    }
  }
}

function figure(name: string, count: number, own: Contender, other?: Contender): Figure {
  const rate = ({ times }: Contender) => median(times.map((ms) => count / ms * 1000));
  const value = rate(own), peerValue = other ? rate(other) : null;
  return {
    ...{ bench: "encoder", case: name, unit: "sentences/s", value },
    peer: other ? `${other.name}, batch ${other.batch}` : null,
    peerValue,
    ratio: ratioOf("sentences/s", value, peerValue),
    share: null,
    machine: machineName(),
  };
}
