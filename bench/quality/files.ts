// Files that `quantize` writes, in llama.cpp (node-llama-cpp): it opens them, and the tokens that it takes
// greedily are those that this engine takes on the same file. Both round activations to 8 bits, each in its own
// order, so a tie may fall either way; llama.cpp's tokens are therefore fed to this engine, and where it would
// have taken another one, the gap between both logits is told. A wrong byte order or scale gives gaps of whole
// units at once.

import { openModel } from "../../engine/models/open_model.ts";
import { load } from "../../engine/models/load.ts";
import { quantizeModel } from "../../engine/quantize/quantize.ts";
import { getPolicy } from "../../quant/policies.ts";
import type { PolicyRule } from "../../quant/policy.ts";
import { deleteAtInterrupt } from "../../tools/support/children.ts";
import { type Figure, machineName } from "../support/figures.ts";
import { startRunner } from "../support/runner.ts";
import { turnModel } from "./turn.ts";

/** What to check. */
export interface FilesBenchOptions {
  readonly models: readonly { readonly name: string; readonly path: string }[];
  readonly width: number;
  readonly text: string;
  /** Formats and mixtures, as `quantize --format` takes them. */
  readonly formats: readonly string[];
  readonly threads: number;
}

/** What is written unless some are named. */
export const FILE_FORMATS: readonly string[] = [
  ...["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k_m", "q4_k_m", "q5_k_m", "q6_k"],
  ...["iq4_nl", "iq4_xs", "mxfp4", "nvfp4", "tq1_0", "tq2_0", "f16", "bf16"],
];

const LAYERS = 2;
const IN_FLOATS: PolicyRule = { roles: ["embedding", "output"], format: "keep" };
const PROMPTS = 4;
const PROMPT_TOKENS = 24;
const TOKENS = 32;
const CONTEXT = 128;

/** A share of equal tokens and the largest gap, a file. */
export async function* filesBench(options: FilesBenchOptions): AsyncGenerator<Figure> {
  const folder = await Deno.makeTempDir({ prefix: "troodon-files-" });
  deleteAtInterrupt(folder);
  try {
    for (const { name, path } of options.models) {
      const turned = `${folder}/turned.gguf`;
      const file = await openModel(path);
      await turnModel(file, turned, { width: options.width, layers: LAYERS }).finally(() =>
        file.close()
      );
      for (const format of options.formats) {
        const stored = `${folder}/stored.gguf`;
        const source = await openModel(turned);
        const policy = getPolicy(format);
        await quantizeModel(source, {
          path: stored,
          policy: { ...policy, rules: [IN_FLOATS, ...policy.rules] },
        })
          .finally(() => source.close());
        const { equal, gap } = await compare(stored, options);
        await Deno.remove(stored);
        const label = `${format} ${name} at ${options.width}`;
        const shared = { bench: "quality", share: null, machine: machineName() };
        const peer = "llama.cpp (node-llama-cpp)";
        const tokens = { peer, peerValue: 1, ratio: equal };
        yield { ...shared, case: `tokens ${label}`, unit: "of 1", value: equal, ...tokens };
        const none = { peer: null, peerValue: null, ratio: null };
        yield { ...shared, case: `gap ${label}`, unit: "logit", value: gap, ...none };
      }
      await Deno.remove(turned);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Share of llama.cpp's tokens that this engine would have taken too, and by how far the others lost. */
async function compare(
  path: string,
  { text, threads }: FilesBenchOptions,
): Promise<{ equal: number; gap: number }> {
  using model = await load(path, { device: "wasm", threads, contextLength: CONTEXT });
  const ids = model.tokenizer.encode(text);
  const stride = Math.floor((ids.length - PROMPT_TOKENS) / PROMPTS);
  const peer = await startRunner([
    ...["--no-lock", "--no-config", "bench/cpu/llama_cpp.ts"],
    ...[path, `${threads}`, `${CONTEXT}`, "1"],
  ]);
  let same = 0, all = 0, gap = 0;
  try {
    using session = model.createSession();
    for (let i = 0; i < PROMPTS; i++) {
      const prompt = ids.slice(i * stride, i * stride + PROMPT_TOKENS);
      const taken = (await peer.ask({ op: "decode", ids: prompt, count: TOKENS })).ids!;
      for (const [at, id] of taken.entries()) {
        await session.sync([...prompt, ...taken.slice(0, at)]);
        const logits = session.logits();
        const best = logits.reduce((most, value) => Math.max(most, value), -Infinity);
        gap = Math.max(gap, best - logits[id]!);
        if (best === logits[id]) same++;
        all++;
      }
    }
  } finally {
    await peer.close();
  }
  return { equal: same / all, gap };
}
