// matmul_q8 of one row with the norm before it in its prologue; see norm_in_front.ts and gemv_q8.ts.

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { type GemvQ8Params, gemvQ8Parts } from "./gemv_q8.ts";
import { rowsShader } from "./rows.ts";
import { normInFront, type NormOfX } from "./norm_in_front.ts";
import { teamLoop } from "./team_sum.ts";

/** What a shader is made for; `rows` is 1. */
export interface NormMatmulQ8Params extends GemvQ8Params {
  readonly norm: NormOfX;
}

/** The shader; bindings x, the planes of the weight, y, bias, gain. */
export function normMatmulQ8(params: NormMatmulQ8Params): Shader {
  const { columns, workgroup } = params;
  const product = gemvQ8Parts(params, "tile");
  const norm = normInFront({ ...params.norm, columns, workgroup, word: true });
  return rowsShader(params, {
    name: `norm_matmul_${params.layout}`,
    storage: { x: "array<vec4<f32>>", ...product.storage },
    storageBehind: norm.storage,
    enables: norm.enables,
    declarations: wgsl`
      ${product.declarations}

      ${norm.declarations}
    `,
    start: norm.statements,
    loop: teamLoop(product.step, { ...params, count: product.steps }),
  });
}
