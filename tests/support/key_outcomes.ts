// What becomes of a key when it has an unusual value: the graph is another, or the key is refused or told by name, or
// names.json or the spec lists it as harmless and says why. What is none of these is read past.

import { TroodonError } from "../../engine/errors.ts";
import type { MetadataValue, WeightFile } from "../../engine/formats/source.ts";
import { formatDim } from "../../engine/graph/dim/mod.ts";
import type { Value } from "../../engine/graph/graph.ts";
import {
  buildModel,
  type BuildOptions,
  type BuiltModel,
  type ModelParts,
  readModelParts,
} from "../../engine/models/build.ts";
import { buildEncoder } from "../../engine/models/encoder_build.ts";
import { buildEncoderDecoder } from "../../engine/models/encoder_decoder_build.ts";
import { buildPicture } from "../../engine/models/picture_build.ts";
import { chooseSpec } from "../../engine/models/specs/mod.ts";
import { patternOf } from "../../engine/formats/field_table.ts";
import type { ResolvedSpec } from "../../engine/models/spec.ts";
import { unknownKeys } from "../../engine/models/unknown_keys.ts";

const OPTIONS: BuildOptions = { capacity: 8, cacheType: "f32", embeddings: false, spans: true };
const BUILDERS = {
  decoder: buildModel,
  encoder: buildEncoder,
  "encoder-decoder": buildEncoderDecoder,
  picture: buildPicture,
} as const;

function textOf(value: Value | undefined): unknown {
  if (value === undefined) return null;
  const { role, name, dtype, shape, tensor, data } = value;
  const numbers = data &&
    new TextDecoder("latin1").decode(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return [
    role,
    name,
    dtype,
    shape.map(formatDim),
    tensor?.name,
    tensor?.shape,
    tensor?.format,
    numbers,
  ];
}

/** The graph of a model, whatever its network. */
export function buildParts(parts: ModelParts): Promise<BuiltModel> {
  return BUILDERS[parts.resolved.spec.network ?? "decoder"](parts, OPTIONS);
}

/** Everything that a file's answers depend on. */
export async function modelOf(file: WeightFile): Promise<string> {
  const { resolved, architecture } = chooseSpec(file);
  const parts = readModelParts(resolved, { stored: file, architecture });
  const { graph, params } = await buildParts(parts);
  const nodes = graph.nodes.map((
    { op, inputs, attributes },
  ) => [op, inputs.map(textOf), attributes]);
  const values = [graph.inputs, graph.states, graph.outputs].map((all) => all.map(textOf));
  return JSON.stringify([nodes, values, params.context, params.targetStart, architecture]);
}

/** Values that a key with this one may have as well. */
function unusual(value: MetadataValue | undefined): MetadataValue[] {
  if (typeof value === "number") {
    return Number.isInteger(value) ? [value + 1, 2 * value + 2] : [value * 1.5];
  }
  if (typeof value === "boolean") return [!value];
  if (typeof value === "string") return ["unusual"];
  return value === undefined || value === null ? [3, true, "unusual"] : [];
}

/** What becomes of a key. */
export type Outcome = "changed" | "refused" | "told" | "harmless" | "read past";

/** What becomes of a key of a file whose model is `base`. */
export async function outcomeOf(
  file: WeightFile,
  key: string,
  base: string,
): Promise<Outcome> {
  const { resolved, architecture } = chooseSpec(file);
  for (const value of unusual(file.metadata.get(key))) {
    const changed = { ...file, metadata: new Map([...file.metadata, [key, value]]) };
    try {
      if (await modelOf(changed) !== base) return "changed";
    } catch (error) {
      if (!(error instanceof TroodonError)) throw error;
      return "refused";
    }
    if (unknownKeys(changed, { spec: resolved, architecture }).includes(key)) return "told";
    if (isHarmless(resolved, { key, architecture })) return "harmless";
  }
  // Records and lists have tests of their own.
  return typeof (file.metadata.get(key) ?? 0) === "object" ? "harmless" : "read past";
}

/** Whether the names list a key as one that changes no result, with a reason. */
function isHarmless(
  { names }: ResolvedSpec,
  { key, architecture }: { readonly key: string; readonly architecture: string },
): boolean {
  return names.harmless.some(([pattern, because]) =>
    because !== "" && patternOf(pattern.replace("{arch}", architecture)).test(key)
  );
}
