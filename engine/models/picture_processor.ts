// How pictures are prepared for a model, as the file beside its weights says.

import { FormatError } from "../errors.ts";
import type { WeightFile } from "../formats/source.ts";
import { asObject, parseJson } from "../formats/strict_json.ts";
import { readImageProcessor } from "../pictures/image_processor.ts";
import type { PictureSize } from "./blocks/patches.ts";

const PROCESSOR = "preprocessor_config.json";

/** Content of preprocessor_config.json beside a model; undefined where there is none. */
export async function readProcessor(
  file: WeightFile,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const text = await file.readText?.(PROCESSOR);
  if (text === undefined) return undefined;
  const config = asObject(parseJson(text, { file: file.name, place: PROCESSOR }));
  if (config) return config;
  throw new FormatError("is not a JSON object", { file: file.name, place: PROCESSOR });
}

/** The size to which pictures are brought for a model; undefined where its files leave that open. */
export async function preparedSize(file: WeightFile): Promise<PictureSize | undefined> {
  const config = await readProcessor(file);
  if (!config) return undefined;
  const { crop, resize } = readImageProcessor(config, `${file.name}: ${PROCESSOR}`);
  return crop ?? (resize && "width" in resize.size ? resize.size : undefined);
}
