// A scheduler_config.json of diffusers as plain data: which schedulers are known, what each takes for granted, and which
// of diffusers' options nothing here does. Other fields are passed over, since configs are handed from one scheduler to
// another, and carry what those before needed.

import { FormatError, UnsupportedError } from "../../../errors.ts";
import { COUNT, FLAG, NUMBER, oneOf, type ValueRule, whole } from "../../../record.ts";

/** What a file says; names are diffusers'. */
export interface SchedulerConfig {
  readonly scheduler: SchedulerName;
  readonly num_train_timesteps: number;
  readonly beta_schedule: "linear" | "scaled_linear" | "squaredcos_cap_v2";
  readonly beta_start: number;
  readonly beta_end: number;
  readonly prediction_type: "epsilon" | "v_prediction" | "sample";
  readonly timestep_spacing: "leading" | "linspace" | "trailing";
  readonly steps_offset: number;
  readonly rescale_betas_zero_snr: boolean;
  readonly clip_sample: boolean;
  readonly clip_sample_range: number;
  readonly set_alpha_to_one: boolean;
  readonly use_karras_sigmas: boolean;
  readonly final_sigmas_type: "zero" | "sigma_min";
  readonly solver_order: number;
  readonly solver_type: "midpoint" | "heun";
  readonly lower_order_final: boolean;
  readonly euler_at_final: boolean;
  readonly original_inference_steps: number;
  readonly timestep_scaling: number;
  readonly shift: number;
  readonly use_dynamic_shifting: boolean;
}

type Fields = Omit<SchedulerConfig, "scheduler">;

const RULES: { readonly [K in keyof Fields]: ValueRule<Fields[K]> } = {
  num_train_timesteps: whole("a whole number, 2 to 100000", { least: 2, most: 100000 }),
  beta_schedule: oneOf(["linear", "scaled_linear", "squaredcos_cap_v2"], "a known schedule"),
  beta_start: NUMBER,
  beta_end: NUMBER,
  prediction_type: oneOf(["epsilon", "v_prediction", "sample"], "a known kind"),
  timestep_spacing: oneOf(["leading", "linspace", "trailing"], "a known spacing"),
  steps_offset: COUNT,
  rescale_betas_zero_snr: FLAG,
  clip_sample: FLAG,
  clip_sample_range: NUMBER,
  set_alpha_to_one: FLAG,
  use_karras_sigmas: FLAG,
  final_sigmas_type: oneOf(["zero", "sigma_min"], '"zero" or "sigma_min"'),
  solver_order: whole("1 or 2", { least: 1, most: 2 }),
  solver_type: oneOf(["midpoint", "heun"], '"midpoint" or "heun"'),
  lower_order_final: FLAG,
  euler_at_final: FLAG,
  original_inference_steps: whole("a whole number, 1 or more", { least: 1 }),
  timestep_scaling: NUMBER,
  shift: NUMBER,
  use_dynamic_shifting: FLAG,
};

/** Fields whose other values would have another error than that they are wrong: diffusers knows more of them. */
const WIDER: ReadonlySet<string> = new Set([
  ...["beta_schedule", "prediction_type", "timestep_spacing", "solver_order", "solver_type"],
]);

const COMMON: Fields = {
  num_train_timesteps: 1000,
  beta_schedule: "linear",
  beta_start: 0.0001,
  beta_end: 0.02,
  prediction_type: "epsilon",
  timestep_spacing: "linspace",
  steps_offset: 0,
  rescale_betas_zero_snr: false,
  clip_sample: false,
  clip_sample_range: 1,
  set_alpha_to_one: false,
  use_karras_sigmas: false,
  final_sigmas_type: "zero",
  solver_order: 2,
  solver_type: "midpoint",
  lower_order_final: true,
  euler_at_final: false,
  original_inference_steps: 50,
  timestep_scaling: 10,
  shift: 1,
  use_dynamic_shifting: false,
};

