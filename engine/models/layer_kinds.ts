// Which kind of attention each layer has. A file's own list of layer types wins; otherwise the spec's
// pattern rule decides (every sixth layer sees all, layers from the 28th on have a window, …).

import { FormatError, UnsupportedError } from "../errors.ts";
import { needed } from "./blocks/context.ts";
import type { FieldName } from "./hparam_fields.ts";
import type { Hyperparameters } from "./hparams.ts";
import type { ModelSpec } from "./spec.ts";

/**
 * Name of the attention kind of every layer, a key of `spec.attention.kinds`.
 *
 * @throws {FormatError} If the file's list has another length than the model has layers.
 * @throws {UnsupportedError} If it names a type that the spec does not know.
 */
export function layerKinds(
  { attention }: ModelSpec,
  { params, file }: { readonly params: Hyperparameters; readonly file: string },
): string[] {
  const { pattern, types = {} } = attention;
  const listed = params.layerTypes;
  if (listed) {
    if (listed.length !== params.layers) {
      throw new FormatError(`lists ${listed.length} layers where the model has ${params.layers}`, {
        file,
        place: "layer types",
      });
    }
    return listed.map((type, layer) => {
      if (Object.hasOwn(types, type)) return types[type]!;
      throw new UnsupportedError(
        `"${type}" is not built: known are ${Object.keys(types).join(", ")}`,
        { file, place: `type of layer ${layer}` },
      );
    });
  }
  const valueOf = (name: string): unknown =>
    needed({ params, file }, [name as FieldName])[name as FieldName];
  const isKind = RULES[pattern.rule](pattern, valueOf);
  return Array.from(
    { length: params.layers },
    (_, layer) => isKind(layer) ? pattern.kind : pattern.others ?? pattern.kind,
  );
}

type Pattern = ModelSpec["attention"]["pattern"];

/** Whether a layer is of the pattern's `kind`; the keys that a rule needs are there (spec_reads.ts). */
const RULES: Readonly<
  Record<
    Pattern["rule"],
    (pattern: Pattern, valueOf: (name: string) => unknown) => (layer: number) => boolean
  >
> = {
  uniform: () => () => true,
  every: ({ period }, valueOf) => {
    const every = valueOf(period!) as number;
    return (layer) => (layer + 1) % every === 0;
  },
  from: ({ when, start }, valueOf) => {
    if (when !== undefined && valueOf(when) !== true) return () => false;
    const first = valueOf(start!) as number;
    return (layer) => layer >= first;
  },
  listed: ({ layers }, valueOf) => {
    const list = valueOf(layers!) as readonly number[];
    return (layer) => list.includes(layer);
  },
};
