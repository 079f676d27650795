// What the network says of a step. With guidance (arXiv 2207.12598) it is asked twice, with the prompt and with the negative
// one, and what differs counts more: both in one run, or one after the other where memory is short. Nothing is allocated
// from step to step.

import { ResourceError } from "../../errors.ts";
import type { Network, Tensor } from "../../models/networks/network.ts";

/** What a network that tells noise from picture sees beside the sample. */
export interface Conditions {
  /** States of the prompt, f32[tokens, width]. */
  readonly prompt: Float32Array;
  /** Those of the negative prompt; undefined: no guidance. */
  readonly negative: Float32Array | undefined;
  readonly tokens: number;
  readonly guidance: number;
  /** Further channels of the input, f32[channels, height, width]: mask and picture of networks that fill in. */
  readonly more?: Float32Array | undefined;
  /** What else it takes, f32[width] by input: `timestep_cond` of LCM. */
  readonly others?: Readonly<Record<string, Float32Array>> | undefined;
  /** Whether both are asked one after the other; undefined: where one run takes too much memory. */
  readonly split?: boolean | undefined;
}

/** Asks a network, step by step. */
export interface Guided {
  /** Channels, height and width of the sample in front of the network's own input. */
  readonly input: Float32Array;
  /** Runs it on `input`; its answer is a view that the next call overwrites. */
  ask(timestep: number, signal?: AbortSignal): Promise<Float32Array>;
  /** Whether it took two runs for want of memory. */
  readonly isSplit: boolean;
}

/** Makes ready for samples of a size, [1, channels, height, width]. */
export function createGuided(
  network: Network,
  { dims, conditions }: { readonly dims: readonly number[]; readonly conditions: Conditions },
): Guided {
  const { prompt, negative, tokens, guidance, more, others = {}, split } = conditions;
  const [, channels, height, width] = dims as [number, number, number, number];
  const own = channels * height * width, whole = own + (more?.length ?? 0);
  const input = new Float32Array(own), said = new Float32Array(own);
  let count = negative && split !== true ? 2 : 1;
  let sides = sidesOf(count);

  /** Inputs of one run. */
  function sidesOf(runs: number) {
    const texts = runs === 2 ? [negative!, prompt] : [prompt];
    const repeated = (values: Float32Array): Tensor => ({
      data: joined(texts.map(() => values)),
      dims: [runs, values.length],
    });
    const sample = new Float32Array(runs * whole);
    for (let i = 0; more && i < runs; i++) sample.set(more, i * whole + own);
    const sampleDims = [runs, whole / (height * width), height, width];
    return {
      sample: { data: sample, dims: sampleDims },
      timestep: { data: new Float32Array(runs), dims: [runs] },
      encoder_hidden_states: {
        data: joined(texts),
        dims: [runs, tokens, prompt.length / tokens],
      },
      ...Object.fromEntries(Object.entries(others).map(([name, one]) => [name, repeated(one)])),
    };
  }

  function fill(timestep: number): void {
    for (let i = 0; i < count; i++) sides.sample.data.set(input, i * whole);
    sides.timestep.data.fill(timestep);
  }

  async function askBoth(timestep: number, signal?: AbortSignal): Promise<Float32Array> {
    fill(timestep);
    if (count === 2) {
      const both = await network.run(sides, signal);
      mix(both.subarray(0, own), both.subarray(own, 2 * own));
      return said;
    }
    const states = sides.encoder_hidden_states.data;
    if (negative) {
      states.set(negative);
      said.set((await network.run(sides, signal)).subarray(0, own));
      states.set(prompt);
    }
    const answer = await network.run(sides, signal);
    if (!negative) return answer.subarray(0, own);
    mix(said, answer);
    return said;
  }

  function mix(without: Float32Array, withPrompt: Float32Array): void {
    for (let i = 0; i < own; i++) {
      const base = without[i]!;
      said[i] = base + guidance * (withPrompt[i]! - base);
    }
  }

  return {
    input,
    get isSplit() {
      return negative !== undefined && count === 1 && split === undefined;
    },
    async ask(timestep, signal) {
      try {
        return await askBoth(timestep, signal);
      } catch (error) {
        if (!(error instanceof ResourceError) || count === 1 || split === false) throw error;
        network.release();
        count = 1;
        sides = sidesOf(count);
        return await askBoth(timestep, signal);
      }
    },
  };
}

function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}
