// How a picture is got out of noise, as plain data. All schedulers that are known here are sums: the next sample is so much
// of this one and of the one before, so much of what the network said now and earlier, and so much fresh noise. So a
// scheduler is a function from a config to numbers, a row a step, and one loop carries all of them out (stepper.ts).

/**
 * So much of the sample, so much of the network's output.
 * @category Pictures from texts
 */
export type Mix = StepRule["clean"];

/**
 * How one step is made.
 * @category Pictures from texts
 */
export interface StepRule {
  /** What of this step's sample, and of the one before. */
  readonly samples: readonly [now: number, before: number];
  /** What of the network's outputs: of this step, of the one before, and so on. */
  readonly outputs: readonly number[];
  /** What of fresh noise; 0: none is drawn. */
  readonly noise: number;
  /** The picture without noise that the network has in mind. */
  readonly clean: readonly [sample: number, output: number];
  /** So much of that picture is added too, held within the range. */
  readonly clipped?: { readonly weight: number; readonly range: number } | undefined;
}

/**
 * All steps of a picture.
 * @category Pictures from texts
 */
export interface Schedule {
  /** What the network is told, a step each. */
  readonly timesteps: Float32Array;
  /** Strength of noise before each step and behind the last; absent where the scheduler counts in timesteps alone. */
  readonly sigmas?: Float32Array | undefined;
  /** Noise of deviation 1 is multiplied by this to be the first sample. */
  readonly initNoiseSigma: number;
  /** A sample is multiplied by this before the network gets it, a step each. */
  readonly inputScales: readonly number[];
  /** How each step is made. */
  readonly rules: readonly StepRule[];
  /** Where a picture is changed rather than made: the first sample is so much of it and so much of noise. */
  readonly begin: readonly [picture: number, noise: number];
}

/**
 * What steps are wanted.
 * @category Pictures from texts
 */
export interface ScheduleOptions {
  /** How many for a picture out of noise alone. */
  readonly steps: number;
  /** How much of a given picture is made anew, above 0 to 1: the first steps are left out. Default 1. */
  readonly strength?: number | undefined;
  /** DDIM: how much noise is drawn anew in each step, 0 (default) to 1. */
  readonly eta?: number | undefined;
  /** Flow matching with dynamic shifting: the shift for this size of picture. */
  readonly mu?: number | undefined;
}

/** The first step that is made. */
export function firstStep({ steps, strength = 1 }: ScheduleOptions): number {
  return steps - Math.min(steps, Math.trunc(steps * strength));
}

/**
 * The picture without noise in what a network says, where a sample is `alpha` parts picture and `sigma` parts noise.
 * `epsilon`: it says the noise; `sample`: the picture; `v_prediction`: alpha · noise - sigma · picture
 * (arXiv 2202.00512, appendix D).
 */
export function cleanOf(prediction: string, alpha: number, { sigma }: { sigma: number }): Mix {
  if (prediction === "sample") return [0, 1];
  return prediction === "epsilon" ? [1 / alpha, -sigma / alpha] : [alpha, -sigma];
}

/** The noise in what a network says. */
export function noiseOf(prediction: string, alpha: number, { sigma }: { sigma: number }): Mix {
  if (prediction === "epsilon") return [0, 1];
  return prediction === "sample" ? [1 / sigma, -alpha / sigma] : [sigma, alpha];
}
