// How noise grows over the steps of training, and which of them are taken: betas, spacings, Karras' levels. Numbers are
// rounded to float32 where diffusers' are, because the first levels are differences to 1 and their last bits show.

import { roundHalfEven } from "../../../../quant/extremes.ts";
import type { SchedulerConfig } from "./scheduler_config.ts";

const { fround, sqrt } = Math;

/** Shares of the picture in the square of a sample, by timestep (arXiv 2006.11239, equation 4). */
export function alphaProducts(config: SchedulerConfig): Float32Array {
  let betas = betasOf(config);
  if (config.rescale_betas_zero_snr) betas = withoutEnd(betas);
  return products(betas);
}

function products(betas: Float32Array): Float32Array {
  let product = 1;
  return betas.map((beta) => product *= fround(1 - beta));
}

function betasOf(config: SchedulerConfig): Float32Array {
  const { beta_schedule, beta_start, beta_end, num_train_timesteps: count } = config;
  if (beta_schedule === "linear") return between(beta_start, beta_end, { count });
  if (beta_schedule === "scaled_linear") {
    return between(sqrt(beta_start), sqrt(beta_end), { count }).map((root) => root * root);
  }
  // The cosine of arXiv 2102.09672, equation 17.
  const bar = (t: number) => Math.cos((t + 0.008) / 1.008 * Math.PI / 2) ** 2;
  return Float32Array.from(
    { length: count },
    (_, i) => Math.min(1 - bar((i + 1) / count) / bar(i / count), 0.999),
  );
}

/** Betas that end with no picture at all (arXiv 2305.08891, algorithm 1). */
function withoutEnd(betas: Float32Array): Float32Array {
  const roots = products(betas).map(sqrt), first = roots[0]!, last = roots.at(-1)!;
  const scale = fround(first / fround(first - last));
  const bars = roots.map((root) => fround(fround(root - last) * scale) ** 2);
  return bars.map((bar, i) => 1 - fround(i === 0 ? bar : bar / bars[i - 1]!));
}

/** Evenly spaced float32 numbers, as torch.linspace makes them: from both ends. */
function between(from: number, to: number, { count }: { readonly count: number }): Float32Array {
  const low = fround(from), high = fround(to), step = fround((high - low) / (count - 1));
  return Float32Array.from(
    { length: count },
    (_, i) => i < count / 2 ? low + step * i : high - step * (count - 1 - i),
  );
}

/** Noise over picture, by timestep. */
export function sigmasOf(alphas: Float32Array): Float32Array {
  return alphas.map((alpha) => sqrt(fround(fround(1 - alpha) / alpha)));
}

/**
 * Timesteps of a run, falling (arXiv 2305.08891, table 2).
 *
 * @param isRounded Whether those of "linspace" are whole.
 * @param hasLast False: one step more is laid out, and the last is left out.
 */
export function spacedTimesteps(
  config: SchedulerConfig,
  steps: number,
  { isRounded, hasLast = true }: { readonly isRounded: boolean; readonly hasLast?: boolean },
): number[] {
  const { num_train_timesteps: all, timestep_spacing, steps_offset } = config;
  if (timestep_spacing === "trailing") {
    // numpy.arange goes on by what its second number differs from the first, rounded.
    const ratio = all / steps, next = all - ratio - all;
    return Array.from(
      { length: Math.ceil(all / ratio) },
      (_, i) => roundHalfEven(all + i * next) - 1,
    );
  }
  const count = hasLast ? steps : steps + 1;
  const ratio = timestep_spacing === "leading"
    ? Math.floor(all / count)
    : (all - 1) / Math.max(1, count - 1);
  const isLeading = timestep_spacing === "leading";
  const rising = Array.from({ length: count }, (_, i) => {
    if (isLeading) return i * ratio + steps_offset;
    return isRounded ? roundHalfEven(i * ratio) : fround(i * ratio);
  });
  return rising.reverse().slice(0, steps);
}

/** Levels as Karras spaces them (arXiv 2206.00364, equation 5), falling. */
export function karrasSigmas(most: number, least: number, { steps }: { steps: number }): number[] {
  const rho = 7, from = most ** (1 / rho), to = least ** (1 / rho);
  return Array.from(
    { length: steps },
    (_, i) => (from + (steps === 1 ? 0 : i / (steps - 1)) * (to - from)) ** rho,
  );
}

/** The level at a timestep that may lie between two. */
export function sigmaAt(sigmas: Float32Array, timestep: number): number {
  const low = Math.min(Math.max(0, Math.floor(timestep)), sigmas.length - 1);
  const high = Math.min(low + 1, sigmas.length - 1);
  return sigmas[low]! + (sigmas[high]! - sigmas[low]!) * (Math.max(0, timestep) - low);
}

/** The timestep of a level, between two by its logarithm. */
export function timestepOf(sigmas: Float32Array, sigma: number): number {
  const log = Math.log(Math.max(sigma, 1e-10));
  const above = sigmas.findIndex((level) => fround(Math.log(level)) > log);
  const end = above < 0 ? sigmas.length : above;
  const low = Math.min(Math.max(0, end - 1), sigmas.length - 2);
  const from = fround(Math.log(sigmas[low]!)), to = fround(Math.log(sigmas[low + 1]!));
  const share = Math.min(1, Math.max(0, (from - log) / fround(from - to)));
  return (1 - share) * low + share * (low + 1);
}
