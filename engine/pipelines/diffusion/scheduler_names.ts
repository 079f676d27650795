// Short names of schedulers, as other programs have them, and the config that one of them gets from a pipeline's own.

import { UnsupportedError } from "../../errors.ts";
import type { JsonRecord } from "./diffusers_folder.ts";

const SCHEDULERS: Readonly<Record<SchedulerChoice, JsonRecord>> = {
  ddim: { _class_name: "DDIMScheduler" },
  plms: { _class_name: "PNDMScheduler", skip_prk_steps: true },
  euler: { _class_name: "EulerDiscreteScheduler" },
  "euler-karras": { _class_name: "EulerDiscreteScheduler", use_karras_sigmas: true },
  "euler-a": { _class_name: "EulerAncestralDiscreteScheduler" },
  "dpm++2m": { _class_name: "DPMSolverMultistepScheduler" },
  "dpm++2m-karras": { _class_name: "DPMSolverMultistepScheduler", use_karras_sigmas: true },
  lcm: { _class_name: "LCMScheduler" },
};

/**
 * A scheduler by its short name.
 * @category Pictures from texts
 */
export type SchedulerChoice =
  | "ddim"
  | "plms"
  | "euler"
  | "euler-karras"
  | "euler-a"
  | "dpm++2m"
  | "dpm++2m-karras"
  | "lcm";

/** All short names. */
export const SCHEDULER_CHOICES: readonly SchedulerChoice[] = Object.keys(
  SCHEDULERS,
) as SchedulerChoice[];

/** What matches noise and picture by straight lines takes no other scheduler. */
const FLOW = /^FlowMatch/;

/**
 * The config of the scheduler that is wanted.
 *
 * @param own The pipeline's.
 * @throws {UnsupportedError} If there is none of that name, or the pipeline's network needs its own.
 */
export function schedulerConfig(own: JsonRecord, choice?: string): JsonRecord {
  if (choice === undefined) return own;
  if (FLOW.test(String(own._class_name))) {
    throw new UnsupportedError(`scheduler "${choice}" does not fit ${own._class_name}`, {
      remedy: "Leave it out: the model was trained for its own",
    });
  }
  if (Object.hasOwn(SCHEDULERS, choice)) {
    return { ...own, ...SCHEDULERS[choice as SchedulerChoice] };
  }
  throw new UnsupportedError(`scheduler "${choice}" is not known`, {
    remedy: `Known are ${SCHEDULER_CHOICES.join(", ")}`,
  });
}
