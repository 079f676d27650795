// matchImages(): how well texts describe pictures, by a model that makes comparable vectors of both. CLIP asks which of
// the texts it is (softmax; Radford et al., 2021, section 3.1.2), SigLIP of each whether it fits (sigmoid; Zhai et al.,
// 2023).

import type { Model } from "../../decode/model.ts";
import type { MatchRule } from "../../decode/pictures/tower.ts";
import { UnsupportedError } from "../../errors.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";
import { embed } from "../embed.ts";
import { checkTexts, softmaxInPlace } from "../encoder_text.ts";
import { logistic } from "../label_scores.ts";
import { embedImage } from "./embed_image.ts";
import {
  type ImageInput,
  type ImageOptions,
  pixelsOf,
  towerOf,
  type VisionModel,
} from "./image_input.ts";

/**
 * A text and how well it describes a picture.
 * @category Pictures
 */
export interface ImageMatch {
  /** The text. */
  readonly text: string;
  /** Of this text among all (CLIP), or by itself (SigLIP). */
  readonly probability: number;
  /** Cosine of the two vectors, times the factor that the model has learnt, plus its summand. */
  readonly logit: number;
  /** Cosine of the two vectors. */
  readonly similarity: number;
}

const KEYS: OptionKeys<ImageOptions> = { signal: true };

/**
 * How well each of some texts describes each of some pictures, in the order of the texts.
 *
 * @param model CLIP or SigLIP, or their graph of {@linkcode loadImageGraph}.
 * @throws {UnsupportedError} If the model does not compare pictures with texts.
 * @throws {RangeError} If there is no text, or a tensor has the wrong shape.
 *
 * @example
 * ```ts ignore
 * import { load, matchImages, readPicture } from "@troodon/troodon";
 *
 * using model = await load("hf:openai/clip-vit-base-patch32");
 * const picture = await readPicture(await Deno.readFile("cat.jpg"));
 * const [matches] = await matchImages(model, {
 *   images: picture,
 *   texts: ["a photo of a cat", "a photo of a dog"],
 * });
 * console.log(matches!.map(({ text, similarity }) => [text, similarity]));
 * ```
 * @category Pictures
 */
export async function matchImages(
  model: VisionModel,
  { images, texts }: { readonly images: ImageInput; readonly texts: readonly string[] },
  options: ImageOptions = {},
): Promise<ImageMatch[][]> {
  checkOptionKeys(options, { of: "matchImages()", known: KEYS });
  checkTexts(texts, "compare pictures with texts");
  const tower = towerOf(model, "compare pictures with texts"), { match, name } = tower;
  if (texts.length === 0) throw new RangeError("There is no text to compare pictures with");
  if (tower.compare) {
    const { kind, cosines, logits } = await tower.compare(
      pixelsOf(tower, images),
      texts,
      options.signal,
    );
    return cosines.map((row, i) => matchesOf(texts, { kind, cosines: row, logits: logits[i]! }));
  }
  if (!match) {
    throw new UnsupportedError("cannot compare pictures with texts: it makes no vectors of texts", {
      file: name,
      remedy: "Use CLIP or SigLIP",
    });
  }
  const pictures = await embedImage(model, images, options);
  const vectors = await embed(model as Model, texts, options);
  return pictures.map((picture) => {
    const cosines = vectors.map((vector) =>
      vector.reduce((sum, value, i) => sum + value * picture[i]!, 0)
    );
    const { kind, scale, bias } = match;
    const logits = cosines.map((cosine) => scale * cosine + bias);
    return matchesOf(texts, { kind, cosines, logits });
  });
}

function matchesOf(
  texts: readonly string[],
  { kind, cosines, logits: given }: {
    readonly kind: MatchRule["kind"];
    readonly cosines: readonly number[];
    readonly logits: readonly number[];
  },
): ImageMatch[] {
  const logits = Float32Array.from(given);
  const shares = kind === "softmax" ? softmaxInPlace(logits.slice()) : logits.map(logistic);
  return texts.map((text, i) => ({
    ...{ text, probability: shares[i]!, logit: logits[i]!, similarity: cosines[i]! },
  }));
}
