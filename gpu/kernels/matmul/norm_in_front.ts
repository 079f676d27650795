// A norm in front of a product for one row: every workgroup normalises and quantises the row anew and keeps it in
// workgroup memory. For rows that are not too wide that is less than a dispatch of its own costs.

import { wgsl } from "../../wgsl.ts";
import { WORD_OF_CODES } from "../quantize_group.ts";
import { normedQuads, type RmsNormQ8Params } from "../rms_norm_q8.ts";

/** The norm, without the sizes of the product behind it. */
export type NormOfX = Omit<RmsNormQ8Params, "columns" | "workgroup">;

/** Parts of a shader. */
export interface NormInFront {
  /** WGSL types of further bindings. */
  readonly storage: Readonly<Record<string, string>>;
  readonly enables: readonly "subgroups"[];
  /** Module scope; `keep` is q8TileReader's. */
  readonly declarations: string;
  /** Statements in uniform control flow; afterwards the row is in workgroup memory. */
  readonly statements: string;
}

/** The parts of a norm. `put` of quantize_group.ts defines `word_of`; `word` says whether there is none. */
export function normInFront(
  params: RmsNormQ8Params & { readonly word?: boolean },
): NormInFront {
  const norm = normedQuads(params);
  return {
    storage: params.weight ? { gain: "array<vec4<f32>>" } : {},
    enables: norm.enables,
    declarations: wgsl`
      ${params.word ? WORD_OF_CODES : ""}

      ${norm.declarations}
    `,
    statements: wgsl`
      {
        let row = 0u;
        ${norm.statements}
        ${norm.stored((p) => `keep(quad${p}, scale${p}, codes${p}, half${p}, rest${p});`)}
      }
      workgroupBarrier();
    `,
  };
}
