import { assert, assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../../../errors.ts";
import { planSteps } from "./plan_steps.ts";
import { createStepper } from "./stepper.ts";

const NAMES = [
  "DDIMScheduler",
  "PNDMScheduler",
  "EulerDiscreteScheduler",
  "EulerAncestralDiscreteScheduler",
  "DPMSolverMultistepScheduler",
  "LCMScheduler",
] as const;

const config = (name: string, more: object = {}) => ({
  _class_name: name,
  ...name === "PNDMScheduler" && { skip_prk_steps: true },
  clip_sample: false,
  ...more,
});

Deno.test("a network that knows the picture leads every scheduler to it", () => {
  const picture = Float32Array.of(0.5, -1, 0.25), noise = Float32Array.of(1, 2, -0.5);
  for (const name of NAMES) {
    // PLMS makes its first step twice only where it stands twice.
    const strength = name === "PNDMScheduler" ? 1 : 0.75;
    const schedule = planSteps(config(name), { steps: 12, strength });
    const [onPicture, onNoise] = schedule.begin;
    const sample = picture.map((x, i) => onPicture * x + onNoise * noise[i]!);
    const stepper = createStepper(schedule, 3), seen = new Float32Array(3);
    for (const { clean: [onSample, onOutput] } of schedule.rules) {
      // What it has to say for `clean` to be the picture.
      const output = sample.map((x, i) => (picture[i]! - onSample * x) / onOutput);
      stepper.preview(sample, output, { target: seen });
      seen.forEach((x, i) => assertAlmostEquals(x, picture[i]!, 1e-4, `${name}, preview`));
      stepper.advance(sample, output, { noise: new Float32Array(3) });
    }
    assertEquals(stepper.step, schedule.timesteps.length);
    // DDIM and PLMS end at the first level of noise, not below it.
    sample.forEach((x, i) => assertAlmostEquals(x, picture[i]!, 0.03, name));
    assertThrows(() => stepper.advance(sample, sample), RangeError, "steps are made");
  }
});

Deno.test("clipping holds the picture in its range, and only that", () => {
  const [plain, clipped] = [false, true].map((clip_sample) => {
    const schedule = planSteps(config("DDIMScheduler", { clip_sample }), { steps: 2 });
    const sample = Float32Array.of(0.001, 5);
    createStepper(schedule, 2).advance(sample, Float32Array.of(0, 0));
    return sample;
  });
  assertAlmostEquals(plain![0]!, clipped![0]!, 1e-7);
  assert(plain![1]! > 5 && clipped![1]! < 1.01, `${plain} ${clipped}`);
});

Deno.test("steps that fall between two timesteps are those of numpy's arange", () => {
  const trailing = config("EulerDiscreteScheduler", {
    ...{ num_train_timesteps: 777, timestep_spacing: "trailing" },
  });
  // np.arange(777, 0, -777 / 50).round() - 1; 777 - 25 * 15.54 is below 388.5 in float64.
  const { timesteps } = planSteps(trailing, { steps: 50 });
  assertEquals([...timesteps.slice(24, 27)], [403, 388, 372]);
});

Deno.test("a first step with no picture at all may draw all of its noise anew", () => {
  const { rules } = planSteps(
    config("DDIMScheduler", {
      ...{ num_train_timesteps: 777, prediction_type: "v_prediction" },
      ...{ rescale_betas_zero_snr: true, timestep_spacing: "trailing", set_alpha_to_one: true },
      ...{ beta_schedule: "scaled_linear", beta_start: 0.00085, beta_end: 0.012 },
    }),
    { steps: 15, eta: 1 },
  );
  for (const { samples, outputs, noise } of rules) {
    assert(
      [...samples, ...outputs, noise].every(Number.isFinite),
      `${samples} ${outputs} ${noise}`,
    );
  }
});

Deno.test("DPM-Solver takes configs that UniPC and DEIS left, as in diffusers", () => {
  const name = "DPMSolverMultistepScheduler", own = planSteps(config(name), { steps: 9 });
  for (const left of [{ solver_type: "bh2" }, { solver_type: "logrho", algorithm_type: "deis" }]) {
    assertEquals(planSteps(config(name, left), { steps: 9 }), own);
  }
});

Deno.test("unknown schedulers, and what is not done of known ones, are refused by name", () => {
  const cases = [
    [
      { _class_name: "UniPCMultistepScheduler" },
      'scheduler "UniPCMultistepScheduler". Known are DDIM',
    ],
    [{}, "scheduler without name"],
    [{ _class_name: "PNDMScheduler" }, "skip_prk_steps: PNDMScheduler with false"],
    [
      config("DPMSolverMultistepScheduler", { algorithm_type: "sde-dpmsolver++" }),
      "algorithm_type",
    ],
    [config("DPMSolverMultistepScheduler", { solver_order: 3 }), "solver_order: DPMSolver"],
    [config("DDIMScheduler", { thresholding: true }), "thresholding: DDIMScheduler with true"],
    [
      config("DDIMScheduler", { beta_schedule: "sigmoid" }),
      'beta_schedule: DDIMScheduler with "sig',
    ],
    [config("DDIMScheduler", { rescale_betas_zero_snr: true }), "prediction_type: noise cannot"],
  ] as const;
  for (const [given, words] of cases) {
    assertThrows(() => planSteps(given, { steps: 4 }), UnsupportedError, words);
  }
  const wrong = config("DDIMScheduler", { beta_start: "low" });
  assertThrows(() => planSteps(wrong, { steps: 4 }), FormatError, "beta_start: must be a number");
  // Fields of other schedulers are handed on with a config, and are no concern of this one.
  planSteps(config("EulerDiscreteScheduler", { solver_order: 3, algorithm_type: "x" }), {
    steps: 4,
  });
});

Deno.test("wrong counts of steps, strengths, lengths and missing noise are refused", () => {
  const plan = (options: object, name = "DDIMScheduler") => () =>
    planSteps(config(name), { steps: 4, ...options });
  for (const steps of [0, 1.5, 1001, NaN]) {
    assertThrows(plan({ steps }), RangeError, "steps must be a whole number from 1 to 1000");
  }
  for (const strength of [0, 0.2, 1.1, NaN]) {
    assertThrows(plan({ strength }), RangeError, "strength must be");
  }
  assertThrows(plan({ eta: 2 }), RangeError, "eta must be from 0 to 1");
  assertThrows(plan({ steps: 60 }, "LCMScheduler"), RangeError, "at most 50, which LCM learnt");
  const flow = { _class_name: "FlowMatchEulerDiscreteScheduler", use_dynamic_shifting: true };
  assertThrows(() => planSteps(flow, { steps: 4 }), TypeError, "mu must be given");
  const stepper = createStepper(plan({}, "EulerAncestralDiscreteScheduler")(), 2);
  const two = new Float32Array(2), one = new Float32Array(1);
  assertThrows(() => stepper.advance(two, two), TypeError, "Step 0 wants fresh noise");
  assertThrows(() => stepper.advance(two, one), RangeError, "output has 1 values, not 2");
});

Deno.test("a cosine of betas rises to its limit, and one step is enough", () => {
  for (const name of [...NAMES, "FlowMatchEulerDiscreteScheduler"]) {
    for (const timestep_spacing of ["leading", "linspace", "trailing"]) {
      const more = { beta_schedule: "squaredcos_cap_v2", timestep_spacing };
      const { rules, timesteps } = planSteps(config(name, more), { steps: 1 });
      assertEquals(rules.length, timesteps.length, name);
      for (const { samples, outputs } of rules) {
        assert([...samples, ...outputs].every(Number.isFinite), `${name}, ${timestep_spacing}`);
      }
    }
  }
});
