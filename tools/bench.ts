// `deno task bench NAME`: measurements with a peer in the same run. The micro benches of single parts are
// `deno bench bench/` (or `deno task bench micro [FILTER]`).

import { type ParsedLine, UsageError } from "../engine/cli/args.ts";
import { type Figure, figureTable } from "../bench/support/figures.ts";
import type { BenchModel } from "../bench/support/models.ts";
import { deno, ROOT, runTask } from "./support/task.ts";

const FLAGS = {
  models: {
    type: "string",
    multiple: true,
    help: "models to measure (smollm2-135m, gemma3-270m, tinyllama-q4_0, -q8_0, -lf8, llama-5gb; " +
      "llama-1b-q4_k_m, -q8_0, -q4_0, -lf8, likewise llama-3b and llama-8b: random weights, kept in the cache)",
  },
  threads: { type: "string", value: "N,N", help: "thread counts (1 and all)" },
  rounds: { type: "integer", min: 1, max: 100, help: "medians of them (5; random weights 3)" },
  prompt: {
    type: "string",
    value: "N,N",
    help: "lengths of prompts in tokens (cpu 128,512; gpu 128,512,2048)",
  },
  decode: { type: "integer", min: 1, max: 512, help: "tokens of a decode run (64; 32)" },
  placement: { type: "string", value: "P", help: "profile: over several devices (wasm)" },
  queries: { type: "string", value: "N,N", help: "placement: texts at once (1)" },
  lanes: { type: "integer", min: 1, help: "placement: steps under way at once (groups)" },
  devices: { type: "string", value: "NAME,…", help: "placement: what numbers mean (GPUs)" },
  "max-device-bytes": { type: "integer", min: 1, help: "placement: most memory on each GPU" },
  "no-peer": { type: "boolean", help: "only this engine" },
  "peer-isa": {
    type: "string",
    choices: ["avx2"],
    help: "onnx: native onnxruntime once more, held to these instructions (needs cc and objdump)",
  },
  precision: { type: "string", choices: ["fast", "exact"], help: "of this engine (fast)" },
  contexts: {
    type: "string",
    value: "N,N",
    help: "positions before decoding (cpu 1000,4000; gpu 0,4096; layouts 256,…,16000)",
  },
  timeout: { type: "integer", min: 1, help: "gpu: seconds of a part before it is given up (90)" },
  ahead: { type: "integer", min: 1, max: 64, help: "gpu: steps submitted ahead (8)" },
  gpu: { type: "string", value: "built-in|dawn|FILE", help: "gpu: whose WebGPU (built-in)" },
  sentences: { type: "integer", min: 100, max: 1000, help: "encoder: texts of a round (1000)" },
  onnx: {
    type: "string",
    value: "FILE",
    help: "encoder: all-MiniLM-L6-v2 for the peers (fetched)",
  },
  text: { type: "string", value: "FILE", help: "quality: text to predict (the tests' own)" },
  windows: { type: "integer", min: 1, help: "quality: windows of 512 tokens to score (6)" },
  width: {
    type: "integer",
    min: 1,
    help: "quality: dimensions of the turned stream (the model's own; files: 768)",
  },
  formats: {
    type: "string",
    multiple: true,
    value: "F,F",
    help: "formats, quality: number formats (all)",
  },
  seed: { type: "integer", min: 1, help: "quality: seed of the turn of perplexity's models (1)" },
  jobs: {
    type: "integer",
    min: 1,
    help: "quality: formats at a time, which share the threads (1)",
  },
  shapes: {
    type: "string",
    value: "S,S",
    help: "formats: COLUMNSxOUTPUTS or COLUMNSxOUTPUTSxROWS (2048x5632,4096x4096)",
  },
  backend: {
    type: "string",
    choices: ["wasm", "gpu"],
    help: "formats, quality: only this one; tl, lf, if, md: where to compute (wasm)",
  },
  power: { type: "boolean", help: "lf: read the processor's energy counter (RAPL)" },
  "llama-bench": {
    type: "string",
    value: "PATH",
    help: "gpu: llama.cpp's llama-bench as the peer, and llama-batched-bench if it lies beside it",
  },
  "llama-server": {
    type: "string",
    value: "PATH",
    help: "serve: llama.cpp's own server as the peer (node-llama-cpp behind the same endpoint)",
  },
  requests: { type: "integer", min: 1, help: "serve: requests of a round (96)" },
  minutes: { type: "number", min: 0.1, help: "serve: of clients that come and leave (1)" },
  keep: { type: "string", value: "DIR", help: "streaming: where to leave its files (24 GB)" },
  json: { type: "boolean", help: "one JSON line a figure" },
} as const;

