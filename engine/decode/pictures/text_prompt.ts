// A plain text with pictures as a prompt, for who continues texts without a conversation.

import { UnsupportedError } from "../../errors.ts";
import { createGuard, NO_GUARD } from "../../text/control_guard.ts";
import type { Runtime } from "../runtime.ts";
import { type PictureSource, readSource } from "./picture_source.ts";
import type { SeenPicture } from "./picture_table.ts";
import { checkPlaces, withRows } from "./prompt_pictures.ts";
import type { Sight } from "./sight.ts";

/** How a model sees. @throws {UnsupportedError} If it does not. */
function sightOf({ sight, name }: Pick<Runtime, "sight" | "name">): Sight {
  if (sight) return sight;
  throw new UnsupportedError("the model reads text only, and sees no pictures", {
    file: name,
    remedy: "Use a model that sees, with its mmproj file if it is a GGUF file",
  });
}

/**
 * A text with a place for each picture, in front of it where it has none.
 *
 * @throws {UnsupportedError} If the model sees no pictures. @throws {FormatError} If it has more or fewer places.
 */
export function picturePlaces(
  runtime: Runtime,
  { prompt, count }: { readonly prompt: string; readonly count: number },
): string {
  const sight = sightOf(runtime), { placeholder } = sight;
  if (!prompt.includes(placeholder)) return placeholder.repeat(count) + prompt;
  checkPlaces(prompt, { sight, count, file: runtime.name });
  return prompt;
}

/** Tokens of a text with its pictures; what it says besides becomes no control token, unless that is wanted. */
export async function pictureTokens(
  runtime: Runtime,
  { prompt, images, special, signal }: {
    readonly prompt: string;
    readonly images: readonly PictureSource[];
    readonly special: boolean;
    readonly signal: AbortSignal;
  },
): Promise<number[]> {
  const sight = sightOf(runtime), tokenizer = runtime.tokenizer();
  const pictures: SeenPicture[] = [];
  for (const image of images) {
    signal.throwIfAborted();
    pictures.push(await sight.look(await readSource(image, signal), signal));
  }
  const pieces = prompt.split(sight.placeholder);
  const guard = special ? NO_GUARD : createGuard(tokenizer, pieces);
  const text = pieces.map((piece, i) =>
    (guard.protect(piece) as string) + (pictures[i] ? sight.textOf(pictures[i]) : "")
  ).join("");
  const ids = tokenizer.encode(text, { special: true, restore: guard.restore });
  return withRows(ids, { sight, pictures, file: runtime.name });
}
