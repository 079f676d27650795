// Schedulers that count in levels of noise: Euler and ancestral Euler (arXiv 2206.00364; k-diffusion), DPM-Solver++ of
// first and second order (arXiv 2211.01095), and Euler's step for flow matching (arXiv 2403.03206).

import { roundHalfEven } from "../../../../quant/extremes.ts";
import {
  alphaProducts,
  karrasSigmas,
  sigmaAt,
  sigmasOf,
  spacedTimesteps,
  timestepOf,
} from "./noise_levels.ts";
import {
  cleanOf,
  firstStep,
  type Mix,
  type Schedule,
  type ScheduleOptions,
  type StepRule,
} from "./schedule.ts";
import type { SchedulerConfig } from "./scheduler_config.ts";

const { sqrt } = Math;

/** diffusers has this in place of an end without any picture, which has no finite level. */
const LEAST_SHARE = 2 ** -24;

/** Euler's step. */
export function euler(config: SchedulerConfig, options: ScheduleOptions): Schedule {
  return eulerSteps(config, options, { isAncestral: false });
}

/** Euler's step to less noise than wanted, and fresh noise up to that. */
export function eulerAncestral(config: SchedulerConfig, options: ScheduleOptions): Schedule {
  const plain = { ...config, use_karras_sigmas: false, final_sigmas_type: "zero" } as const;
  return eulerSteps(plain, options, { isAncestral: true });
}

function eulerSteps(
  config: SchedulerConfig,
  options: ScheduleOptions,
  { isAncestral }: { readonly isAncestral: boolean },
): Schedule {
  const table = levelTable(config);
  const spaced = spacedTimesteps(config, options.steps, { isRounded: false });
  const levels = spaced.map((timestep) => sigmaAt(table, timestep));
  const sigmas = config.use_karras_sigmas
    ? karrasSigmas(levels[0]!, levels.at(-1)!, { steps: levels.length })
    : levels;
  const timesteps = config.use_karras_sigmas
    ? sigmas.map((sigma) => timestepOf(table, sigma))
    : spaced;
  const all = withEnd(sigmas, table, config), first = firstStep(options);
  const taken = timesteps.slice(first), most = Math.max(...all);
  const rules = taken.map((_, i) => {
    const from = all[first + i]!, to = all[first + i + 1]!;
    const fresh = isAncestral ? sqrt(to ** 2 * (from ** 2 - to ** 2) / from ** 2) : 0;
    const alpha = 1 / sqrt(from ** 2 + 1);
    // In these units a sample is the picture plus `from` parts of noise.
    const [onSample, onOutput] = cleanOf(config.prediction_type, alpha, { sigma: from * alpha });
    return eulerRule([onSample * alpha, onOutput], {
      from,
      to: sqrt(Math.max(0, to ** 2 - fresh ** 2)),
      fresh,
    });
  });
  return {
    timesteps: Float32Array.from(taken),
    sigmas: all,
    initNoiseSigma: config.timestep_spacing === "leading" ? sqrt(most ** 2 + 1) : most,
    inputScales: rules.map((_, i) => 1 / sqrt(all[first + i]! ** 2 + 1)),
    rules,
    begin: [1, all[first]!],
  };
}

/** Along the line from the sample to the picture in it, from one level to another. */
function eulerRule(
  clean: Mix,
  { from, to, fresh = 0 }: { readonly from: number; readonly to: number; readonly fresh?: number },
): StepRule {
  const onClean = 1 - to / from;
  return {
    samples: [to / from + onClean * clean[0], 0],
    outputs: [onClean * clean[1]],
    noise: fresh,
    clean,
  };
}

