// From a scheduler_config.json to the steps of a picture.

import { UnsupportedError } from "../../../errors.ts";
import { ddim, lcm, plms } from "./ddim.ts";
import type { Schedule, ScheduleOptions } from "./schedule.ts";
import {
  readSchedulerConfig,
  type SchedulerConfig,
  type SchedulerName,
} from "./scheduler_config.ts";
import { dpmSolver, euler, eulerAncestral, flowMatchEuler } from "./sigmas.ts";

const PLANS: Readonly<
  Record<SchedulerName, (config: SchedulerConfig, options: ScheduleOptions) => Schedule>
> = {
  DDIMScheduler: ddim,
  PNDMScheduler: plms,
  EulerDiscreteScheduler: euler,
  EulerAncestralDiscreteScheduler: eulerAncestral,
  DPMSolverMultistepScheduler: dpmSolver,
  LCMScheduler: lcm,
  FlowMatchEulerDiscreteScheduler: flowMatchEuler,
};

/**
 * Lays out the steps of a picture as diffusers' schedulers do.
 *
 * @param config Content of a scheduler_config.json; its `_class_name` says which scheduler it is.
 * @throws {UnsupportedError} If the scheduler, or what it is to do, is not known.
 * @throws {FormatError} If the config has a wrong value.
 * @throws {RangeError} If there are no steps, or more than the network was trained on.
 *
 * @example
 * ```ts
 * import { planSteps } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const config = { _class_name: "EulerDiscreteScheduler", beta_start: 0.00085, beta_end: 0.012 };
 * assertEquals(planSteps(config, { steps: 20 }).rules.length, 20);
 * ```
 * @category Pictures from texts
 */
export function planSteps(
  config: Readonly<Record<string, unknown>>,
  options: ScheduleOptions,
): Schedule {
  const read = readSchedulerConfig(config);
  const { steps, strength = 1, eta = 0 } = options;
  if (!Number.isSafeInteger(steps) || steps < 1 || steps > read.num_train_timesteps) {
    throw new RangeError(`steps must be a whole number from 1 to ${read.num_train_timesteps}`);
  }
  const isStrength = strength > 0 && strength <= 1;
  if (!(eta >= 0 && eta <= 1)) throw new RangeError(`eta must be from 0 to 1, not ${eta}`);
  if (read.rescale_betas_zero_snr && read.prediction_type === "epsilon") {
    throw new UnsupportedError(
      "noise cannot be told from a first step that has no picture in it",
      { place: "prediction_type", remedy: 'Use a model of "v_prediction"' },
    );
  }
  const schedule = isStrength ? PLANS[read.scheduler](read, options) : undefined;
  if (schedule && schedule.timesteps.length > 0) return schedule;
  throw new RangeError(`strength must be from 1 / steps to 1, not ${strength}`);
}
