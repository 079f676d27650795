// DDIM (arXiv 2010.02502, equation 12) and what shares its levels: PLMS (arXiv 2202.09778, equations 9 and 12, without
// Runge-Kutta steps) and LCM (arXiv 2310.04378, algorithm 3).

import { alphaProducts, spacedTimesteps } from "./noise_levels.ts";
import {
  cleanOf,
  firstStep,
  noiseOf,
  type Schedule,
  type ScheduleOptions,
  type StepRule,
} from "./schedule.ts";
import type { SchedulerConfig } from "./scheduler_config.ts";

const { sqrt } = Math;

/** How much outputs count, by steps that were made: of this step, of the one before, and so on. */
const PLMS_WEIGHTS = [
  [1],
  [1 / 2, 1 / 2],
  // The second output is never used again: the step it belongs to is the first one, made anew.
  [3 / 2, 0, -1 / 2],
  [23 / 12, -16 / 12, 0, 5 / 12],
  [55 / 24, -59 / 24, 37 / 24, 0, -9 / 24],
  [55 / 24, -59 / 24, 37 / 24, -9 / 24],
] as const;

/** DDIM. */
export function ddim(config: SchedulerConfig, options: ScheduleOptions): Schedule {
  const levels = levelsOf(config), { steps, eta = 0 } = options;
  const { prediction_type: prediction, clip_sample, clip_sample_range: range } = config;
  const timesteps = spacedTimesteps(config, steps, { isRounded: true });
  const stride = Math.floor(config.num_train_timesteps / steps);
  return finish({ levels, timesteps, options }, (t): StepRule => {
    const now = levels.at(t), next = levels.at(t - stride);
    const { alpha } = now;
    const fresh = eta * sqrt(next.variance / now.variance * (1 - now.share / next.share));
    const clean = cleanOf(prediction, alpha, now), noise = noiseOf(prediction, alpha, now);
    const onNoise = sqrt(Math.max(0, next.variance - fresh ** 2));
    const onClean = clip_sample ? 0 : next.alpha;
    return {
      samples: [onClean * clean[0] + onNoise * noise[0], 0],
      outputs: [onClean * clean[1] + onNoise * noise[1]],
      noise: fresh,
      clean,
      clipped: clip_sample ? { weight: next.alpha, range } : undefined,
    };
  });
}

/**
 * PLMS: the first step is made twice, the second time with the mean of two outputs. As in diffusers this is so too where
 * the first steps are left out, though no timestep stands twice there: such a picture ends a level of noise higher.
 */
export function plms(config: SchedulerConfig, options: ScheduleOptions): Schedule {
  const levels = levelsOf(config), { steps } = options;
  const spaced = spacedTimesteps(config, steps, { isRounded: true });
  const timesteps = [...spaced.slice(0, 2), ...spaced.slice(1)];
  const stride = Math.floor(config.num_train_timesteps / steps);
  return finish({ levels, timesteps, options }, (t, made): StepRule => {
    const isAgain = made === 1;
    const now = levels.at(isAgain ? t + stride : t), next = levels.at(isAgain ? t : t - stride);
    const onNoise = -(next.share - now.share) /
      (now.share * sqrt(next.variance) + sqrt(now.share * now.variance * next.share));
    const noise = noiseOf(config.prediction_type, now.alpha, now);
    const onSample = sqrt(next.share / now.share) + onNoise * noise[0];
    return {
      samples: isAgain ? [0, onSample] : [onSample, 0],
      outputs: PLMS_WEIGHTS[Math.min(made, 5)]!.map((weight) => weight * onNoise * noise[1]),
      noise: 0,
      // Of the sample that the network saw, which is already less noisy where the first step is made again.
      clean: cleanOf(config.prediction_type, levels.at(t).alpha, levels.at(t)),
    };
  });
}

const SIGMA_DATA = 0.5;

/** LCM: each step goes to the picture at once, and back to the noise of the next. */
export function lcm(config: SchedulerConfig, options: ScheduleOptions): Schedule {
  const levels = levelsOf(config), { steps } = options;
  const { original_inference_steps: original, num_train_timesteps: all } = config;
  if (steps > original) {
    throw new RangeError(`steps must be at most ${original}, which LCM learnt, not ${steps}`);
  }
  const stride = Math.floor(all / original);
  const timesteps = Array.from(
    { length: steps },
    (_, i) => (original - Math.floor(i * original / steps)) * stride - 1,
  );
  const { prediction_type: prediction, clip_sample, clip_sample_range: range } = config;
  return finish({ levels, timesteps, options }, (t, _, left): StepRule => {
    const now = levels.at(t), next = left > 0 ? levels.at(timesteps.at(-left)!) : undefined;
    const scaled = t * config.timestep_scaling, square = scaled ** 2 + SIGMA_DATA ** 2;
    const kept = SIGMA_DATA ** 2 / square, alpha = next?.alpha ?? 1;
    const onClean = alpha * scaled / sqrt(square), clean = cleanOf(prediction, now.alpha, now);
    const plain = clip_sample ? 0 : onClean;
    return {
      samples: [alpha * kept + plain * clean[0], 0],
      outputs: [plain * clean[1]],
      noise: next ? next.sigma : 0,
      clean,
      clipped: clip_sample ? { weight: onClean, range } : undefined,
    };
  });
}

interface Level {
  /** Share of the picture in the square of a sample, and of noise. */
  readonly share: number;
  readonly variance: number;
  /** Their roots. */
  readonly alpha: number;
  readonly sigma: number;
}

interface Levels {
  /** Below 0: behind the last step. */
  at(timestep: number): Level;
}

function levelsOf(config: SchedulerConfig): Levels {
  const alphas = alphaProducts(config);
  const end = config.set_alpha_to_one ? 1 : alphas[0]!;
  return {
    at(timestep) {
      const share = timestep < 0 ? end : alphas[Math.min(timestep, alphas.length - 1)]!;
      return { share, variance: 1 - share, alpha: sqrt(share), sigma: sqrt(1 - share) };
    },
  };
}

function finish(
  { levels, timesteps, options }: {
    readonly levels: Levels;
    readonly timesteps: readonly number[];
    readonly options: ScheduleOptions;
  },
  rule: (timestep: number, made: number, left: number) => StepRule,
): Schedule {
  const taken = timesteps.slice(firstStep(options)), { alpha, sigma } = levels.at(taken[0]!);
  return {
    timesteps: Float32Array.from(taken),
    initNoiseSigma: 1,
    inputScales: taken.map(() => 1),
    rules: taken.map((timestep, i) => rule(timestep, i, taken.length - 1 - i)),
    begin: [alpha, sigma],
  };
}
