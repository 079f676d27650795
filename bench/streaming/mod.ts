// `deno task bench streaming`: models that are read from their files while they compute (spec LF-8, LF-9), beside the same
// without any overlap.
//
//   overlap  a random TinyLlama whose source is held back until loading takes as long as computing, and half as long
//   large    a random model of 40B shape and 24 GB that answers out of a few hundred megabytes, beside what the disk
//            gives to the same threads, both with a cold page cache
//
// Files are written into a folder for temporary files and removed, unless `--keep` names one to leave them in.

import { generate, load, type LoadOptions, type Model, type StreamingFigures } from "../../mod.ts";
import { type LlamaShape, writeRandomLlama } from "../../tests/support/random_llama.ts";
import { type Figure, machineName, ratioOf } from "../support/figures.ts";

/** The parts, in order. */
export const PARTS = ["overlap", "large"] as const;

/** What to measure. */
export interface StreamingBenchOptions {
  readonly parts: readonly (typeof PARTS)[number][];
  /** Threads that compute. */
  readonly threads: number;
  /** Steps that are measured. */
  readonly decode: number;
  readonly precision: "fast" | "exact";
  /** Folder of the files; absent: a temporary one. */
  readonly keep?: string | undefined;
}

const TINY_LLAMA: LlamaShape = {
  ...{ layers: 22, hidden: 2048, heads: 32, kvHeads: 4, headDim: 64 },
  ...{ feedForward: 5632, vocabulary: 32_000, context: 2048 },
};
const LARGE: LlamaShape = {
  ...{ layers: 60, hidden: 8192, heads: 64, kvHeads: 8, headDim: 128 },
  ...{ feedForward: 22_016, vocabulary: 65_024, context: 2048 },
};
/** Tokens of an answer of the large one. */
const LARGE_TOKENS = 2;
/** Bytes that are read to learn what the disk gives. */
const PROBE_BYTES = 4e9;

/** Measures; figures come as they are known. */
export async function* streamingBench(options: StreamingBenchOptions): AsyncGenerator<Figure> {
  const folder = options.keep ?? await Deno.makeTempDir();
  try {
    if (options.parts.includes("overlap")) yield* overlap(folder, options);
    if (options.parts.includes("large")) yield* large(folder, options);
  } finally {
    if (!options.keep) await Deno.remove(folder, { recursive: true });
  }
}

async function written(folder: string, name: string, shape: LlamaShape): Promise<string> {
  const path = `${folder}/${name}.gguf`;
  try {
    await Deno.stat(path);
  } catch {
    await writeRandomLlama(path, shape, "Q4_0");
  }
  return path;
}

function figure(name: string, unit: string, value: number, more: Partial<Figure> = {}): Figure {
  const { peerValue = null } = more;
  return {
    ...{ bench: "streaming", case: name, unit, value, peer: null, share: null },
    ...more,
    ...{ peerValue, ratio: ratioOf(unit, value, peerValue), machine: machineName() },
  };
}

/** Rows of a step whose loading is to be hidden: with one, computing is as fast as a thread packs what it reads. */
const STEP_ROWS = 8;

interface Steps {
  readonly perSecond: number;
  readonly figures: StreamingFigures | undefined;
}

/** The rate of rows in steps of some, after two. */
async function rateOf(model: Model, steps: number): Promise<Steps> {
  using session = model.createSession();
  const run = async (count: number): Promise<number> => {
    const begin = performance.now();
    for (let i = 0; i < count; i++) {
      await session.eval(Array.from({ length: STEP_ROWS }, (_, row) => 300 + STEP_ROWS * i + row));
    }
    return performance.now() - begin;
  };
  await run(2);
  model.streaming();
  return { perSecond: 1000 * STEP_ROWS * steps / await run(steps), figures: model.streaming() };
}