/** Flow matching: a sample is sigma parts noise, the rest picture, and the network says noise minus picture. */
export function flowMatchEuler(
  config: SchedulerConfig,
  options: ScheduleOptions,
): Schedule {
  const { num_train_timesteps: all, shift, use_dynamic_shifting: isDynamic } = config;
  const { steps, mu } = options;
  if (isDynamic && mu === undefined) {
    throw new TypeError("mu must be given: this scheduler shifts its steps by the picture's size");
  }
  const shifted = (sigma: number) => shift * sigma / (1 + (shift - 1) * sigma);
  const moved = (sigma: number) =>
    isDynamic ? Math.exp(mu!) / (Math.exp(mu!) + 1 / sigma - 1) : shifted(sigma);
  const least = Math.fround(isDynamic ? 1 / all : shifted(1 / all));
  // diffusers shifts the last level twice, here and when the table is laid out.
  const sigmas = Float32Array.from({ length: steps + 1 }, (_, i) => {
    if (i === steps) return 0;
    return moved(steps === 1 ? 1 : 1 + (least - 1) * i / (steps - 1));
  });
  // Other pipelines cut what is made down to whole steps, those of flow matching what is left out.
  const first = Math.trunc(steps - Math.min(steps, steps * (options.strength ?? 1)));
  const levels = [...sigmas].slice(first);
  return {
    timesteps: Float32Array.from(levels.slice(0, -1), (sigma) => sigma * all),
    sigmas,
    initNoiseSigma: 1,
    inputScales: levels.slice(1).map(() => 1),
    rules: levels.slice(1).map((to, i) => eulerRule([1, -levels[i]!], { from: levels[i]!, to })),
    begin: [1 - levels[0]!, levels[0]!],
  };
}

/** DPM-Solver++ of order 1 or 2, multistep. */
export function dpmSolver(config: SchedulerConfig, options: ScheduleOptions): Schedule {
  const table = levelTable(config), { steps } = options;
  const spaced = spacedTimesteps(config, steps, { isRounded: true, hasLast: false });
  const sigmas = config.use_karras_sigmas
    ? karrasSigmas(table.at(-1)!, table[0]!, { steps })
    : spaced.map((timestep) => sigmaAt(table, timestep));
  const whole = config.beta_schedule === "squaredcos_cap_v2" ? Math.trunc : roundHalfEven;
  const timesteps = config.use_karras_sigmas
    ? sigmas.map((sigma) => whole(timestepOf(table, sigma)))
    : spaced;
  const all = withEnd(sigmas, table, config), first = firstStep(options);
  const taken = timesteps.slice(first), last = timesteps.length - 1;
  const isShort = config.lower_order_final && timesteps.length < 15;
  const endsFirstOrder = config.euler_at_final || isShort || config.final_sigmas_type === "zero";
  const rules = taken.map((_, made) => {
    const at = first + made;
    const isFirstOrder = config.solver_order === 1 || made === 0 || at === last && endsFirstOrder;
    return dpmRule(config, all, { at, isFirstOrder });
  });
  const alpha = alphaOf(all[first]!);
  return {
    timesteps: Float32Array.from(taken),
    sigmas: all,
    initNoiseSigma: 1,
    inputScales: taken.map(() => 1),
    rules,
    begin: [alpha, all[first]! * alpha],
  };
}

function alphaOf(sigma: number): number {
  return 1 / sqrt(sigma ** 2 + 1);
}

function dpmRule(
  { prediction_type: prediction, solver_type: solver }: SchedulerConfig,
  sigmas: Float32Array,
  { at, isFirstOrder }: { readonly at: number; readonly isFirstOrder: boolean },
): StepRule {
  const from = sigmas[at]!, to = sigmas[at + 1]!, alpha = alphaOf(to);
  const cleanAt = (sigma: number) =>
    cleanOf(prediction, alphaOf(sigma), { sigma: sigma * alphaOf(sigma) });
  const clean = cleanAt(from), shrink = to / from - 1; // e^-h - 1
  const onSample = to * alpha / (from * alphaOf(from));
  if (isFirstOrder) {
    const onClean = -alpha * shrink;
    return {
      samples: [onSample + onClean * clean[0], 0],
      outputs: [onClean * clean[1]],
      noise: 0,
      clean,
    };
  }
  const before = sigmas[at - 1]!, earlier = cleanAt(before);
  const h = Math.log(from / to), ratio = h / Math.log(before / from);
  const weight = solver === "heun" ? alpha * (shrink / h + 1) : -0.5 * alpha * shrink;
  const onChange = weight * ratio, onClean = -alpha * shrink + onChange;
  return {
    samples: [onSample + onClean * clean[0], -onChange * earlier[0]],
    outputs: [onClean * clean[1], -onChange * earlier[1]],
    noise: 0,
    clean,
  };
}

function levelTable(config: SchedulerConfig): Float32Array {
  const alphas = alphaProducts(config);
  if (config.rescale_betas_zero_snr) alphas[alphas.length - 1] = LEAST_SHARE;
  return sigmasOf(alphas);
}

/** With the level behind the last step. */
function withEnd(
  sigmas: readonly number[],
  table: Float32Array,
  { final_sigmas_type: end }: SchedulerConfig,
): Float32Array {
  return Float32Array.of(...sigmas, end === "zero" ? 0 : table[0]!);
}