/** Benches of papers: the models that stand for theirs, lengths of prompts, tokens of an answer. */
const PAPERS = {
  tl: {
    bench: async () => (await import("../bench/papers/tl.ts")).tl,
    ...{ models: ["smollm2-135m", "gemma3-270m"], prompts: [128, 1024, 2048], decode: 32 },
  },
  lf: {
    bench: async () => (await import("../bench/papers/lf.ts")).lf,
    ...{ models: ["tinyllama-lf8"], prompts: [2], decode: 256 },
  },
  if: {
    bench: async () => (await import("../bench/papers/if.ts")).inferflow,
    ...{ models: ["smollm2-135m", "tinyllama-q4_0"], prompts: [16], decode: 32 },
  },
  md: {
    bench: async () => (await import("../bench/papers/md.ts")).md,
    ...{ models: ["smollm2-135m", "gemma3-270m"], prompts: [1024], decode: 256 },
  },
};

/** What a bench is asked for; without an exit code it went well. */
interface Request {
  readonly name: string;
  /** What stands behind its name: parts, cases, placements, a commit. */
  readonly rest: readonly string[];
  readonly flags: ParsedLine<typeof FLAGS>["flags"];
}
type Bench = (request: Request) => Promise<number | void>;

/** The benches by name; each loads what it measures when it is asked for. */
const BENCHES: Readonly<Record<string, Bench>> = {
  async browser({ flags }) {
    const { browserBench } = await import("../bench/browser/mod.ts");
    const [model] = await models(flags, "smollm2-135m");
    const { rounds = 5, decode = 64 } = flags;
    await print(browserBench({ ...model, threads: mostThreads(flags), rounds, decode }), flags);
  },
  async convolutions({ flags }) {
    const { convolutionBench } = await import("../bench/convolutions.ts");
    await print(convolutionBench(flags.rounds ?? 5), flags);
  },
  async cpu({ rest, flags }) {
    const { CASE_NAMES, cpuBench } = await import("../bench/cpu/mod.ts");
    const usual = ["smollm2-135m", "gemma3-270m", "tinyllama-q4_0", "tinyllama-lf8"];
    const request = {
      cases: chosen(CASE_NAMES, "bench cpu has the cases", rest),
      models: await models(flags, ...usual),
      ...{ threads: threads(flags), areThreadsAsked: flags.threads !== undefined },
      ...{ precision: flags.precision ?? "fast", peer: !flags["no-peer"] },
      contexts: numbers(flags.contexts, "contexts", [1000, 4000]),
      ...{ rounds: flags.rounds, decode: flags.decode },
      prompts: flags.prompt === undefined ? undefined : numbers(flags.prompt, "prompt", []),
    };
    await print(cpuBench(request), flags);
  },
  async edge({ flags }) {
    const { edgeBench } = await import("../bench/edge/mod.ts");
    await print(edgeBench({ rounds: flags.rounds ?? 20 }), flags);
  },
  async encoder({ flags }) {
    const { encoderBench } = await import("../bench/encoder/mod.ts");
    const { pullModel } = await import("../engine/formats/hub/pull.ts");
    const { rounds = 3, sentences = 1000, onnx } = flags;
    const path = await pullModel("minilm"), peer = !flags["no-peer"];
    await print(
      encoderBench({ path, threads: threads(flags), rounds, sentences, peer, onnx }),
      flags,
    );
  },
  async formats({ flags }) {
    const { BACKENDS, printFormats } = await import("../bench/formats/mod.ts");
    const { DEFAULT_FORMATS, DEFAULT_SHAPES, parseShape } = await import(
      "../bench/formats/case.ts"
    );
    const { isFormatName } = await import("../quant/mod.ts");
    const formats = names(flags.formats) ?? DEFAULT_FORMATS;
    const unknown = formats.find((format) => !isFormatName(format));
    if (unknown) throw new UsageError(`--formats: there is no number format "${unknown}"`);
    const options = {
      ...{ formats, threads: threads(flags), rounds: flags.rounds ?? 5 },
      shapes: flags.shapes?.split(",").map((text) => usage(() => parseShape(text))) ??
        DEFAULT_SHAPES,
      exact: flags.precision === "exact",
    };
    const backends = Object.keys(BACKENDS).filter((one) => one === (flags.backend ?? one));
    await printFormats(backends, options, flags.json ?? false);
  },
  async gpu({ rest, flags }) {
    const { gpuBench, PARTS } = await import("../bench/gpu/mod.ts");
    const options = {
      models: names(flags.models) ?? ["smollm2", "1b", "8b"],
      rounds: flags.rounds ?? 5,
      prompts: numbers(flags.prompt, "prompt", [128, 512, 2048]),
      decode: flags.decode ?? 128,
      contexts: numbers(flags.contexts, "contexts", [0, 4096], 0),
      ahead: flags.ahead ?? 8,
      precision: flags.precision ?? "fast",
      gpu: flags.gpu ?? "built-in",
    };
    const figures = gpuBench(options, {
      parts: chosen(PARTS, "bench gpu has the parts", rest),
      ...{ timeout: flags.timeout ?? 90, llamaBench: flags["llama-bench"] },
    });
    const measured = await print(figures, flags);
    return measured.length > 0 ? 0 : 1;
  },
  async heartbeat({ flags }) {
    const { heartbeatBench } = await import("../bench/heartbeat/mod.ts");
    const figures = heartbeatBench({
      models: await models(flags, "smollm2-135m"),
      ...{ device: flags.backend ?? "wasm", precision: flags.precision ?? "fast" },
      ...{ threads: mostThreads(flags), rounds: flags.rounds ?? 5 },
    });
    await print(figures, flags);
  },
  async layouts({ flags }) {
    const { layoutsBench } = await import("../bench/layouts/mod.ts");
    const contexts = numbers(flags.contexts, "contexts", [256, 1000, 4000, 16000]);
    await print(layoutsBench({ contexts, rounds: flags.rounds ?? 9 }), flags);
  },
  async onnx({ rest: filter, flags }) {
    const { onnxBench } = await import("../bench/onnx/mod.ts");
    const { rounds = 5 } = flags, isAvx2Wanted = flags["peer-isa"] === "avx2";
    const options = { threads: threads(flags), rounds, peer: !flags["no-peer"], isAvx2Wanted };
    await print(onnxBench({ ...options, filter }), flags);
  },
  async placement({ rest, flags }) {
    const { placementBench } = await import("../bench/placement/mod.ts");
    const queries = numbers(flags.queries, "queries", [1]);
    const figures = placementBench({
      models: await models(flags, "smollm2-135m"),
      placements: rest.length > 0 ? rest : ["cpu", "wasm;wasm1", "wasm&wasm1"],
      ...{ queries, rounds: flags.rounds ?? 3, decode: flags.decode ?? 64 },
      load: {
        ...{ contextLength: 1024, sessions: Math.max(...queries), batch: 64 },
        precision: flags.precision ?? "fast",
        ...flags.devices && { devices: flags.devices.split(",") },
        ...flags.lanes && { lanes: flags.lanes },
        ...flags["max-device-bytes"] && { maxDeviceBytes: flags["max-device-bytes"] },
      },
    });
    await print(figures, flags);
  },
  async profile({ rest, flags }) {
    const { profileBench } = await import("../bench/profile.ts");
    chosen([], "bench profile has no cases", rest);
    const options = {
      models: await models(flags, "smollm2-135m", "gemma3-270m", "tinyllama-q4_0"),
      ...{ threads: threads(flags), precision: flags.precision ?? "fast" },
      ...{ rounds: flags.rounds ?? 5, placement: flags.placement },
    } as const;
    await profileBench(options, flags.json ?? false);
  },
  async quality({ rest, flags }) {
    const { PARTS, qualityBench, qualityFaults } = await import("../bench/quality/mod.ts");
    const { pullModel } = await import("../engine/formats/hub/pull.ts");
    const listed = names(flags.models) ?? ["smollm2-135m", "gemma3-270m"];
    const figures = qualityBench({
      parts: chosen(PARTS, "bench quality has the parts", rest),
      models: await Promise.all(
        listed.map(async (name) => ({ name, path: await pullModel(name) })),
      ),
      floats: () => pullModel("minilm"),
      integers: () => pullModel("minilm-int8"),
      ...{ backend: flags.backend, width: flags.width, seed: flags.seed ?? 1 },
      text: Deno.readTextFileSync(flags.text ?? `${ROOT}/tests/fixtures/text/opticks-book3.txt`),
      windows: flags.windows ?? 6,
      formats: names(flags.formats) ?? [],
      ...{ threads: mostThreads(flags), jobs: flags.jobs ?? 1 },
    });
    const faults = qualityFaults(await print(figures, flags));
    for (const fault of faults) console.error(`does not hold: ${fault}`);
    return faults.length > 0 ? 1 : 0;
  },
  async serve({ rest, flags }) {
    const { PARTS, serveBench } = await import("../bench/serve/mod.ts");
    const [model] = await models(flags, "smollm2-135m");
    const figures = serveBench({
      model,
      parts: chosen(PARTS, "bench serve has the parts", rest),
      ...{ threads: mostThreads(flags), rounds: flags.rounds ?? 5 },
      ...{ peer: !flags["no-peer"], llamaServer: flags["llama-server"] },
      ...{ requests: flags.requests ?? 96, minutes: flags.minutes ?? 1 },
    });
    await print(figures, flags);
  },
  async speech({ flags }) {
    const { speechBench } = await import("../bench/speech/mod.ts");
    const { rounds = 5, precision = "fast" } = flags, peer = !flags["no-peer"];
    const counts = numbers(flags.threads, "threads", [2]);
    await print(speechBench({ threads: counts, rounds, precision, peer }), flags);
  },
  async start({ rest: [commit = "ea35a23"], flags }) {
    const { startBench } = await import("../bench/start/mod.ts");
    const [{ path }] = await models(flags, "smollm2-135m");
    await print(startBench({ root: ROOT, commit, model: path, rounds: flags.rounds ?? 20 }), flags);
  },
  async streaming({ rest, flags }) {
    const { PARTS, streamingBench } = await import("../bench/streaming/mod.ts");
    const figures = streamingBench({
      parts: chosen(PARTS, "bench streaming has the parts", rest),
      ...{ threads: mostThreads(flags), decode: flags.decode ?? 8 },
      ...{ precision: flags.precision ?? "fast", keep: flags.keep },
    });
    await print(figures, flags);
  },
  async vision({ flags }) {
    const { visionBench } = await import("../bench/vision/mod.ts");
    const { gpuOption } = await import("../engine/cli/gpu_flag.ts");
    const backend = flags.gpu === undefined ? flags.backend ?? "wasm" : "gpu";
    const { rounds = 9, precision = "fast" } = flags, device = await gpuOption(flags);
    await print(
      visionBench({ backend, rounds, precision, threads: threads(flags), ...device }),
      flags,
    );
  },
  micro: ({ rest }) => deno(["bench", "--allow-all", ...microFiles(rest)]),
  ...Object.fromEntries(Object.keys(PAPERS).map((name) => [name, paper])),
};

