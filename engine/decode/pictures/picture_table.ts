// Pictures that a model has looked at. Each row of one has a number below 0 that stands for it wherever tokens stand: in
// prompts, sessions and kept texts. Numbers go by what a picture is (a digest of its pixels), never by when it came, so
// whatever compares tokens tells two pictures apart and finds the same one again, and no cache needs to know of pictures.
//
// Values are kept as long as somebody holds them: sessions hold those of their tokens, the table those that were used last.
// A number outlives its values, since rows of a cache may still be those of the picture.

import { ResourceError } from "../../errors.ts";
import type { PicturePlace, PictureRows } from "../../run/picture_inputs.ts";

/** A picture as a model sees it. */
export interface SeenPicture {
  /** Digest of what it was made of, in hexadecimal. */
  readonly key: string;
  /** f32[count, hidden], in the order of its rows. */
  readonly values: Float32Array;
  readonly count: number;
  /** Rows and columns by which positions go, where they go by place. */
  readonly grid?: { readonly rows: number; readonly columns: number } | undefined;
  /** Parts that it was cut into besides the whole, where text between them names these. */
  readonly tiles?: { readonly rows: number; readonly columns: number } | undefined;
}

interface Entry {
  /** Number of its first row; those of the others are below. */
  readonly first: number;
  readonly count: number;
  picture: WeakRef<SeenPicture>;
}

/** Where a row stands, and in what. */
export interface SeenPlace extends PicturePlace {
  readonly picture: SeenPicture;
}

/** Bytes of values that are kept for whoever shows the same pictures again. */
const RECENT_BYTES = 64 * 2 ** 20;

/** The pictures of one model. */
export class PictureTable implements PictureRows {
  /** Values of a row. */
  readonly width: number;
  /** By number, from -1 down. */
  readonly #entries: Entry[] = [];
  readonly #byKey = new Map<string, Entry>();
  #recent: SeenPicture[] = [];
  #last: { readonly id: number; readonly place: SeenPlace } | undefined;

  constructor(width: number) {
    this.width = width;
  }

  /** The picture of a digest, if its values are still there. */
  find(key: string): SeenPicture | undefined {
    const picture = this.#byKey.get(key)?.picture.deref();
    if (picture) this.#keep(picture);
    return picture;
  }

  /** Takes a picture in; the number of its first row, the others follow below. */
  add(picture: SeenPicture): number {
    const { key, count } = picture, known = this.#byKey.get(key);
    this.#keep(picture);
    if (known) {
      known.picture = new WeakRef(picture);
      return known.first;
    }
    const last = this.#entries.at(-1), first = last ? last.first - last.count : -1;
    if (first - count < -(2 ** 31)) {
      throw new ResourceError("has looked at as many pictures as it can tell apart", {
        remedy: "Load the model again",
      });
    }
    const entry = { first, count, picture: new WeakRef(picture) };
    this.#entries.push(entry);
    this.#byKey.set(key, entry);
    return first;
  }

  /** Whether a number is that of a row whose values are there. */
  has(id: number): boolean {
    return this.#entryOf(id)?.picture.deref() !== undefined;
  }

  rowOf(id: number): Float32Array {
    const { picture, row } = this.placeOf(id);
    return picture.values.subarray(row * this.width, (row + 1) * this.width);
  }

  placeOf(id: number): SeenPlace {
    if (this.#last?.id === id) return this.#last.place;
    const entry = this.#entryOf(id), picture = entry?.picture.deref();
    if (!entry || !picture) {
      throw new RangeError(`Cannot compute row ${id}: it is of no picture of this model`);
    }
    const place = { picture, row: entry.first - id, count: entry.count };
    this.#last = { id, place };
    return place;
  }

  /** The pictures of some tokens, each once: whoever holds them keeps their values there. */
  among(tokens: ArrayLike<number>): SeenPicture[] {
    const found = new Set<SeenPicture>();
    for (let i = 0; i < tokens.length; i++) {
      if (tokens[i]! < 0) found.add(this.placeOf(tokens[i]!).picture);
    }
    return [...found];
  }

  #entryOf(id: number): Entry | undefined {
    let low = 0, high = this.#entries.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#entries[middle]!.first >= id) low = middle;
      else high = middle - 1;
    }
    const entry = this.#entries[low];
    return entry && id <= entry.first && id > entry.first - entry.count ? entry : undefined;
  }

  #keep(picture: SeenPicture): void {
    this.#recent = [picture, ...this.#recent.filter((other) => other.key !== picture.key)];
    let bytes = 0;
    const end = this.#recent.findIndex((one) => (bytes += one.values.byteLength) > RECENT_BYTES);
    if (end > 0) this.#recent.length = end;
  }
}
