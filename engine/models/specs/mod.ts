// Chooses the spec of a file among those of this folder. table.gen.json holds them all: `deno task
// build` writes it from the folder, so that a new architecture is a JSON file and no line of code.
// Nothing else in the engine knows a name.

import { UnsupportedError } from "../../errors.ts";
import type { WeightFile } from "../../formats/source.ts";
import { describeNearest, type Nearest, nearestSpec } from "../nearest_spec.ts";
import { specName } from "../spec_file.ts";
import { type Convention, type ResolvedSpec, resolveSpec } from "../spec.ts";
import names from "./names.json" with { type: "json" };
import table from "./table.gen.json" with { type: "json" };

/** What choosing needs of a spec file; the rest is checked when it is chosen. */
export interface SpecFile {
  readonly name: string;
  readonly matches: Readonly<Record<Convention, readonly string[]>>;
}

const specs: readonly SpecFile[] = table;

/** Where each convention writes the architecture, and in which containers it is used. */
const CONVENTIONS: Readonly<Record<string, { convention: Convention; key: string }>> = {
  gguf: { convention: "gguf", key: "general.architecture" },
  llama2c: { convention: "gguf", key: "general.architecture" },
  safetensors: { convention: "huggingface", key: "model_type" },
  pickle: { convention: "huggingface", key: "model_type" },
};

/** The spec files themselves, for tests and tools. */
export const specFiles: readonly SpecFile[] = specs;

/** A spec chosen for a file, and the file's own name of its architecture. */
export interface ChosenSpec {
  readonly resolved: ResolvedSpec;
  readonly architecture: string;
}

/**
 * The spec for a model file.
 *
 * @param given Content of a spec file to use instead of the shipped ones.
 * @throws {UnsupportedError} If the architecture is unknown or the file names none.
 * @throws {FormatError} If the given spec is wrong; the message names the key.
 */
export function chooseSpec(file: WeightFile, given?: unknown): ChosenSpec {
  const entry = CONVENTIONS[file.kind];
  if (file.kind === "onnx") {
    throw new UnsupportedError(
      "is an ONNX graph, which describes itself: no spec is for it, and no placement cuts it",
      {
        file: file.name,
        remedy: "Load it without spec and placement; plan it by troodon plan alone",
      },
    );
  }
  if (!entry) {
    throw new UnsupportedError(
      `holds weights but says nothing of the model: known containers are ${
        Object.keys(CONVENTIONS).join(", ")
      }`,
      { file: file.name },
    );
  }
  const { convention, key } = entry;
  const stated = architectureOf(file, key);
  if (given !== undefined) {
    const resolved = resolveSpec(given, {
      common: names,
      context: { convention, file: specName(given) },
    });
    return { resolved, architecture: stated ?? resolved.spec.name };
  }
  if (stated === undefined) {
    const isAlone = file.metadata.size === 0 && convention === "huggingface";
    throw new UnsupportedError("the file does not say which architecture it is", {
      file: file.name,
      place: key,
      remedy: isAlone ? "Put config.json beside the weights" : nearestTo(file),
    });
  }
  const spec = specs.find(({ matches }) => matches[convention].includes(stated)) ??
    specs.find(({ matches }) => matches[convention].some((name) => plain(name) === plain(stated)));
  if (spec) return { resolved: resolve(spec, convention), architecture: stated };
  const known = specs.flatMap(({ matches }) => matches[convention]);
  throw new UnsupportedError(
    `architecture "${stated}" is not built: known are ${known.join(", ")}`,
    { file: file.name, place: key, remedy: nearestTo(file) },
  );
}

/** The shipped family that a file resembles; undefined where there is none. */
export function nearestFamily(file: WeightFile): Nearest | undefined {
  const { convention, key } = CONVENTIONS[file.kind]!;
  const candidates = specs.filter(({ matches }) => matches[convention].length > 0)
    .map((candidate) => resolve(candidate, convention));
  return nearestSpec(file, { candidates, architecture: architectureOf(file, key) ?? "" });
}

function nearestTo(file: WeightFile): string | undefined {
  const nearest = nearestFamily(file);
  return nearest && describeNearest(nearest);
}

function resolve(spec: SpecFile, convention: Convention): ResolvedSpec {
  return resolveSpec(spec, { common: names, context: { convention, file: `${spec.name}.json` } });
}

/** What a file calls its architecture: its type, or else the class in `architectures`. */
function architectureOf({ metadata }: WeightFile, key: string): string | undefined {
  const stated = metadata.get(key);
  if (typeof stated === "string") return stated;
  const classes = metadata.get("architectures");
  const first = Array.isArray(classes) ? classes[0] : undefined;
  return typeof first === "string" ? first.replace(CLASS_ENDINGS, "") : undefined;
}

const CLASS_ENDINGS = /(For\w+|LMHeadModel|Model)$/;

/** A name without what its spellings differ in: GPTNeoX is gpt_neox. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll("_", "");
}
