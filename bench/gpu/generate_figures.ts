// The public API on a GPU: `load` and `generate`, as who uses the engine meets it. Prompts are real text, answers greedy; one
// answer, many at once, and one within a schema beside the same without.

import { gpuOption } from "../../engine/cli/gpu_flag.ts";
import { builtIn, fastAdapter } from "../../gpu/gpu.ts";
import { generate, load, type Model } from "../../mod.ts";
import { type Figure, median, ratioOf } from "../support/figures.ts";
import { figureMaker, type MakeFigure, rateFigures } from "./figures.ts";
import { type PartOptions, QUERIES } from "./mod.ts";
import { textIds } from "./models.ts";

const GREEDY = { temperature: 0, ignoreEos: true } as const;
/** Tokens of text before an answer at 0, and of each of many. */
const BEGINNING = 16;
/** Tokens from the beginning of one text to that of the next, of many at once. */
const QUERY_STRIDE = 7;
/** Answering before it is measured. */
const WARM_MS = 1000;
/** As long as the answers of the bench, and of what answers are made of. */
const SCHEMA = {
  type: "array",
  minItems: 500,
  items: {
    type: "object",
    properties: {
      name: { type: "string", minLength: 1, maxLength: 40 },
      age: { type: "integer", minimum: 0, maximum: 120 },
      role: { enum: ["admin", "editor", "reader"] },
    },
    required: ["name", "age", "role"],
    additionalProperties: false,
  },
} as const;

interface Answer {
  /** When the call was made, and when each token came. */
  readonly start: number;
  readonly ends: readonly number[];
  readonly ids: readonly number[];
}

/** The figures. */
export async function* generateFigures(options: PartOptions): AsyncGenerator<Figure> {
  const { model: file, contexts, prompts, decode, precision, ahead } = options;
  const longest = Math.max(...contexts, ...prompts) + decode + 2 * BEGINNING;
  const provider = await gpuOption({ gpu: options.gpu });
  const adapter = await fastAdapter(provider.gpu ?? builtIn());
  const { description = "", device = "" } = adapter?.info ?? {};
  const figure = figureMaker({ capabilities: { adapter: description || device } }, options);
  const start = performance.now();
  using model = await load(file.path, {
    ...{ device: "gpu", contextLength: longest, precision, stepsAhead: ahead, ...provider },
    ...{ sessions: Math.max(...QUERIES), cacheTokens: longest + 32 * (decode + 2 * BEGINNING) },
  });
  const ms = performance.now() - start;
  yield figure("load, device and all", "ms", ms);
  yield figure("load, device and all", "GB/s", (await Deno.stat(file.path)).size / 1e6 / ms);
  const count = Math.max(longest, QUERY_STRIDE * Math.max(...QUERIES) + BEGINNING);
  const ids = await textIds(file, { count, vocabulary: model.info.vocabulary });
  for (const context of contexts) yield* answerFigures(figure, { model, ids, context, options });
  const promptOf = promptMaker(ids, model.info.vocabulary);
  for (const length of prompts) {
    const rates: number[] = [];
    for (let round = -1; round < options.rounds; round++) {
      const { start, ends } = await answer(model, promptOf(length), { maxTokens: 1 });
      if (round >= 0) rates.push(length / (ends[0]! - start) * 1000);
    }
    yield figure(`prefill ${length}, generate()`, "tokens/s", median(rates));
  }
  for (const count of QUERIES) {
    const rates: number[] = [];
    for (let round = -1; round < options.rounds; round++) {
      const begin = performance.now();
      const texts = Array.from(
        { length: count },
        (_, i) => ids.slice(QUERY_STRIDE * i, QUERY_STRIDE * i + BEGINNING),
      );
      await Promise.all(texts.map((text) => answer(model, text, { maxTokens: decode })));
      if (round >= 0) rates.push(count * decode / (performance.now() - begin) * 1000);
    }
    yield figure(`decode of ${count} queries, generate()`, "tokens/s", median(rates));
  }
  if (!file.isRandom) yield* schemaFigures(figure, { model, ids, options });
}

/** Makes prompts of a text, none of which begins as another or as the text: what is kept of one saves no step of the next. */
export function promptMaker(
  ids: readonly number[],
  vocabulary: number,
): (length: number) => number[] {
  let first = ids[0]!;
  return (length) => [first = (first + 1) % vocabulary, ...ids.slice(1, length)];
}

interface Asked {
  readonly model: Model;
  readonly ids: readonly number[];
  readonly options: PartOptions;
}

async function* answerFigures(
  figure: MakeFigure,
  { model, ids, context, options: { decode, rounds } }: Asked & { readonly context: number },
): AsyncGenerator<Figure> {
  const prompt = ids.slice(0, Math.max(BEGINNING, context)), run = { maxTokens: decode };
  const end = performance.now() + WARM_MS;
  do await answer(model, prompt, run); while (performance.now() < end);
  const rates: number[] = [], steps: number[] = [];
  let distinct = 0;
  for (let round = 0; round < rounds; round++) {
    const { ends, ids } = await answer(model, prompt, run);
    rates.push(rateOf({ ends, ids }));
    steps.push(...ends.slice(1).map((at, i) => at - ends[i]!));
    distinct = new Set(ids).size;
  }
  yield* rateFigures(figure, { name: `decode at ${context}, generate()`, rates, steps, distinct });
}

/** What binding an answer to a schema costs, in turns with the same unbound. */
async function* schemaFigures(
  figure: MakeFigure,
  { model, ids, options: { decode, rounds } }: Asked,
): AsyncGenerator<Figure> {
  const prompt = ids.slice(0, BEGINNING), bound: number[] = [], free: number[] = [];
  for (let round = -1; round < rounds; round++) {
    const within = rateOf(await answer(model, prompt, { maxTokens: decode, schema: SCHEMA }));
    const without = rateOf(await answer(model, prompt, { maxTokens: decode }));
    if (round < 0) continue;
    bound.push(within);
    free.push(without);
  }
  const [value, peerValue] = [median(bound), median(free)];
  yield {
    ...figure("decode within a schema, generate()", "tokens/s", value),
    ...{ peer: "without", peerValue, ratio: ratioOf("tokens/s", value, peerValue) },
  };
}

function rateOf({ ends, ids }: Pick<Answer, "ends" | "ids">): number {
  return (ids.length - 1) / (ends.at(-1)! - ends[0]!) * 1000;
}

async function answer(
  model: Model,
  prompt: readonly number[],
  options: { readonly maxTokens: number; readonly schema?: unknown },
): Promise<Answer> {
  const start = performance.now(), ends: number[] = [], ids: number[] = [];
  for await (const { tokens } of generate(model, prompt, { ...GREEDY, ...options })) {
    ends.push(performance.now());
    ids.push(...tokens.map(({ id }) => id));
  }
  return { start, ends, ids };
}
