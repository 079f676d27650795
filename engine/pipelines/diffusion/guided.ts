// What the network says of a step. With guidance (arXiv 2207.12598) it is asked twice, with the prompt and with the negative
// one, and what differs counts more: both in one run, or one after the other where memory is short. What
// stays from step to step is allocated once.

import { ResourceError } from "../../errors.ts";
import { firstOf, type Network, type Tensor } from "../../models/networks/network.ts";
import { joined, type PromptInputs } from "./prompts.ts";

/** What a network that tells noise from picture sees beside the sample. */
export interface Conditions {
  /** Its input for the sample. */
  readonly sample: string;
  /** What the prompt says, by inputs. */
  readonly prompt: PromptInputs;
  /** What the negative prompt says, in the same inputs; undefined: no guidance. */
  readonly negative: PromptInputs | undefined;
  readonly guidance: number;
  /** Further channels of the input, f32[channels, height, width]: mask and picture of networks that fill in. */
  readonly more?: Float32Array | undefined;
  /** What else it takes, likewise: `timestep_cond` of LCM, sizes. */
  readonly others?: PromptInputs | undefined;
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
  const { sample, prompt, negative, guidance, more, others = {}, split } = conditions;
  const [, channels, height, width] = dims as [number, number, number, number];
  const own = channels * height * width, whole = own + (more?.length ?? 0);
  const input = new Float32Array(own), said = new Float32Array(own);
  let count = negative && split !== true ? 2 : 1;
  let sides = sidesOf(count);

  /** Inputs of one run. */
  function sidesOf(runs: number) {
    const texts = runs === 2 ? [negative!, prompt] : [prompt];
    const batched = (name: string, of: readonly PromptInputs[]): Tensor => ({
      data: joined(of.map((one) => one[name]!.data)),
      dims: [runs, ...of[0]![name]!.dims],
    });
    const samples = new Float32Array(runs * whole), timesteps = new Float32Array(runs);
    for (let i = 0; more && i < runs; i++) samples.set(more, i * whole + own);
    const known = Object.fromEntries([
      ...Object.keys(prompt).map((name) => [name, batched(name, texts)]),
      ...Object.keys(others).map((name) => [name, batched(name, texts.map(() => others))]),
    ]);
    const inputs: Record<string, Tensor> = {
      ...known,
      [sample]: { data: samples, dims: [runs, whole / (height * width), height, width] },
      timestep: { data: timesteps, dims: [runs] },
    };
    return { samples, timesteps, inputs };
  }

  function fill(timestep: number): void {
    for (let i = 0; i < count; i++) sides.samples.set(input, i * whole);
    sides.timesteps.fill(timestep);
  }

  /** Runs with what one prompt says. */
  async function askOne(texts: PromptInputs, signal?: AbortSignal): Promise<Float32Array> {
    for (const name of Object.keys(texts)) sides.inputs[name]!.data.set(texts[name]!.data);
    // What networks say of variances stands behind the noise, and is not used.
    return firstOf(await network.run(sides.inputs, signal)).subarray(0, own);
  }

  async function askBoth(timestep: number, signal?: AbortSignal): Promise<Float32Array> {
    fill(timestep);
    if (count === 2) {
      const both = firstOf(await network.run(sides.inputs, signal)), second = both.length / 2;
      mix(both.subarray(0, own), both.subarray(second, second + own));
      return said;
    }
    if (!negative) return await askOne(prompt, signal);
    mix(await askOne(negative, signal), await askOne(prompt, signal));
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
        await network.release();
        count = 1;
        sides = sidesOf(count);
        return await askBoth(timestep, signal);
      }
    },
  };
}
