// What stands in a prompt where a picture is: the text of a spec of sight, with the token of rows as often as there are some.

import type { SeenPicture } from "../../decode/pictures/picture_table.ts";
import type { SightSpec } from "./sight_spec.ts";

/** The text of a picture; `row` is the token of its rows. */
export function textOfPicture(
  { marks }: SightSpec,
  { count, tiles, row }: Pick<SeenPicture, "count" | "tiles"> & { readonly row: string },
): string {
  const { whole, tile = "{rows}", tileLineEnd = "", behindTiles = whole } = marks;
  const put = (text: string, rows: number) => text.replace("{rows}", () => row.repeat(rows));
  if (!tiles) return put(whole, count);
  const each = count / (tiles.rows * tiles.columns + 1);
  const lines = Array.from(
    { length: tiles.rows },
    (_, y) =>
      Array.from({ length: tiles.columns }, (_, x) => {
        const named = tile.replace("{row}", `${y + 1}`).replace("{column}", `${x + 1}`);
        return put(named, each);
      }).join("") + tileLineEnd,
  );
  return lines.join("") + put(behindTiles, each);
}
