// The list of architectures: one JSON file and one line each. Nothing else in the engine knows a name.

import { UnsupportedError } from "../../errors.ts";
import type { WeightFile } from "../../formats/source.ts";
import { describeNearest, nearestSpec } from "../nearest_spec.ts";
import { type Convention, type ResolvedSpec, resolveSpec } from "../spec.ts";
import baichuan from "./baichuan.json" with { type: "json" };
import bert from "./bert.json" with { type: "json" };
import bloom from "./bloom.json" with { type: "json" };
import chatglm from "./chatglm.json" with { type: "json" };
import cohere from "./cohere.json" with { type: "json" };
import deepseek from "./deepseek.json" with { type: "json" };
import deepseek2 from "./deepseek2.json" with { type: "json" };
import deepseek3 from "./deepseek3.json" with { type: "json" };
import falcon from "./falcon.json" with { type: "json" };
import gemma from "./gemma.json" with { type: "json" };
import gemma2 from "./gemma2.json" with { type: "json" };
import gemma3 from "./gemma3.json" with { type: "json" };
import glm from "./glm.json" with { type: "json" };
import glm4 from "./glm4.json" with { type: "json" };
import gpt2 from "./gpt2.json" with { type: "json" };
import gptNeox from "./gpt_neox.json" with { type: "json" };
import gptOss from "./gpt_oss.json" with { type: "json" };
import granite from "./granite.json" with { type: "json" };
import internlm2 from "./internlm2.json" with { type: "json" };
import llama from "./llama.json" with { type: "json" };
import minicpm from "./minicpm.json" with { type: "json" };
import mistral from "./mistral.json" with { type: "json" };
import mixtral from "./mixtral.json" with { type: "json" };
import m2m100 from "./m2m100.json" with { type: "json" };
import roberta from "./roberta.json" with { type: "json" };
import t5 from "./t5.json" with { type: "json" };
import names from "./names.json" with { type: "json" };
import olmo from "./olmo.json" with { type: "json" };
import olmo2 from "./olmo2.json" with { type: "json" };
import olmoe from "./olmoe.json" with { type: "json" };
import opt from "./opt.json" with { type: "json" };
import orion from "./orion.json" with { type: "json" };
import phi from "./phi.json" with { type: "json" };
import phi3 from "./phi3.json" with { type: "json" };
import qwen2 from "./qwen2.json" with { type: "json" };
import qwen2Moe from "./qwen2_moe.json" with { type: "json" };
import qwen3 from "./qwen3.json" with { type: "json" };
import qwen3Moe from "./qwen3_moe.json" with { type: "json" };
import smollm3 from "./smollm3.json" with { type: "json" };
import stablelm from "./stablelm.json" with { type: "json" };
import yi from "./yi.json" with { type: "json" };

const SPECS: readonly SpecFile[] = [
  baichuan,
  bloom,
  chatglm,
  cohere,
  deepseek,
  deepseek2,
  deepseek3,
  falcon,
  gemma,
  gemma2,
  gemma3,
  glm,
  glm4,
  gpt2,
  gptNeox,
  gptOss,
  granite,
  internlm2,
  llama,
  minicpm,
  mistral,
  mixtral,
  olmo,
  olmo2,
  olmoe,
  opt,
  orion,
  phi,
  phi3,
  qwen2,
  qwen2Moe,
  qwen3,
  qwen3Moe,
  smollm3,
  stablelm,
  yi,
  bert,
  roberta,
  m2m100,
  t5,
];

/** What choosing needs of a spec file; the rest is checked when it is chosen. */
export interface SpecFile {
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

/** The spec files themselves, for tests and tools. */
export const specFiles: readonly SpecFile[] = SPECS;

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
 * @param given Content of a spec file to use instead of the shipped ones.
 * @throws {UnsupportedError} If the architecture is unknown or the file names none.
 * @throws {FormatError} If the given spec is wrong; the message names the key.
 */
export function chooseSpec(file: WeightFile, given?: unknown): ChosenSpec {
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
  const stated = architectureOf(file, key);
  if (given !== undefined) {
    const resolved = resolveSpec(given, names, { convention, file: "the given spec" });
    return { resolved, architecture: stated ?? resolved.spec.name };
  }
  if (stated === undefined) {
    throw new UnsupportedError("the file does not say which architecture it is", {
      file: file.name,
      place: key,
      ...(convention === "huggingface" ? { remedy: "Put config.json beside the weights" } : {}),
    });
  }
  const spec = SPECS.find(({ matches }) => matches[convention].includes(stated)) ??
    SPECS.find(({ matches }) => matches[convention].some((name) => plain(name) === plain(stated)));
  if (spec) return { resolved: resolve(spec, convention), architecture: stated };
  const known = SPECS.flatMap(({ matches }) => matches[convention]);
  const nearest = nearestSpec(
    file,
    SPECS.filter(({ matches }) => matches[convention].length > 0)
      .map((candidate) => resolve(candidate, convention)),
  );
  throw new UnsupportedError(
    `architecture "${stated}" is not built: known are ${known.join(", ")}`,
    { file: file.name, place: key, ...nearest && { remedy: describeNearest(nearest) } },
  );
}

function resolve(spec: SpecFile, convention: Convention): ResolvedSpec {
  return resolveSpec(spec, names, { convention, file: `${spec.name}.json` });
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
