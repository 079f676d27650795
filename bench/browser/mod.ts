// `deno task bench browser`: a model on WASM threads in Chromium beside wllama (llama.cpp compiled to WASM) in the same
// browser: one page that has both, the same file and text, in turns. Times are those that each engine says of itself.

import { bundleForBrowser } from "../../tools/support/browser_bundle.ts";
import { findBrowser, installPackages, WLLAMA } from "../cpu/peers.ts";
import { type BenchPage, openPage } from "../support/chromium.ts";
import { type Figure, machineName, median, ratioOf } from "../support/figures.ts";

/** What to measure. */
export interface BrowserOptions {
  readonly name: string;
  /** Path of a GGUF file. */
  readonly path: string;
  readonly threads: number;
  readonly rounds: number;
  /** Tokens of an answer. */
  readonly decode: number;
}

interface Speed {
  /** Tokens a second. */
  readonly prefill: number;
  readonly decode: number;
  /** Tokens of the prompt. */
  readonly tokens: number;
}

const ENGINES = ["troodon", "wllama"] as const;
const CONTEXT = 1024;
const PROMPT = "The sea is calm tonight, and the ship sails on under the moon. ".repeat(8).trim();

// Runs in the page.
const SCRIPT = `
import { Wllama } from "/esm/index.js";
const worker = new Worker("/app/engine.js", { type: "module" });
const ask = (order) => new Promise((resolve, reject) => {
  worker.onmessage = ({ data }) => data.error ? reject(new Error(data.error)) : resolve(data);
  worker.onerror = ({ message }) => reject(new Error(message));
  worker.postMessage(order);
});
const wllama = new Wllama({ default: "/esm/wasm/wllama.wasm" }, { suppressNativeLog: true });
globalThis.start = {
  troodon: async (threads, context) => (await ask({ threads, context })).ms,
  async wllama(threads, context) {
    const begin = performance.now();
    await wllama.loadModel([await (await fetch("/model")).blob()], {
      n_threads: threads, n_ctx: context, n_batch: 512, n_gpu_layers: 0, n_parallel: 1, warmup: false,
    });
    return performance.now() - begin;
  },
};
globalThis.complete = {
  troodon: (prompt, count) => ask({ prompt, count }),
  async wllama(prompt, count) {
    const { timings } = await wllama.createCompletion({
      prompt, max_tokens: count, temperature: 0, ignore_eos: true, cache_prompt: false,
    });
    const { prompt_n, prompt_ms, predicted_n, predicted_ms } = timings;
    // The first token belongs to the prompt's phase.
    return {
      prefill: 1000 * prompt_n / prompt_ms, decode: 1000 * (predicted_n - 1) / predicted_ms, tokens: prompt_n,
    };
  },
};
globalThis.isReady = true;`;

const FILE = /^\/(esm|app)\/((?:[\w-]+\/)*[\w.-]+\.\w+)$/;

/** Figures of loading, a prompt and an answer. */
export async function* browserBench(options: BrowserOptions): AsyncGenerator<Figure> {
  const program = await findBrowser(), packages = program && await installPackages();
  if (!packages) throw new Error("Chromium, or the packages of wllama, are not to be had");
  const app = await Deno.makeTempDir();
  await bundleForBrowser({ path: "bench/browser/engine.ts", name: "engine", folder: app });
  const page = await openPage({
    ...{ packages, program, html: `<!doctype html><script type="module">${SCRIPT}</script>` },
    fileOf(pathname) {
      if (pathname === "/model") return options.path;
      const [, root, file] = FILE.exec(pathname) ?? [];
      if (root === undefined) return undefined;
      return root === "app"
        ? `${app}/${file}`
        : `${packages}/node_modules/@wllama/wllama/esm/${file}`;
    },
  });
  try {
    yield* measure(page, options);
  } finally {
    await page.close();
    await Deno.remove(app, { recursive: true });
  }
}

async function* measure(
  page: BenchPage,
  { name, threads, rounds, decode }: BrowserOptions,
): AsyncGenerator<Figure> {
  while (!await page.evaluate("globalThis.isReady")) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const loads: number[] = [];
  const speeds: Record<string, Speed[]> = { troodon: [], wllama: [] };
  for (const engine of ENGINES) {
    loads.push(await page.evaluate(`start.${engine}(${threads}, ${CONTEXT})`) as number);
  }
  for (let round = 0; round < rounds; round++) {
    for (const engine of ENGINES) {
      // A beginning of its own, for what was computed before is not computed again.
      const prompt = JSON.stringify(`${round + 1}. ${PROMPT}`);
      const code = `complete.${engine}(${prompt}, ${decode + 1})`;
      speeds[engine]!.push(await page.evaluate(code) as Speed);
    }
  }
  const of = (engine: string, key: keyof Speed) => median(speeds[engine]!.map((one) => one[key]));
  const figure = (what: string, unit: string, [value, peerValue]: readonly number[]): Figure => ({
    ...{ bench: "browser", case: `${what} ${name} ${threads} threads`, unit, value: value! },
    ...{ peer: WLLAMA, peerValue: peerValue!, ratio: ratioOf(unit, value!, peerValue!) },
    ...{ share: null, machine: machineName() },
  });
  const both = (key: keyof Speed) => ENGINES.map((engine) => of(engine, key));
  yield figure("decode", "tokens/s", both("decode"));
  yield figure(`prefill of ${of("troodon", "tokens")}`, "tokens/s", both("prefill"));
  yield figure("load", "ms", loads);
}