/** A paper's tables. */
async function paper({ name, flags }: Request): Promise<void> {
  const usual = PAPERS[name as keyof typeof PAPERS];
  const { about, run } = await usual.bench();
  console.error(about);
  const figures = run({
    models: await models(flags, ...usual.models),
    prompts: numbers(flags.prompt, "prompt", usual.prompts),
    ...{ decode: flags.decode ?? usual.decode, rounds: flags.rounds ?? 3 },
    power: flags.power ?? false,
    load: {
      device: flags.backend ?? "wasm",
      precision: flags.precision ?? "fast",
      threads: mostThreads(flags),
    },
  });
  await print(figures, flags);
}

const LINE = {
  name: "deno task bench",
  summary: "Measures this engine, beside its peers where there are any.",
  positionals: ["NAME", "[FILTER…]"],
  flags: FLAGS,
  examples: [
    ["deno task bench cpu", "language models beside llama.cpp and wllama, in turns"],
    ["deno task bench cpu decode busy", "two of its cases"],
    ["deno task bench cpu decode memory --models llama-5gb --no-peer", "over two WASM memories"],
    ["deno task bench cpu --models smollm2-135m --threads 2 --json", "part of it, as JSON lines"],
    ["deno task bench cpu decode prefill rows memory --models llama-1b-q4_k_m --rounds 9", "1B"],
    ["deno task bench encoder --rounds 3", "MiniLM beside onnxruntime-web and transformers.js"],
    ["deno task bench onnx minilm --threads 2", "graphs beside onnxruntime-web and onnxruntime"],
    ["deno task bench onnx minilm --peer-isa avx2", "also beside onnxruntime held to AVX2"],
    ["deno task bench profile --models smollm2-135m", "time by kernel"],
    ["deno task bench gpu --llama-bench PATH", "smollm2, and random weights: 1b, 8b; also tiny"],
    ["deno task bench gpu kernels --models 1b", "start, generate, plain, ahead, batch or kernels"],
    ["deno task bench quality perplexity --formats q8_0,q4_0", "what formats cost in perplexity"],
    ["deno task bench quality encode files", "encoders and files beside llama.cpp"],
    ["deno task bench quality backends", "KL from floats, by format, backend and precision"],
    ["deno task bench serve streams idle --llama-server PATH", "our server beside llama.cpp's"],
    ["deno task bench start ea35a23", "a cold process of the bundle beside a commit's sources"],
    ["deno task bench browser --threads 2", "beside wllama, both in one page of Chromium"],
    ["deno task bench edge", "the cold start of examples/edge, under a platform's limits"],
    ["deno task bench speech", "30 s of sound and 100 tokens beside onnxruntime-web"],
    ["deno task bench onnx ResNet CLIP detection", "networks of pictures beside the same"],
    ["deno task bench convolutions", "Winograd's filtering beside the direct kernel, one thread"],
    ["deno task bench heartbeat", "how late timers get beside a worker, priority low and normal"],
    ["deno task bench layouts", "attention over layouts of the cache, one thread"],
    ['deno task bench placement "gpu-layers=16" "wasm=8;gpu"', "a model over several devices"],
    ["deno task bench formats --formats q8_0,e0m4 --threads 1", "products by number format"],
    ["deno task bench vision --threads 2", "CLIP's shapes with random weights; --gpu dawn"],
    ["deno task bench streaming overlap", "weights that are read while others compute"],
    ["deno task bench md --models llama-3b-q4_k_m", "ML Drift's protocol on a model of its size"],
    ["deno task bench micro sampler", "single parts: deno bench bench/"],
  ],
  notes: [
    `Names: ${Object.keys(BENCHES).join(", ")}. ` +
    "tl, lf, if and md print the papers' tables with our figures beside, the machine named, and what differs.",
  ],
} as const;

