// The files of a pipeline of diffusers: model_index.json names its parts, each of which is a folder of the same server. A
// part's weights have one of several names; the first that is there is fetched, as it is later opened.

import { FormatError } from "../../errors.ts";
import { checkPlainName, isMissing } from "../../io.ts";
import { asObject, parseStrictJson } from "../strict_json.ts";

/** Name of the file that makes a folder a pipeline. */
export const PIPELINE_INDEX = "model_index.json";

/** Parts that look at what was painted; nothing here asks them. */
const NOT_USED = ["safety_checker", "feature_extractor", "image_encoder"];
const TOKENIZER = [
  ...["tokenizer_config.json", "tokenizer.json", "vocab.json", "merges.txt", "spiece.model"],
  ...["special_tokens_map.json", "added_tokens.json"],
];
/** Whether a file of a repository holds weights of a pipeline, as they are fetched. */
export function isPipelineWeights(path: string): boolean {
  const [part, name, ...more] = path.split("/");
  return more.length === 0 && name !== undefined && !NOT_USED.includes(part!) &&
    /^(diffusion_pytorch_)?model(-\d+-of-\d+)?\.safetensors$/.test(name);
}

/** Weights of a part, best first: the whole before the half, one file before the index of shards. */
export const PART_WEIGHTS: readonly string[] = ["diffusion_pytorch_model", "model"].flatMap((
  name,
) => [
  `${name}.safetensors`,
  `${name}.safetensors.index.json`,
  `${name}.fp16.safetensors`,
  `${name}.safetensors.index.fp16.json`,
]);

/**
 * Fetches all that belongs to a pipeline whose index is there.
 *
 * @param index Its bytes.
 * @param fetchOne Fetches a file by its name below the pipeline's folder.
 * @throws {FormatError} If the index names a part outside of the folder.
 * @throws {SourceError} If a part has no weights that are read.
 */
export async function fetchParts<File>(
  index: Uint8Array,
  { fetchOne, shardsOf }: {
    readonly fetchOne: (name: string) => Promise<File>;
    /** Names of an index's shards. */
    readonly shardsOf: (index: string) => readonly string[];
  },
): Promise<File[]> {
  const parts = asObject(parseStrictJson(index, PIPELINE_INDEX));
  if (!parts) throw new FormatError("is not a JSON object", { file: PIPELINE_INDEX });
  const files: File[] = [];
  const optional = async (name: string): Promise<boolean> => {
    try {
      files.push(await fetchOne(name));
      return true;
    } catch (error) {
      if (!isMissing(error)) throw error;
      return false;
    }
  };
  const firstOf = async (names: readonly string[]): Promise<string> => {
    for (const name of names.slice(0, -1)) if (await optional(name)) return name;
    files.push(await fetchOne(names.at(-1)!));
    return names.at(-1)!;
  };
  for (const [part, value] of Object.entries(parts)) {
    const isPart = Array.isArray(value) && typeof value[0] === "string" && !NOT_USED.includes(part);
    if (!isPart) continue;
    checkPlainName(part, PIPELINE_INDEX);
    if (part === "scheduler") files.push(await fetchOne("scheduler/scheduler_config.json"));
    else if (part.startsWith("tokenizer")) {
      for (const name of TOKENIZER) await optional(`${part}/${name}`);
    } else {
      files.push(await fetchOne(`${part}/config.json`));
      const found = await firstOf(PART_WEIGHTS.map((name) => `${part}/${name}`));
      if (!found.endsWith(".json")) continue;
      for (const shard of shardsOf(found)) files.push(await fetchOne(`${part}/${shard}`));
    }
  }
  return files;
}
