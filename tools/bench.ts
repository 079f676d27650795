// `deno task bench NAME`: measurements with a peer in the same run. The micro benches of single parts are
// `deno bench bench/` (or `deno task bench micro [FILTER]`).

import { UsageError } from "../engine/cli/args.ts";
import type { PaperBench } from "../bench/papers/paper.ts";
import type { Figure } from "../bench/support/figures.ts";
import { figureTable } from "../bench/support/figures.ts";
import { deno, ROOT, runTask } from "./support/task.ts";

const NAMES =
  "browser, convolutions, cpu, edge, encoder, formats, gpu, heartbeat, layouts, onnx, " +
  "placement, profile, quality, serve, speech, start, streaming, vision, micro";

const LINE = {
  name: "deno task bench",
  summary: "Measures this engine, beside its peers where there are any.",
  positionals: ["NAME", "[FILTER…]"], // filters are for cpu, micro, gpu, onnx and quality
  flags: {
    models: {
      type: "string",
      multiple: true,
      help:
        "models to measure (smollm2-135m, gemma3-270m, tinyllama-q4_0, -q8_0, -lf8, llama-5gb; " +
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
      help:
        "gpu: llama.cpp's llama-bench as the peer, and llama-batched-bench if it lies beside it",
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
  },
  examples: [
    ["deno task bench cpu", "language models beside llama.cpp and wllama, in turns"],
    ["deno task bench cpu decode busy", "two of its cases"],
    ["deno task bench cpu decode memory --models llama-5gb --no-peer", "over two WASM memories"],
    ["deno task bench cpu --models smollm2-135m --threads 2 --json", "part of it, as JSON lines"],
    ["deno task bench cpu decode prefill rows memory --models llama-1b-q4_k_m --rounds 9", "1B"],
    ["deno task bench encoder --rounds 3", "MiniLM beside onnxruntime-web and transformers.js"],
    ["deno task bench onnx minilm --threads 2", "graphs beside onnxruntime-web and onnxruntime"],
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
    `Names: ${NAMES}; tl, lf, if and md print the papers' tables with our figures beside, the machine named, and what differs.`,
  ],
} as const;

/** Benches of papers: their files, the models that stand for theirs, lengths of prompts, tokens of an answer. */
const PAPERS = {
  tl: { models: ["smollm2-135m", "gemma3-270m"], prompts: [128, 1024, 2048], decode: 32 },
  lf: { models: ["tinyllama-lf8"], prompts: [2], decode: 256 },
  if: { models: ["smollm2-135m", "tinyllama-q4_0"], prompts: [16], decode: 32 },
  md: { models: ["smollm2-135m", "gemma3-270m"], prompts: [1024], decode: 256 },
} as const;

async function paperBench(name: string): Promise<PaperBench> {
  const files = {
    tl: async () => (await import("../bench/papers/tl.ts")).tl,
    lf: async () => (await import("../bench/papers/lf.ts")).lf,
    if: async () => (await import("../bench/papers/if.ts")).inferflow,
    md: async () => (await import("../bench/papers/md.ts")).md,
  };
  return await files[name as keyof typeof files]();
}
const DEFAULT_MODELS = {
  cpu: ["smollm2-135m", "gemma3-270m", "tinyllama-q4_0", "tinyllama-lf8"],
  profile: ["smollm2-135m", "gemma3-270m", "tinyllama-q4_0"],
};

function numbers(
  text: string | undefined,
  flag: string,
  fallback: readonly number[],
): readonly number[] {
  if (text === undefined) return fallback;
  const values = text.split(",").map(Number);
  if (values.every((n) => Number.isInteger(n) && n > 0)) return values;
  throw new UsageError(`--${flag} takes whole numbers separated by commas: got "${text}"`);
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

/** Prints figures as they come, or a table at the end; returns them. */
async function print(figures: AsyncIterable<Figure>, json: boolean): Promise<Figure[]> {
  const all: Figure[] = [];
  for await (const figure of figures) {
    all.push(figure);
    console[json ? "log" : "error"](JSON.stringify(figure));
  }
  if (!json) console.log(`\n${all[0]?.machine}\n\n${figureTable(all)}`);
  return all;
}

await runTask(LINE, async ({ positionals: [name, ...rest], flags }) => {
  if (Object.hasOwn(PAPERS, name!)) {
    const usual = PAPERS[name as keyof typeof PAPERS];
    const { findBenchModel } = await import("../bench/support/models.ts");
    const models = flags.models?.flatMap((list) => list.split(",")) ?? usual.models;
    const { about, run } = await paperBench(name!);
    console.error(about);
    const figures = run({
      models: await Promise.all(models.map(findBenchModel)),
      prompts: numbers(flags.prompt, "prompt", usual.prompts),
      decode: flags.decode ?? usual.decode,
      rounds: flags.rounds ?? 3,
      power: flags.power ?? false,
      load: {
        device: flags.backend ?? "wasm",
        precision: flags.precision ?? "fast",
        threads: numbers(flags.threads, "threads", threadCounts()).at(-1)!,
      },
    });
    await print(figures, flags.json ?? false);
    return 0;
  }
  if (name === "micro") return await deno(["bench", "--allow-all", ...microFiles(rest)]);
  if (name === "gpu") {
    const { gpuBench, PARTS } = await import("../bench/gpu/mod.ts");
    const parts = PARTS.filter((part) => rest.length === 0 || rest.includes(part));
    if (parts.length < rest.length) {
      throw new UsageError(`bench gpu has the parts ${PARTS.join(", ")}: got ${rest.join(", ")}`);
    }
    const options = {
      models: (flags.models ?? ["smollm2", "1b", "8b"]).flatMap((list) => list.split(",")),
      rounds: flags.rounds ?? 5,
      prompts: numbers(flags.prompt, "prompt", [128, 512, 2048]),
      decode: flags.decode ?? 128,
      contexts: flags.contexts === undefined ? [0, 4096] : flags.contexts.split(",").map(Number),
      ahead: flags.ahead ?? 8,
      precision: flags.precision ?? "fast",
      gpu: flags.gpu ?? "built-in",
    };
    const figures = gpuBench(options, {
      ...{ parts, timeout: flags.timeout ?? 90, llamaBench: flags["llama-bench"] },
    });
    const measured = await print(figures, flags.json ?? false);
    return measured.length > 0 ? 0 : 1;
  }
  if (name === "quality") {
    const { PARTS, qualityBench, qualityFaults } = await import("../bench/quality/mod.ts");
    const { pullModel } = await import("../engine/formats/hub/pull.ts");
    const parts = PARTS.filter((part) => rest.length === 0 || rest.includes(part));
    if (parts.length < rest.length) {
      throw new UsageError(
        `bench quality has the parts ${PARTS.join(", ")}: got ${rest.join(", ")}`,
      );
    }
    const names = flags.models?.flatMap((list) => list.split(",")) ??
      ["smollm2-135m", "gemma3-270m"];
    const figures = await print(
      qualityBench({
        parts,
        models: await Promise.all(
          names.map(async (name) => ({ name, path: await pullModel(name) })),
        ),
        floats: () => pullModel("minilm"),
        integers: () => pullModel("minilm-int8"),
        backend: flags.backend,
        width: flags.width,
        seed: flags.seed ?? 1,
        text: Deno.readTextFileSync(flags.text ?? `${ROOT}/tests/fixtures/text/opticks-book3.txt`),
        windows: flags.windows ?? 6,
        formats: flags.formats?.flatMap((list) => list.split(",")) ?? [],
        threads: numbers(flags.threads, "threads", threadCounts()).at(-1)!,
        jobs: flags.jobs ?? 1,
      }),
      flags.json ?? false,
    );
    const faults = qualityFaults(figures);
    for (const fault of faults) console.error(`does not hold: ${fault}`);
    return faults.length > 0 ? 1 : 0;
  }
  if (name === "formats") {
    const { BACKENDS, printFormats } = await import("../bench/formats/mod.ts");
    const { DEFAULT_FORMATS, DEFAULT_SHAPES, parseShape } = await import(
      "../bench/formats/case.ts"
    );
    const { isFormatName } = await import("../quant/mod.ts");
    const formats = flags.formats?.flatMap((list) => list.split(",")) ?? DEFAULT_FORMATS;
    const unknown = formats.find((format) => !isFormatName(format));
    if (unknown) throw new UsageError(`--formats: there is no number format "${unknown}"`);
    const options = {
      formats,
      shapes: flags.shapes?.split(",").map((text) => usage(() => parseShape(text))) ??
        DEFAULT_SHAPES,
      threads: numbers(flags.threads, "threads", threadCounts()),
      rounds: flags.rounds ?? 5,
      exact: flags.precision === "exact",
    };
    const backends = Object.keys(BACKENDS).filter((one) => one === (flags.backend ?? one));
    await printFormats(backends, options, flags.json ?? false);
    return 0;
  }
  if (name === "vision") {
    const { visionBench } = await import("../bench/vision/mod.ts");
    const { gpuOption } = await import("../engine/cli/gpu_flag.ts");
    const backend = flags.gpu === undefined ? flags.backend ?? "wasm" : "gpu";
    if (backend !== "wasm" && backend !== "gpu") {
      throw new UsageError(`bench vision runs on wasm or gpu: got ${backend}`);
    }
    const figures = visionBench({
      ...{ backend, rounds: flags.rounds ?? 9, precision: flags.precision ?? "fast" },
      threads: numbers(flags.threads, "threads", threadCounts()),
      ...await gpuOption(flags),
    });
    await print(figures, flags.json ?? false);
    return 0;
  }
  if (name === "placement") {
    const { placementBench } = await import("../bench/placement/mod.ts");
    const { findBenchModel } = await import("../bench/support/models.ts");
    const named = flags.models?.flatMap((list) => list.split(",")) ?? ["smollm2-135m"];
    const queries = numbers(flags.queries, "queries", [1]);
    const figures = placementBench({
      models: await Promise.all(named.map(findBenchModel)),
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
    await print(figures, flags.json ?? false);
    return 0;
  }
  if (name === "streaming") {
    const { PARTS, streamingBench } = await import("../bench/streaming/mod.ts");
    const parts = PARTS.filter((part) => rest.length === 0 || rest.includes(part));
    if (parts.length < rest.length) {
      throw new UsageError(`bench streaming has the parts ${PARTS.join(", ")}: got ${rest.join()}`);
    }
    const figures = streamingBench({
      parts,
      threads: numbers(flags.threads, "threads", threadCounts()).at(-1)!,
      decode: flags.decode ?? 8,
      precision: flags.precision ?? "fast",
      keep: flags.keep,
    });
    await print(figures, flags.json ?? false);
    return 0;
  }
  if (name === "layouts") {
    const { layoutsBench } = await import("../bench/layouts/mod.ts");
    const contexts = numbers(flags.contexts, "contexts", [256, 1000, 4000, 16000]);
    await print(layoutsBench({ contexts, rounds: flags.rounds ?? 9 }), flags.json ?? false);
    return 0;
  }
  if (name === "start") {
    const { startBench } = await import("../bench/start/mod.ts");
    const { findBenchModel } = await import("../bench/support/models.ts");
    const figures = startBench({
      root: ROOT,
      commit: rest[0] ?? "ea35a23",
      model: (await findBenchModel(flags.models?.[0] ?? "smollm2-135m")).path,
      rounds: flags.rounds ?? 20,
    });
    await print(figures, flags.json ?? false);
    return 0;
  }
  if (name === "browser") {
    const { browserBench } = await import("../bench/browser/mod.ts");
    const { findBenchModel } = await import("../bench/support/models.ts");
    const figures = browserBench({
      ...await findBenchModel(flags.models?.[0] ?? "smollm2-135m"),
      threads: numbers(flags.threads, "threads", threadCounts()).at(-1)!,
      ...{ rounds: flags.rounds ?? 5, decode: flags.decode ?? 64 },
    });
    await print(figures, flags.json ?? false);
    return 0;
  }
  if (name === "edge") {
    const { edgeBench } = await import("../bench/edge/mod.ts");
    await print(edgeBench({ rounds: flags.rounds ?? 20 }), flags.json ?? false);
    return 0;
  }
  if (name === "serve") {
    const { PARTS, serveBench } = await import("../bench/serve/mod.ts");
    const { findBenchModel } = await import("../bench/support/models.ts");
    const parts = PARTS.filter((part) => rest.length === 0 || rest.includes(part));
    if (parts.length < rest.length) {
      throw new UsageError(`bench serve has the parts ${PARTS.join(", ")}: got ${rest.join(", ")}`);
    }
    const figures = serveBench({
      model: await findBenchModel(flags.models?.[0] ?? "smollm2-135m"),
      parts,
      threads: numbers(flags.threads, "threads", threadCounts()).at(-1)!,
      rounds: flags.rounds ?? 5,
      peer: !flags["no-peer"],
      llamaServer: flags["llama-server"],
      requests: flags.requests ?? 96,
      minutes: flags.minutes ?? 1,
    });
    await print(figures, flags.json ?? false);
    return 0;
  }
  if (name === "encoder") {
    const { encoderBench } = await import("../bench/encoder/mod.ts");
    const { pullModel } = await import("../engine/formats/hub/pull.ts");
    const figures = encoderBench({
      path: await pullModel("minilm"),
      threads: numbers(flags.threads, "threads", threadCounts()),
      rounds: flags.rounds ?? 3,
      sentences: flags.sentences ?? 1000,
      peer: !flags["no-peer"],
      onnx: flags.onnx,
    });
    await print(figures, flags.json ?? false);
    return 0;
  }
  if (name === "convolutions") {
    const { convolutionBench } = await import("../bench/convolutions.ts");
    await print(convolutionBench(flags.rounds ?? 5), flags.json ?? false);
    return 0;
  }
  if (name === "heartbeat") {
    const { heartbeatBench } = await import("../bench/heartbeat/mod.ts");
    const { findBenchModel } = await import("../bench/support/models.ts");
    const names = flags.models?.flatMap((list) => list.split(",")) ?? ["smollm2-135m"];
    const figures = heartbeatBench({
      models: await Promise.all(names.map(findBenchModel)),
      ...{ device: flags.backend ?? "wasm", precision: flags.precision ?? "fast" },
      threads: numbers(flags.threads, "threads", threadCounts()).at(-1)!,
      rounds: flags.rounds ?? 5,
    });
    await print(figures, flags.json ?? false);
    return 0;
  }
  if (name === "speech") {
    const { speechBench } = await import("../bench/speech/mod.ts");
    const figures = speechBench({
      threads: numbers(flags.threads, "threads", [2]),
      ...{ rounds: flags.rounds ?? 5, precision: flags.precision ?? "fast" },
      peer: !flags["no-peer"],
    });
    await print(figures, flags.json ?? false);
    return 0;
  }
  if (name === "onnx") {
    const { onnxBench } = await import("../bench/onnx/mod.ts");
    const figures = onnxBench({
      threads: numbers(flags.threads, "threads", threadCounts()),
      rounds: flags.rounds ?? 5,
      peer: !flags["no-peer"],
      filter: rest,
    });
    await print(figures, flags.json ?? false);
    return 0;
  }
  if (name !== "cpu" && name !== "profile") {
    throw new UsageError(`Unknown bench ${name}: ${NAMES}, tl, lf, if, md`);
  }
  const { CASE_NAMES, cpuBench } = await import("../bench/cpu/mod.ts");
  const cases = CASE_NAMES.filter((one) => rest.length === 0 || rest.includes(one));
  if (name === "profile" ? rest.length > 0 : cases.length < rest.length) {
    throw new UsageError(
      `bench cpu has the cases ${CASE_NAMES.join(", ")}, bench profile none: got ${
        rest.join(", ")
      }`,
    );
  }
  const { findBenchModel } = await import("../bench/support/models.ts");
  const named = flags.models?.flatMap((list) => list.split(","));
  const models = await Promise.all((named ?? DEFAULT_MODELS[name]).map(findBenchModel));
  const asked = {
    models,
    threads: numbers(flags.threads, "threads", threadCounts()),
    precision: flags.precision ?? "fast",
  };
  if (name === "cpu") {
    const request = {
      ...{ ...asked, areThreadsAsked: flags.threads !== undefined, cases, peer: !flags["no-peer"] },
      contexts: numbers(flags.contexts, "contexts", [1000, 4000]),
      ...{ rounds: flags.rounds, decode: flags.decode },
      prompts: flags.prompt === undefined ? undefined : numbers(flags.prompt, "prompt", []),
    };
    await print(cpuBench(request), flags.json ?? false);
  } else {
    const { profileBench } = await import("../bench/profile.ts");
    const options = { ...asked, rounds: flags.rounds ?? 5, placement: flags.placement };
    await profileBench(options, flags.json ?? false);
  }
  return 0;
});

function threadCounts(): number[] {
  const all = navigator.hardwareConcurrency;
  return all > 1 ? [1, all] : [1];
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
