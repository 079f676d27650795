// Pictures in a prompt: what a template or a caller wrote where one stands becomes text with a token for each of its rows,
// and these tokens become the numbers that stand for the rows.

import { FormatError } from "../../errors.ts";
import { PICTURE_MARK } from "../message_form.ts";
import type { SeenPicture } from "./picture_table.ts";
import type { Sight } from "./sight.ts";

/** The pictures of a prompt, in their order. */
export interface PromptPictures {
  readonly sight: Sight;
  readonly pictures: readonly SeenPicture[];
  /** For messages. */
  readonly file: string;
}

/** @throws {FormatError} If there are more or fewer places for pictures than pictures. */
export function checkPlaces(
  prompt: string,
  { sight, count, file }: { readonly sight: Sight; readonly count: number; readonly file: string },
): void {
  const places = piecesOf(prompt, sight).length - 1;
  if (places === count) return;
  throw new FormatError(`the prompt has places for ${places} pictures, and ${count} are given`, {
    file,
    remedy: places < count
      ? `A place is written ${sight.placeholder}; a chat template that writes none cannot show pictures`
      : `Give a picture for each ${sight.placeholder}`,
  });
}

/** Text with the tokens of all rows. @throws {FormatError} As `checkPlaces`. */
export function withPictures(prompt: string, { sight, pictures, file }: PromptPictures): string {
  checkPlaces(prompt, { sight, count: pictures.length, file });
  const [first, ...rest] = piecesOf(prompt, sight);
  return first + rest.map((piece, i) => sight.textOf(pictures[i]!) + piece).join("");
}

/**
 * Tokens with the numbers of rows.
 *
 * @throws {FormatError} If there are other tokens of rows than those of the pictures: somebody wrote one.
 */
export function withRows(
  ids: readonly number[],
  { sight, pictures, file }: PromptPictures,
): number[] {
  const rows = pictures.flatMap((picture) => {
    const first = sight.table.add(picture);
    return Array.from({ length: picture.count }, (_, row) => first - row);
  });
  let next = 0;
  const numbered = ids.map((id) => id === sight.rowId ? rows[next++] ?? id : id);
  if (next === rows.length) return numbered;
  throw new FormatError(
    `the prompt has ${next} tokens ${sight.rowToken} where its pictures have ${rows.length} rows`,
    { file, remedy: `Leave ${sight.rowToken} out of texts` },
  );
}

function piecesOf(prompt: string, { placeholder }: Sight): string[] {
  return prompt.split(placeholder).flatMap((piece) => piece.split(PICTURE_MARK));
}
