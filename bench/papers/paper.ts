// What the benches of the papers have in common: a row is a figure of ours with what the paper states in its place and
// the hardware that it was measured on. No ratio is formed over different machines; what needs a meter that this machine
// has not is NaN, which prints as `not measured` [E9].

import { generate } from "../../engine/decode/generate.ts";
import type { GenerateOptions } from "../../engine/decode/generate_options.ts";
import type { LoadOptions, Model } from "../../engine/decode/model.ts";
import { load } from "../../engine/models/load.ts";
import { type Figure, machineName, median } from "../support/figures.ts";
import type { BenchModel } from "../support/models.ts";

/** What to measure. */
export interface PaperOptions {
  /** Stand-ins for the paper's models, by name. */
  readonly models: readonly BenchModel[];
  /** Lengths of prompts. */
  readonly prompts: readonly number[];
  /** Tokens of an answer. */
  readonly decode: number;
  readonly rounds: number;
  readonly load: LoadOptions;
  /** Whether to read the processor's energy counter. */
  readonly power: boolean;
}

/** A bench of a paper. */
export interface PaperBench {
  /** The paper, and what differs here from its hardware and models. */
  readonly about: string;
  /** Rows in the order of the paper's tables. */
  run(options: PaperOptions): AsyncGenerator<Figure>;
}

/** What a paper states, and where it was measured. */
export interface Stated {
  readonly value: number;
  readonly on: string;
}

/** A row. */
export function row(
  { bench, name, unit, value, stated }: {
    readonly bench: string;
    readonly name: string;
    readonly unit: string;
    readonly value: number;
    readonly stated?: Stated | undefined;
  },
): Figure {
  return {
    ...{ bench, case: name, unit, value, ratio: null, share: null, machine: machineName() },
    peer: stated ? `paper, ${stated.on}` : null,
    peerValue: stated?.value ?? null,
  };
}

/** Speed of a prompt and of the answer behind it. */
export interface Speeds {
  readonly prefill: number;
  readonly decode: number;
}

/** Tokens a second, medians over rounds; the first round wakes the machine and is not counted. */
export async function speedsOf(
  model: Model,
  { ids, prompt, decode, rounds, draft }: {
    readonly ids: readonly number[];
    readonly prompt: number;
    readonly decode: number;
    readonly rounds: number;
    readonly draft?: GenerateOptions["draft"] | undefined;
  },
): Promise<Speeds> {
  const prefills: number[] = [], decodes: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    // A text of its own for each round: what sessions had in common would be kept.
    const text = [ids[round + 1]!, ...ids.slice(1, prompt)];
    const { stats } = await generate(model, text, {
      ...{ maxTokens: decode, temperature: 0, ignoreEos: true },
      ...draft !== undefined && { draft },
    }).result;
    if (round === 0) continue;
    prefills.push(stats.prefillPerSecond);
    decodes.push(stats.decodePerSecond);
  }
  return { prefill: median(prefills), decode: median(decodes) };
}

/** Loads a model with room for a text, at most as long as it was trained for. */
export async function loadFor(
  { path }: BenchModel,
  { tokens, options }: { readonly tokens: number; readonly options: LoadOptions },
): Promise<Model> {
  return await load(path, { ...options, contextLength: tokens });
}
