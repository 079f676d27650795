// What a model that sees is to sessions and chats: pictures become rows, and text in a prompt says where these stand.

import type { Picture } from "../../formats/media/picture.ts";
import type { PictureTable, SeenPicture } from "./picture_table.ts";

/** How a model looks at pictures. */
export interface Sight {
  /** Those that it has looked at. */
  readonly table: PictureTable;
  /** A row sees all rows of its picture, so that a step has all of them or none. */
  readonly seesWhole: boolean;
  /** Rotations go by place in the picture. */
  readonly byPlace: boolean;
  /** What stands for a picture in what a chat template writes. */
  readonly placeholder: string;
  /** The token that stands for a row of a picture in text. */
  readonly rowToken: string;
  readonly rowId: number;
  /** What stands in the prompt for a picture, with the token of rows as often as it has some. */
  textOf(picture: SeenPicture): string;
  /**
   * Looks at a picture, unless it is known. Rejects with the signal's reason between two pieces of that.
   *
   * @throws {RangeError | UnsupportedError} If it cannot be prepared.
   */
  look(picture: Picture, signal?: AbortSignal): Promise<SeenPicture>;
  /** Bytes that the encoder of pictures takes. */
  readonly bytes: number;
  /** Frees the encoder of pictures. */
  dispose(): void;
}
