// classifyImage(): the labels of a picture, those that a classification head was trained for, or any that the caller
// names, by a model that compares pictures with texts (zero-shot).

import { UnsupportedError } from "../../errors.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";
import { type LabelScore, labelScores, topOf } from "../label_scores.ts";
import {
  type ImageInput,
  type ImageOptions,
  pixelsOf,
  towerOf,
  type VisionModel,
} from "./image_input.ts";
import { matchImages } from "./match_images.ts";

/**
 * Options of {@linkcode classifyImage}.
 * @category Pictures
 */
export interface ClassifyImageOptions extends ImageOptions {
  /** Labels to choose among, for CLIP and SigLIP, which have none of their own. */
  readonly labels?: readonly string[];
  /** Text that a label becomes, with `{}` in its place. Default `This is a photo of {}.` */
  readonly template?: string;
  /** How many labels, best first. Default all. */
  readonly top?: number;
}

const KEYS: OptionKeys<ClassifyImageOptions> = {
  labels: true,
  template: true,
  top: true,
  signal: true,
};
const TEMPLATE = "This is a photo of {}.";

/**
 * Labels of pictures, each list best first.
 *
 * @param model An encoder of pictures with a classification head (ViT, DINOv2, ResNet), or with `labels` CLIP or SigLIP.
 * @param images A picture or several, or the tensor that {@linkcode preparePictures} makes of them.
 * @throws {UnsupportedError} If the model looks at no pictures, has no labels, or cannot take those of the caller.
 * @throws {RangeError} On a bad option, or if a tensor has the wrong shape.
 *
 * @example The labels of a head
 * ```ts
 * import { classifyImage, load, readPicture } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("classifier");
 * const picture = await readPicture(await Deno.readFile("cat.png"));
 * const [labels] = await classifyImage(model, picture, { top: 1 });
 * assertEquals(labels!.map(({ label }) => label), ["tabby, tabby cat"]);
 * ```
 *
 * @example Labels of one's own
 * ```ts ignore
 * import { classifyImage, load, readPicture } from "@troodon/troodon";
 *
 * using model = await load("hf:openai/clip-vit-base-patch32");
 * const picture = await readPicture(await Deno.readFile("cat.jpg"));
 * console.log(await classifyImage(model, picture, { labels: ["cat", "dog"] }));
 * ```
 * @category Pictures
 */
export async function classifyImage(
  model: VisionModel,
  images: ImageInput,
  options: ClassifyImageOptions = {},
): Promise<LabelScore[][]> {
  checkOptionKeys(options, { of: "classifyImage()", known: KEYS });
  const { labels, template = TEMPLATE, top, signal } = options;
  if (labels) return await classifyByTexts(model, images, { ...options, labels, template });
  if (options.template !== undefined) {
    throw new RangeError("Cannot use a template without labels: it is for labels of the caller");
  }
  const tower = towerOf(model, "classify pictures");
  if (tower.labels.length === 0) {
    throw new UnsupportedError("cannot classify pictures: it has no labels of its own", {
      file: tower.name,
      remedy: tower.match
        ? "Give labels to choose among"
        : "Load a model with a classification head",
    });
  }
  const results: LabelScore[][] = [];
  await tower.encode(pixelsOf(tower, images), {
    read: ({ scores }) => void results.push(labelScores(scores, { ...tower, top })),
    signal,
  });
  return results;
}

async function classifyByTexts(
  model: VisionModel,
  images: ImageInput,
  { labels, template, top, signal }: ClassifyImageOptions & {
    readonly labels: readonly string[];
    readonly template: string;
  },
): Promise<LabelScore[][]> {
  if (!template.includes("{}")) {
    throw new RangeError(`Cannot use template ${JSON.stringify(template)}: it has no {}`);
  }
  if (!Array.isArray(labels)) {
    throw new TypeError("Cannot classify by labels: they are a list of texts, [label] for one");
  }
  const texts = labels.map((label) => template.replaceAll("{}", () => label));
  const all = await matchImages(model, { images, texts }, signal ? { signal } : {});
  const most = topOf(top, labels.length);
  return all.map((matches) =>
    matches
      .map(({ probability, logit }, i) => ({ label: labels[i]!, probability, logit }))
      .sort((a, b) => b.logit - a.logit)
      .slice(0, most)
  );
}
