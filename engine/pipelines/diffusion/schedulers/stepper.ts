// Carries a schedule out on arrays, in place: no step allocates. What earlier steps left is kept only where a rule asks.

import type { Schedule, StepRule } from "./schedule.ts";

/**
 * A run over the steps of a schedule.
 * @category Pictures from texts
 */
export interface Stepper {
  /** The step that is next. */
  readonly step: number;
  /**
   * Writes what the network gets.
   *
   * @param target As long as the sample; may be the sample's own array only where input is not scaled.
   */
  input(sample: Float32Array, target: Float32Array): void;
  /** Writes the picture without noise that the network has in mind, for previews. */
  preview(sample: Float32Array, output: Float32Array, options: { target: Float32Array }): void;
  /**
   * Makes the step: the sample becomes the next one.
   *
   * @throws {TypeError} If the step wants fresh noise and gets none.
   * @throws {RangeError} If all steps are made, or lengths differ.
   */
  advance(
    sample: Float32Array,
    output: Float32Array,
    options?: { readonly noise?: Float32Array | undefined },
  ): void;
}

/**
 * Starts a run.
 *
 * @example
 * ```ts
 * import { createStepper, planSteps } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const stepper = createStepper(planSteps({ _class_name: "DDIMScheduler" }, { steps: 4 }), 3);
 * const sample = new Float32Array([1, 0, -1]), input = new Float32Array(3);
 * while (stepper.step < 4) {
 *   stepper.input(sample, input);
 *   const output = input.map((x) => x / 2); // what a network says
 *   stepper.advance(sample, output);
 * }
 * assertEquals(sample.length, 3);
 * ```
 * @category Pictures from texts
 */
export function createStepper({ rules, inputScales }: Schedule, length: number): Stepper {
  const reach = Math.max(...rules.map(({ outputs }) => outputs.length)) - 1;
  // The latest first.
  const outputs = Array.from({ length: reach }, () => new Float32Array(length));
  const keepsSample = rules.some(({ samples }) => samples[1] !== 0);
  const before = new Float32Array(keepsSample ? length : 0);
  let step = 0;
  const ruleNow = (): StepRule => {
    const rule = rules[step];
    if (!rule) throw new RangeError(`All ${rules.length} steps are made`);
    return rule;
  };
  const check = (name: string, values: Float32Array) => {
    if (values.length === length) return;
    throw new RangeError(`${name} has ${values.length} values, not ${length}`);
  };
  return {
    get step() {
      return step;
    },
    input(sample, target) {
      const scale = inputScales[step] ?? 1;
      for (let i = 0; i < length; i++) target[i] = sample[i]! * scale;
    },
    preview(sample, output, { target }) {
      const [onSample, onOutput] = ruleNow().clean;
      for (let i = 0; i < length; i++) target[i] = onSample * sample[i]! + onOutput * output[i]!;
    },
    advance(sample, output, { noise } = {}) {
      const rule = ruleNow();
      check("sample", sample);
      check("output", output);
      if (rule.noise !== 0) {
        if (!noise) throw new TypeError(`Step ${step} wants fresh noise`);
        check("noise", noise);
      }
      for (let i = 0; i < length; i++) {
        const now = sample[i]!, said = output[i]!;
        let next = rule.samples[0] * now + rule.outputs[0]! * said;
        if (rule.samples[1] !== 0) next += rule.samples[1] * before[i]!;
        for (let k = 1; k < rule.outputs.length; k++) {
          next += rule.outputs[k]! * outputs[k - 1]![i]!;
        }
        if (rule.noise !== 0) next += rule.noise * noise![i]!;
        if (rule.clipped) {
          const { weight, range } = rule.clipped;
          const clean = rule.clean[0] * now + rule.clean[1] * said;
          next += weight * Math.min(range, Math.max(-range, clean));
        }
        if (keepsSample) before[i] = now;
        sample[i] = next;
      }
      if (reach > 0) {
        const oldest = outputs.pop()!;
        oldest.set(output);
        outputs.unshift(oldest);
      }
      step++;
    },
  };
}