/** What schedulers take for granted beside that. */
const SCHEDULERS = {
  DDIMScheduler: { timestep_spacing: "leading", clip_sample: true, set_alpha_to_one: true },
  PNDMScheduler: { timestep_spacing: "leading" },
  EulerDiscreteScheduler: {},
  EulerAncestralDiscreteScheduler: {},
  DPMSolverMultistepScheduler: {},
  LCMScheduler: {
    beta_schedule: "scaled_linear",
    beta_start: 0.00085,
    beta_end: 0.012,
    timestep_spacing: "leading",
    set_alpha_to_one: true,
  },
  FlowMatchEulerDiscreteScheduler: {},
} as const satisfies Readonly<Record<string, Partial<Fields>>>;

/** Schedulers by diffusers' names. */
export type SchedulerName = keyof typeof SCHEDULERS;

/** Options of diffusers that are done in one way only. */
const ONE_WAY: Readonly<Record<string, unknown>> = {
  trained_betas: null,
  thresholding: false,
  algorithm_type: "dpmsolver++",
  interpolation_type: "linear",
  timestep_type: "discrete",
  use_exponential_sigmas: false,
  use_beta_sigmas: false,
  use_lu_lambdas: false,
  use_flow_sigmas: false,
  shift_terminal: null,
  invert_sigmas: false,
  stochastic_sampling: false,
  time_shift_type: "exponential",
};

/** What DPM-Solver takes for its own kinds in the configs of UniPC and DEIS, as in diffusers. */
const ALIASES: Readonly<Record<string, string>> = {
  ...{ logrho: "midpoint", bh1: "midpoint", bh2: "midpoint" },
  deis: "dpmsolver++",
};

/** What only some do, and the others pass over. */
const OF_SOME: Readonly<Record<string, readonly SchedulerName[]>> = {
  algorithm_type: ["DPMSolverMultistepScheduler"],
  solver_order: ["DPMSolverMultistepScheduler"],
  solver_type: ["DPMSolverMultistepScheduler"],
  thresholding: ["DDIMScheduler", "DPMSolverMultistepScheduler", "LCMScheduler"],
};

/**
 * Reads a scheduler_config.json.
 *
 * @param given Its parsed content.
 * @throws {UnsupportedError} If its scheduler is not known, or is to do what nothing here does.
 * @throws {FormatError} If a field has a value that it cannot have.
 */
export function readSchedulerConfig(given: Readonly<Record<string, unknown>>): SchedulerConfig {
  const file = "scheduler_config.json";
  const name = given._class_name;
  if (typeof name !== "string" || !Object.hasOwn(SCHEDULERS, name)) {
    throw new UnsupportedError(`scheduler ${JSON.stringify(name) ?? "without name"}`, {
      file,
      place: "_class_name",
      remedy: `Known are ${Object.keys(SCHEDULERS).join(", ")}`,
    });
  }
  const scheduler = name as SchedulerName;
  const concerns = (key: string) => OF_SOME[key]?.includes(scheduler) ?? true;
  const valueOf = (key: string) => {
    const value = given[key];
    return typeof value === "string" && key in OF_SOME ? ALIASES[value] ?? value : value;
  };
  const refuse = (key: string, value: unknown) =>
    new UnsupportedError(`${scheduler} with ${JSON.stringify(value)}`, { file, place: key });
  for (const [key, only] of Object.entries(ONE_WAY)) {
    const value = valueOf(key) ?? only;
    if (value !== only && concerns(key)) throw refuse(key, value);
  }
  if (scheduler === "PNDMScheduler" && given.skip_prk_steps !== true) {
    throw refuse("skip_prk_steps", given.skip_prk_steps ?? false);
  }
  const defaults: Fields = { ...COMMON, ...SCHEDULERS[scheduler] };
  const read = Object.entries(RULES).map(([key, rule]) => {
    const value = concerns(key) ? valueOf(key) ?? defaults[key as keyof Fields] : undefined;
    if (value === undefined) return [key, defaults[key as keyof Fields]];
    if ((rule as ValueRule).accepts(value)) return [key, value];
    if (WIDER.has(key)) throw refuse(key, value);
    throw new FormatError(`must be ${rule.wanted}, not ${JSON.stringify(value)}`, {
      file,
      place: key,
    });
  });
  return { scheduler, ...Object.fromEntries(read) as Fields };
}
