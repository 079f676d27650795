// The list of architectures: one JSON file and one line each. Nothing else in the engine knows a name.

import { UnsupportedError } from "../../errors.ts";
import type { WeightFile } from "../../formats/source.ts";
import { type Convention, type ResolvedSpec, resolveSpec } from "../spec.ts";
import gemma3 from "./gemma3.json" with { type: "json" };
import llama from "./llama.json" with { type: "json" };
import names from "./names.json" with { type: "json" };
import qwen2 from "./qwen2.json" with { type: "json" };
import qwen3 from "./qwen3.json" with { type: "json" };

const SPECS: readonly SpecFile[] = [llama, qwen2, qwen3, gemma3];

interface SpecFile {
  readonly name: string;
  readonly matches: Readonly<Record<Convention, readonly string[]>>;
}

/** Where each convention writes the architecture, and in which containers it is used. */
const CONVENTIONS: Readonly<Record<string, { convention: Convention; key: string }>> = {
  gguf: { convention: "gguf", key: "general.architecture" },
  llama2c: { convention: "gguf", key: "general.architecture" },
  safetensors: { convention: "huggingface", key: "model_type" },
  pickle: { convention: "huggingface", key: "model_type" },
};

/** Architectures that can be loaded. */
export function architectureNames(): string[] {
  return SPECS.map((spec) => spec.name);
}

/** A spec chosen for a file, and the file's own name of its architecture. */
export interface ChosenSpec {
  readonly resolved: ResolvedSpec;
  readonly architecture: string;
}

/**
 * The spec for a model file.
 *
 * @throws {UnsupportedError} If the architecture is unknown or the file names none.
 */
export function chooseSpec(file: WeightFile): ChosenSpec {
  const entry = CONVENTIONS[file.kind];
  if (!entry) {
    throw new UnsupportedError(
      `holds weights but says nothing of the model: known containers are ${
        Object.keys(CONVENTIONS).join(", ")
      }`,
      { file: file.name },
    );
  }
  const { convention, key } = entry;
  const architecture = file.metadata.get(key);
  if (typeof architecture !== "string") {
    throw new UnsupportedError("the file does not say which architecture it is", {
      file: file.name,
      place: key,
      ...(convention === "huggingface" ? { remedy: "Put config.json beside the weights" } : {}),
    });
  }
  const spec = SPECS.find((candidate) => candidate.matches[convention].includes(architecture));
  if (!spec) {
    const known = SPECS.flatMap((candidate) => candidate.matches[convention]);
    throw new UnsupportedError(
      `architecture "${architecture}" is not built: known are ${known.join(", ")}`,
      { file: file.name, place: key },
    );
  }
  const resolved = resolveSpec(spec, names, { convention, file: `${spec.name}.json` });
  return { resolved, architecture };
}
