// No key of a config.json is read past: each is set to an unusual value, and then the graph is another, or the key is
// refused or told by name, or names.json or the spec lists it as harmless and says why. The same for keys that specs
// read and a config leaves out, and for one that nobody knows.

import { assertEquals } from "@std/assert";
import { fixturePath, readFixture } from "../../tests/support/fixtures.ts";
import { checkpointPath, isSeeded } from "../../tests/support/seeded_weights.ts";
import { TroodonError } from "../errors.ts";
import { openModel } from "./open_model.ts";
import type { MetadataValue, WeightFile } from "../formats/source.ts";
import { formatDim } from "../graph/dim/mod.ts";
import type { Value } from "../graph/graph.ts";
import { buildModel, type BuildOptions, readModelParts } from "./build.ts";
import { buildEncoder } from "./encoder_build.ts";
import { buildEncoderDecoder } from "./encoder_decoder_build.ts";
import { chooseSpec } from "./specs/mod.ts";
import { harmlessReason, unknownKeys } from "./unknown_keys.ts";

type Json = Record<string, MetadataValue>;

const OPTIONS: BuildOptions = { capacity: 8, cacheType: "f32", embeddings: false, spans: true };
const BUILDERS = {
  decoder: buildModel,
  encoder: buildEncoder,
  "encoder-decoder": buildEncoderDecoder,
} as const;

function textOf(value: Value | undefined): unknown {
  if (value === undefined) return null;
  const { role, name, dtype, shape, tensor, data } = value;
  const numbers = data && [...new Uint8Array(data.buffer, data.byteOffset, data.byteLength)].join();
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

/** Everything that a file's answers depend on. */
async function modelOf(file: WeightFile): Promise<string> {
  const { resolved, architecture } = chooseSpec(file);
  const parts = readModelParts(resolved, file, architecture);
  const { spec } = parts.resolved;
  const { graph, params } = await BUILDERS[spec.network ?? "decoder"](parts, OPTIONS);
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

type Outcome = "changed" | "refused" | "told" | "harmless" | "read past";

async function outcomeOf(file: WeightFile, key: string, base: string): Promise<Outcome> {
  const { resolved, architecture } = chooseSpec(file);
  for (const value of unusual(file.metadata.get(key))) {
    const changed = { ...file, metadata: new Map([...file.metadata, [key, value]]) };
    try {
      if (await modelOf(changed) !== base) return "changed";
    } catch (error) {
      if (!(error instanceof TroodonError)) throw error;
      return "refused";
    }
    if (unknownKeys(changed, resolved, architecture).includes(key)) return "told";
    if (harmlessReason(resolved, key)) return "harmless";
  }
  // Records and lists have tests of their own.
  return typeof (file.metadata.get(key) ?? 0) === "object" ? "harmless" : "read past";
}

/** Keys of the file, of the spec, and a strange one; of several spellings of a number only the one that counts. */
function keysOf(
  { metadata }: WeightFile,
  { names }: ReturnType<typeof chooseSpec>["resolved"],
): string[] {
  const spellings = Object.values(names.hyperparameters).flatMap((keys) => {
    const counts = keys.find((key) => metadata.has(key)) ?? keys[0];
    return counts === undefined || counts.includes(".") ? [] : [counts];
  });
  const expected = Object.keys(names.expected).filter((key) => !key.includes("."));
  return [...new Set([...metadata.keys(), ...spellings, ...expected, "brand_new"])];
}

const FOLDERS = [...Deno.readDirSync(fixturePath("models"))].map(({ name }) => name).sort()
  .filter((name) => {
    try {
      readFixture(`models/${name}/config.json`);
      return name !== "llama_formats"; // containers of other kinds
    } catch {
      return false;
    }
  });

for (const name of FOLDERS) {
  Deno.test(`${name}: no key of config.json is read past`, async () => {
    const path = isSeeded(fixturePath(`models/${name}`))
      ? checkpointPath(name)
      : fixturePath(`models/${name}`);
    const file = await openModel(path);
    try {
      const base = await modelOf(file);
      const past: string[] = [];
      for (const key of keysOf(file, chooseSpec(file).resolved)) {
        const outcome = await outcomeOf(file, key, base);
        if (outcome === "read past") past.push(key);
        if (key === "brand_new") assertEquals(outcome, "told");
      }
      assertEquals(past, []);
    } finally {
      file.close();
    }
  });
}