function numbers(
  text: string | undefined,
  flag: string,
  fallback: readonly number[],
  least = 1,
): readonly number[] {
  if (text === undefined) return fallback;
  const given = text.split(","), values = given.map(Number);
  // Of nothing Number makes a 0.
  if (values.every((n, i) => Number.isInteger(n) && n >= least && given[i]!.trim() !== "")) {
    return values;
  }
  throw new UsageError(
    `--${flag} takes whole numbers from ${least} on, separated by commas: got "${text}"`,
  );
}

/** A RangeError of `read` becomes a mistake of the command line. */
function usage<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(error.message);
    throw error;
  }
}

/** Names that a flag lists, between commas or given several times. */
function names(lists: readonly string[] | undefined): string[] | undefined {
  return lists?.flatMap((list) => list.split(","));
}

/** The models that are asked for, found or made. */
async function models(
  flags: Request["flags"],
  ...usual: string[]
): Promise<[BenchModel, ...BenchModel[]]> {
  const { findBenchModel } = await import("../bench/support/models.ts");
  const [first, ...others] = names(flags.models) ?? usual;
  return [await findBenchModel(first!), ...await Promise.all(others.map(findBenchModel))];
}

/** The parts that are asked for; all where none is. */
function chosen<T extends string>(all: readonly T[], has: string, asked: readonly string[]): T[] {
  const parts = all.filter((part) => asked.length === 0 || asked.includes(part));
  if (parts.length >= asked.length) return parts;
  throw new UsageError(`${[has, all.join(", ")].join(" ").trim()}: got ${asked.join(", ")}`);
}

