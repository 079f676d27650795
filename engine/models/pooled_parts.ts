// A model with fewer heads of keys and values than its file has (`LoadOptions.kvHeads`): the blocks see a smaller model, and
// the tensors of these roles are pooled for it. Everything else of the spec holds as it is.

import { UnsupportedError } from "../errors.ts";
import type { ModelParts } from "./build.ts";
import type { TensorLookup } from "./tensors.ts";
import { poolHeads } from "./derived_tensors/pooled_heads.ts";

const ROLE = /^(?:encoder_|cross_)?(key|value)(_bias)?$/;

/**
 * The parts of a model with fewer heads of keys and values; the same parts where it has as many.
 *
 * @throws {RangeError} If the number does not divide that of the file.
 * @throws {UnsupportedError} If the model's keys and values are not in heads.
 */
export function poolParts(parts: ModelParts, kvHeads: number | undefined): ModelParts {
  const { params, resolved: { spec }, file } = parts;
  if (kvHeads === undefined || kvHeads === params.kvHeads) return parts;
  const { kind, headNorm } = spec.attention;
  if (
    kind === "latent" || headNorm === "full" || headNorm === "per_head" ||
    (params.encoderHeads ?? params.heads) !== params.heads
  ) {
    throw new UnsupportedError("its heads of keys and values cannot be pooled", {
      file: file.name,
    });
  }
  if (params.kvHeads % kvHeads !== 0) {
    throw new RangeError(
      `Cannot use kvHeads ${kvHeads}: it must divide the ${params.kvHeads} heads of the model`,
    );
  }
  return { ...parts, params: { ...params, kvHeads }, tensors: pooled(parts, kvHeads) };
}

function pooled({ tensors, params }: ModelParts, kvHeads: number): TensorLookup {
  const { kvHeads: heads, headDim, valueDim } = params;
  function find(role: string, [rows, ...rest]: readonly number[], layer?: number) {
    const [, part] = ROLE.exec(role) ?? [];
    if (part === undefined) return tensors.find(role, [rows!, ...rest], layer);
    const width = part === "key" ? headDim : valueDim;
    const stored = tensors.find(role, [heads * width, ...rest], layer);
    return stored && poolHeads(stored, { heads, kvHeads, headDim: width });
  }
  return {
    ...tensors,
    find,
    // What is missing is told by the lookup itself.
    get: (role, shape, layer) => find(role, shape, layer) ?? tensors.get(role, shape, layer),
  };
}
