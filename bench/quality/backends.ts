// Part `backends` of `deno task bench quality`: what a number format costs on each backend at each precision. Of language
// models the mean KL divergence of the next token's distribution from that of the model in floats, and perplexity; of an
// ONNX encoder how far its vectors are from those in floats. Each with its spread, by which tests/quality_figures_test.ts
// judges the short form: the files as they are, one window.

import { load } from "../../engine/models/load.ts";
import { type GraphTensor, loadGraph } from "../../mod.ts";
import { type Figure, machineName } from "../support/figures.ts";

/** How a model is run. */
export interface Setting {
  readonly device: "wasm" | "gpu" | "reference";
  readonly precision: "exact" | "fast";
}

/** Backends and precisions that are compared. */
export const SETTINGS: readonly Setting[] = [
  { device: "wasm", precision: "exact" },
  { device: "wasm", precision: "fast" },
  { device: "gpu", precision: "exact" },
  { device: "gpu", precision: "fast" },
];

/** A mean, and the standard error of it. */
export interface Spread {
  readonly value: number;
  readonly spread: number;
}

/** What a model predicts behind each token of a text but the last. */
export interface Predictions {
  /** Log-probabilities of the vocabulary, a row a token. */
  readonly rows: readonly Float32Array[];
  /** The id of the text behind each row. */
  readonly next: readonly number[];
}

/** Windows of a text: so many tokens from each of some characters on. */
export interface Windows {
  readonly text: string;
  readonly tokens: number;
  /** Default: the beginning alone. */
  readonly starts?: readonly number[];
}

/** Runs windows of a text through a model, each by itself. */
export async function predict(
  path: string,
  { device, precision, threads = 2 }: Setting & { readonly threads?: number },
  { text, tokens, starts = [0] }: Windows,
): Promise<Predictions> {
  const contextLength = tokens + 1;
  using model = await load(path, { device, precision, threads, contextLength, logitRows: 32 });
  using session = model.createSession();
  const rows: Float32Array[] = [], next: number[] = [];
  for (const start of starts) {
    const ids = model.tokenizer.encode(text.slice(start)).slice(0, tokens);
    session.rewind(0);
    await session.eval(ids.slice(0, -1), { onLogits: (logits) => rows.push(logSoftmax(logits)) });
    next.push(...ids.slice(1));
  }
  return { rows, next };
}

function logSoftmax(logits: Float32Array): Float32Array {
  let max = -Infinity, sum = 0;
  for (const logit of logits) max = Math.max(max, logit);
  for (const logit of logits) sum += Math.exp(logit - max);
  const shift = max + Math.log(sum);
  return logits.map((logit) => logit - shift);
}

/** Mean KL divergence of predictions from others, in nats. */
export function divergence(from: Predictions, of: Predictions): Spread {
  return meanOf(from.rows.map((p, row) => {
    const q = of.rows[row]!;
    let sum = 0;
    for (let i = 0; i < p.length; i++) sum += Math.exp(p[i]!) * (p[i]! - q[i]!);
    return sum;
  }));
}

/** Perplexity of the text; the spread is that over tokens of how it differs from `from`. */
export function perplexityOf(from: Predictions, of: Predictions): Spread {
  const losses = ({ rows, next }: Predictions) => rows.map((row, i) => -row[next[i]!]!);
  const own = losses(of), base = losses(from);
  const value = Math.exp(meanOf(own).value);
  return { value, spread: value * meanOf(own.map((loss, i) => loss - base[i]!)).spread };
}

function meanOf(values: readonly number[]): Spread {
  const value = values.reduce((sum, one) => sum + one, 0) / values.length;
  const squares = values.reduce((sum, one) => sum + (one - value) ** 2, 0);
  return { value, spread: Math.sqrt(squares / Math.max(1, values.length - 1) / values.length) };
}

const BATCH = 4;
const TOKENS = 24;

/** Hidden states of an ONNX encoder on made-up ids, a vector a token. */
export async function encodeOnnx(
  path: string,
  { device, precision, threads = 2 }: Setting & { readonly threads?: number },
): Promise<Float32Array[]> {
  using graph = await loadGraph(path, { device, precision, threads });
  const length = BATCH * TOKENS, dims = [BATCH, TOKENS];
  const fill = (value: (i: number) => number) => ({
    data: BigInt64Array.from({ length }, (_, i) => BigInt(value(i))),
    dims,
  });
  const inputs = Object.fromEntries(graph.inputs.map(({ name }) => [
    name,
    fill(
      /mask/.test(name) ? () => 1 : /type/.test(name) ? () => 0 : (i) => 1000 + i * 7919 % 20000,
    ),
  ]));
  const results = await graph.run(inputs);
  const { data } = results[graph.outputs[0]!.name] as GraphTensor;
  const width = data.length / length;
  return Array.from(
    { length },
    (_, i) => Float32Array.from((data as Float32Array).subarray(i * width, (i + 1) * width)),
  );
}

/** Mean of 1 less the cosine of vectors with others. */
export function distance(from: readonly Float32Array[], of: readonly Float32Array[]): Spread {
  const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
  return meanOf(from.map((a, i) => {
    const b = of[i]!;
    return 1 - dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
  }));
}

/** What is compared. */
export interface BackendsBenchOptions {
  /** Files of each model by number format; the first, in floats, is what others are held against. */
  readonly models: readonly {
    readonly name: string;
    readonly files: AsyncIterable<{ readonly format: string; readonly path: string }>;
  }[];
  readonly encoders: readonly { readonly format: string; readonly path: string }[];
  readonly settings: readonly Setting[];
  readonly text: string;
  readonly tokens: number;
  readonly threads: number;
}

/** All figures, handed out as they are measured: value and, as `peerValue`, its spread. */
export async function* backendsBench(options: BackendsBenchOptions): AsyncGenerator<Figure> {
  const { models, encoders, settings, text, tokens, threads } = options;
  for (const { name, files } of models) {
    let float: Predictions | undefined;
    for await (const { format, path } of files) {
      for (const setting of settings) {
        const own = await attempt(
          setting,
          () => predict(path, { ...setting, threads }, { text, tokens }),
        );
        if (!own) continue;
        float ??= own;
        const label = `${format} ${setting.device} ${setting.precision} ${name}`;
        yield figure(`divergence ${label}`, "nats", divergence(float, own));
        yield figure(`perplexity ${label}`, "perplexity", perplexityOf(float, own));
      }
    }
  }
  let float: Float32Array[] | undefined;
  for (const { format, path } of encoders) {
    for (const setting of settings) {
      const own = await attempt(setting, () => encodeOnnx(path, { ...setting, threads }));
      if (!own) continue;
      float ??= own;
      const label = `${format} ${setting.device} ${setting.precision} minilm (ONNX)`;
      yield figure(`distance ${label}`, "1 - cosine", distance(float, own));
    }
  }
}

/** A backend that is not there, or a form that it does not serve, is named and left out. */
async function attempt<T>(setting: Setting, run: () => Promise<T>): Promise<T | undefined> {
  try {
    return await run();
  } catch (error) {
    if (setting.device !== "gpu") throw error;
    console.error(`left out: ${setting.device} ${setting.precision}, ${(error as Error).message}`);
    return undefined;
  }
}

function figure(name: string, unit: string, { value, spread }: Spread): Figure {
  return {
    ...{ bench: "quality", case: name, unit, value, peer: "spread", peerValue: spread },
    ...{ ratio: null, share: null, machine: machineName() },
  };
}
