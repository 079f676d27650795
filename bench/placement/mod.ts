// `deno task bench placement`: tokens a second of a model over several devices, one text alone and several at once, each
// placement beside the first one in the same run, in turns. `n queries` are n texts that go on at the same time; over k
// groups of devices they are k micro-batches of n / k.

import type { LoadOptions, Model } from "../../engine/decode/model.ts";
import { generate } from "../../engine/decode/generate.ts";
import { load } from "../../engine/models/load.ts";
import { type Figure, machineName, median, ratioOf } from "../support/figures.ts";
import { type BenchModel, releaseModel } from "../support/models.ts";

/** What to measure. */
export interface PlacementBenchOptions {
  readonly models: readonly BenchModel[];
  /** As `load` takes them; `gpu-layers=N` is that option. The first is what the others are held against. */
  readonly placements: readonly string[];
  /** Texts at once. */
  readonly queries: readonly number[];
  readonly rounds: number;
  /** Tokens of an answer. */
  readonly decode: number;
  readonly load: LoadOptions;
}

const PROMPT = 16;

/** Measures; models are loaded one placement at a time, so that one device holds one of them. */
export async function* placementBench(options: PlacementBenchOptions): AsyncGenerator<Figure> {
  const machine = machineName();
  for (const model of options.models) {
    const base = new Map<number, number>();
    for (const placement of options.placements) {
      using loaded = await load(model.path, { ...options.load, ...placementOf(placement) });
      for (const note of loaded.notes) console.error(`${placement}: ${note}`);
      for (const queries of options.queries) {
        const value = await speedOf(loaded, { ...options, ids: model.ids, queries });
        if (!base.has(queries)) base.set(queries, value);
        const peerValue = base.get(queries)!;
        yield {
          ...{ bench: "placement", unit: "tokens/s", value, machine, share: null },
          case: `decode ${model.name} on ${placement}, ${queries} ${
            queries === 1 ? "query" : "queries"
          }`,
          peer: options.placements[0]!,
          peerValue,
          ratio: ratioOf("tokens/s", value, peerValue),
        };
      }
    }
    await releaseModel(model);
  }
}

function placementOf(text: string): LoadOptions {
  const [, layers] = /^gpu-layers=(\d+)$/.exec(text) ?? [];
  if (layers !== undefined) return { gpuLayers: Number(layers) };
  return text.startsWith("device=")
    ? { device: text.slice("device=".length) as NonNullable<LoadOptions["device"]> }
    : { placement: text };
}

async function speedOf(
  model: Model,
  { ids, queries, rounds, decode }: Pick<PlacementBenchOptions, "rounds" | "decode"> & {
    readonly ids: readonly number[];
    readonly queries: number;
  },
): Promise<number> {
  const speeds: number[] = [];
  // The first round wakes drivers and is not counted.
  for (let round = 0; round <= rounds; round++) {
    const sessions = Array.from({ length: queries }, () => model.createSession());
    for (const [i, session] of sessions.entries()) {
      await session.eval(ids.slice(i * PROMPT, (i + 1) * PROMPT));
    }
    const start = performance.now();
    const answers = sessions.map((session, i) =>
      generate(session, ids.slice(i * PROMPT, (i + 1) * PROMPT), {
        ...{ maxTokens: decode, temperature: 0, ignoreEos: true },
      }).result
    );
    await Promise.all(answers);
    if (round > 0) speeds.push(queries * decode * 1000 / (performance.now() - start));
    for (const session of sessions) session.dispose();
  }
  return median(speeds);
}