/** Counts of threads: those that are asked for, or one and all. */
function threads(flags: Request["flags"]): readonly number[] {
  const all = navigator.hardwareConcurrency;
  return numbers(flags.threads, "threads", all > 1 ? [1, all] : [1]);
}

function mostThreads(flags: Request["flags"]): number {
  return threads(flags).at(-1)!;
}

/** Prints figures as they come, or a table at the end; returns them. */
async function print(
  figures: AsyncIterable<Figure>,
  { json = false }: Request["flags"],
): Promise<Figure[]> {
  const all: Figure[] = [];
  for await (const figure of figures) {
    all.push(figure);
    console[json ? "log" : "error"](JSON.stringify(figure));
  }
  if (!json) console.log(`\n${all[0]?.machine}\n\n${figureTable(all)}`);
  return all;
}

function microFiles(filters: readonly string[]): string[] {
  const files = [...Deno.readDirSync(new URL("../bench/", import.meta.url))]
    .map(({ name }) => name)
    .filter((name) => name.endsWith("_bench.ts"))
    .filter((name) => filters.length === 0 || filters.some((part) => name.includes(part)));
  if (files.length === 0) {
    throw new UsageError(`No bench file has ${filters.join(" or ")} in its name`);
  }
  return files.map((name) => `bench/${name}`);
}

await runTask(LINE, async ({ positionals: [name, ...rest], flags }) => {
  if (!Object.hasOwn(BENCHES, name!)) {
    throw new UsageError(`Unknown bench ${name}: ${Object.keys(BENCHES).join(", ")}`);
  }
  return await BENCHES[name!]!({ name: name!, rest, flags }) ?? 0;
});
