// Float rows to 8-bit rows: alone, or as the end of a gated activation, so that its results are never stored
// as floats. See quantize_group.ts for how, rms_norm_q8.ts for norms.

import type { Shader } from "../kernel.ts";
import { mainOf, wgsl } from "../wgsl.ts";
import { groupQuantizer } from "./quantize_group.ts";

const QUADS = 64;

/** Quads that one workgroup quantises. */
export const QUANTIZE_QUADS: number = QUADS;

/** What a shader is made for. */
export interface QuantizeParams {
  /** Columns of a row of the result. */
  readonly columns: number;
  /** Exchange by shuffles: subgroups have at least 8 lanes. */
  readonly subgroups: boolean;
}

/** Bindings x, y; uniform: quads of all rows. */
export function quantizeQ8(params: QuantizeParams): Shader {
  return flatShader("quantize_q8", params, {
    storage: { x: "array<vec4<f32>>" },
    value: "x[quad]",
    functions: "",
  });
}

/**
 * activation(gate) · up; bindings gate, up, y; uniform: quads of all rows.
 *
 * @param activation WGSL of a function `activation(x: vec4<f32>) -> vec4<f32>`.
 */
export function gluQ8(params: QuantizeParams, activation: string): Shader {
  return flatShader("glu_q8", params, {
    storage: { gate: "array<vec4<f32>>", up: "array<vec4<f32>>" },
    value: "activation(gate[quad]) * up[quad]",
    functions: activation,
  });
}

/** The same for rows whose first half is the gate; bindings x, y; uniform: quads of all results. */
export function gluHalvesQ8(params: QuantizeParams, activation: string): Shader {
  const quads = params.columns / 4;
  const gate = `quad + quad / ${quads}u * ${quads}u`;
  return flatShader("glu_halves_q8", params, {
    storage: { x: "array<vec4<f32>>" },
    value: `activation(x[${gate}]) * x[${gate} + ${quads}u]`,
    functions: activation,
  });
}

function flatShader(
  name: string,
  { columns, subgroups }: QuantizeParams,
  { storage, value, functions }: {
    readonly storage: Readonly<Record<string, string>>;
    readonly value: string;
    readonly functions: string;
  },
): Shader {
  const quantizer = groupQuantizer({ columns, workgroup: QUADS, passes: 1, subgroups });
  return {
    name,
    storage: { ...storage, y: "array<u32>" },
    writes: ["y"],
    uniforms: { quads: "u32" },
    enables: quantizer.enables,
    code: wgsl`
      ${functions}

      ${quantizer.declarations}

      ${quantizer.put}

      @compute @workgroup_size(${QUADS})
      ${mainOf({ group: "id", groups: "count", lane: "thread" })}
        let index = flat_workgroup(id, count) * ${QUADS}u + thread;
        let quad = min(index, params.quads - 1u);
        let value0 = ${value};
        ${quantizer.quantize}
        if (index < params.quads) {
          put(index / ${columns / 4}u, index % ${columns / 4}u, scale0, codes0, half0, rest0);
        }
      }
    `,
  };
}
