// loadImageModel(). The parts are opened by open_image_model.ts, which is imported when it is called for: a script that reads
// texts does not start with networks and passes of pictures.

import { oneOf } from "../../decode/load_options.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";
import { PIPELINE_INDEX } from "../../formats/hub/pipeline_files.ts";
import { fetchModel } from "../../formats/hub/pull.ts";
import { pathOf } from "../../io.ts";
import { SOURCE_KEYS } from "../../formats/hub/source_keys.ts";
import { checkDevice } from "../../run/device_facts.ts";
import { paceOf } from "../../run/pacer.ts";
import type { ImageModel, LoadImageModelOptions } from "./image_model.ts";

const OPTION_KEYS: OptionKeys<LoadImageModelOptions> = {
  device: true,
  gpu: true,
  threads: true,
  precision: true,
  adapters: true,
  excludeKernels: true,
  priority: true,
  maxSubmitMs: true,
  ...SOURCE_KEYS,
};

/**
 * Loads a model that paints: the folder of a diffusers pipeline (Stable Diffusion 1, 2, XL and 3, PixArt, turbo and LCM
 * models of theirs), with weights in safetensors, or as Optimum exports it to ONNX.
 *
 * @example
 * ```ts
 * import { generateImage, loadImageModel, writePng } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await loadImageModel("painter", { device: "wasm" });
 * const { picture } = await generateImage(model, "a red cat", { steps: 2, width: 32, height: 24, seed: 1 });
 * assertEquals([picture.width, picture.height], [32, 24]);
 * writePng(picture); // bytes of a file
 * ```
 *
 * @param model A path or a `file://` URL of the folder, or `owner/repo` of the hub, of which the parts are fetched once.
 * @throws {RangeError | TypeError} If an option is not known, or its value none that it takes.
 * @throws {SourceError} If a part is not there, or not to be had.
 * @throws {FormatError} If parts do not fit each other, or a file is damaged.
 * @throws {UnsupportedError} If the pipeline, or a part of it, is not built.
 * @category Pictures from texts
 */
export async function loadImageModel(
  model: string | URL,
  options: LoadImageModelOptions = {},
): Promise<ImageModel> {
  checkOptionKeys(options, { of: "loadImageModel()", known: OPTION_KEYS });
  checkOptions(options);
  const path = await fetchModel(pathOf(model), options);
  // Of a repository the index is what is opened.
  const folder = path.endsWith(`/${PIPELINE_INDEX}`)
    ? path.slice(0, -PIPELINE_INDEX.length - 1)
    : path;
  const [{ openDiffusersFolder }, { openImageModel }] = await Promise.all([
    import("./diffusers_folder.ts"),
    import("./open_image_model.ts"),
  ]);
  return await openImageModel(await openDiffusersFolder(folder), options);
}

function checkOptions(options: LoadImageModelOptions): void {
  checkDevice(options);
  paceOf(options);
  oneOf({ precision: options.precision }, ["fast", "exact"]);
  const { adapters = [] } = options;
  const areAdapters = Array.isArray(adapters) &&
    adapters.every(({ path, scale = 1 }) => typeof path === "string" && Number.isFinite(scale));
  if (areAdapters) return;
  throw new TypeError("Cannot use adapters: they are a list of { path, scale }");
}
