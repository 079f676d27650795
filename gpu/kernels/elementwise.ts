// One function on every element of one or more tensors of one shape. Four elements a thread; the lanes behind
// the last element compute something that nobody reads, since memory is padded to whole vectors.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";

/** Elements of a workgroup. */
export const ELEMENTWISE_BLOCK = 256;

/** What is computed. */
export interface ElementwiseRule {
  readonly name: string;
  /** Names of the inputs; in the expression they are the vec4<f32> at hand. */
  readonly inputs: readonly string[];
  /** A vec4<f32> of the inputs. */
  readonly expression: string;
  /** f32 uniforms that the expression reads as `params.name`. */
  readonly constants?: readonly string[];
  /** Functions that it calls. */
  readonly functions?: string;
}

/** Uniforms: `vectors`, the elements divided by 4 and rounded up, and the rule's constants. */
export function elementwiseShader(
  { name, inputs, expression, constants = [], functions = "" }: ElementwiseRule,
): Shader {
  return {
    name,
    storage: Object.fromEntries([
      ...inputs.map((input) => [`${input}_in`, "array<vec4<f32>>"]),
      ["y", "array<vec4<f32>>"],
    ]),
    writes: ["y"],
    uniforms: {
      vectors: "u32",
      ...Object.fromEntries(constants.map((constant) => [constant, "f32" as const])),
    },
    code: wgsl`
      ${functions}
      @compute @workgroup_size(64)
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * 64u + lane;
        if (i < params.vectors) {
          ${inputs.map((input) => `let ${input} = ${input}_in[i];`)}
          y[i] = ${expression};
        }
      }
    `,
  };
}