async function* overlap(
  folder: string,
  { threads, decode, precision }: StreamingBenchOptions,
): AsyncGenerator<Figure> {
  const path = await written(folder, "tinyllama", TINY_LLAMA);
  const options: LoadOptions = {
    device: "wasm",
    threads,
    precision,
    contextLength: STEP_ROWS * (decode + 2),
  };
  const at = async (stream: LoadOptions["stream"]) => {
    using model = await load(path, { ...options, ...stream !== undefined && { stream } });
    return { ...await rateOf(model, decode), bytes: model.memory.streamed?.stepBytes ?? 0 };
  };
  const whole = await at(undefined);
  yield figure("steps of tinyllama held whole", "tokens/s", whole.perSecond);
  const { bytes } = await at({ depth: 1 });
  for (const [what, part] of [["as long as", 1], ["half as long as", 0.5]] as const) {
    const bytesPerSecond = Math.round(bytes * whole.perSecond / STEP_ROWS / part);
    const name = `steps of tinyllama, loading ${what} computing`;
    const sync = await at({ depth: 1, loaders: 0, bytesPerSecond });
    yield figure(`${name}, none of it hidden`, "tokens/s", sync.perSecond);
    for (const depth of [1, 2] as const) {
      const { perSecond, figures } = await at({ depth, bytesPerSecond });
      const peer = { peer: "synchronous", peerValue: sync.perSecond };
      yield figure(`${name}, depth ${depth}`, "tokens/s", perSecond, peer);
      yield figure(`${name}, depth ${depth}: hidden`, "of 1", figures!.hidden);
    }
  }
}

/** Takes a file out of the page cache, where the system has a tool for that. */
async function cool(path: string): Promise<void> {
  await new Deno.Command("dd", {
    args: [`if=${path}`, "iflag=nocache", "count=0"],
    stderr: "null",
  }).output();
}

/** What the disk gives to two threads that read one file in runs, in bytes a second. */
async function diskRate(path: string): Promise<number> {
  const source = `onmessage = ({ data: [path, from, to] }) => {
    const file = Deno.openSync(path), area = new Uint8Array(1 << 18);
    file.seekSync(from, 0);
    for (let at = from; at < to; at += area.length) file.readSync(area);
    postMessage(0);
    close();
  };`;
  const begin = performance.now();
  await Promise.all([0, 1].map((half) =>
    new Promise<void>((resolve, reject) => {
      const url = "data:text/javascript," + encodeURIComponent(source);
      const worker = new Worker(url, { type: "module" });
      worker.onmessage = () => resolve();
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage([path, half * PROBE_BYTES / 2, (half + 1) * PROBE_BYTES / 2]);
    })
  ));
  return 1000 * PROBE_BYTES / (performance.now() - begin);
}

/** Most bytes that this process has held, as Linux tells. */
function peakBytes(): number {
  const status = Deno.readTextFileSync("/proc/self/status");
  return 1024 * Number(/^VmHWM:\s*(\d+)/m.exec(status)?.[1]);
}

async function* large(
  folder: string,
  { threads, precision }: StreamingBenchOptions,
): AsyncGenerator<Figure> {
  const path = await written(folder, "40b", LARGE), before = peakBytes();
  await cool(path);
  const first = await diskRate(path);
  await cool(path);
  using model = await load(path, {
    ...{ device: "wasm", threads, precision, contextLength: 256, stream: true },
  });
  const begin = performance.now();
  let tokens = 0;
  for await (
    const _ of generate(model, "a", { maxTokens: LARGE_TOKENS, temperature: 0, ignoreEos: true })
  ) tokens++;
  const seconds = (performance.now() - begin) / 1000, { steps, hidden } = model.streaming()!;
  const { stepBytes, slots } = model.memory.streamed!;
  await cool(path);
  // Disks of machines in the cloud drift: what it gave before and behind the answer.
  const last = await diskRate(path), rate = 2 / (1 / first + 1 / last);
  yield figure("read 40b from disk, cold, 2 threads, before", "GB/s", first / 1e9);
  yield figure("read 40b from disk, cold, 2 threads, behind", "GB/s", last / 1e9);
  const least = stepBytes / rate;
  yield figure("decode 40b of 24 GB", "tokens/s", steps / seconds, {
    ...{ peer: "bytes / disk bandwidth", peerValue: 1 / least, share: steps * least / seconds },
  });
  yield figure("decode 40b of 24 GB: hidden", "of 1", hidden);
  yield figure("memory 40b: slots", "GB", slots / 1e9);
  yield figure("memory 40b: most resident", "GB", peakBytes() / 1e9);
  yield figure("memory 40b: planned and held before", "GB", (model.memory.total + before) / 1e9);
  if (tokens === 0) throw new Error("no token came");
}
