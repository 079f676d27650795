// PNG files (W3C PNG specification, third edition): all colour types, depths, transparent colours, and Adam7's seven
// passes. Left out: colour profiles and gamma, which are not applied, and animation, of which the first picture is read.

import { joinBytes } from "../../byte_source.ts";
import { builtin } from "../../builtin.ts";
import { FormatError } from "../../errors.ts";
import { exifOrientation } from "./exif.ts";
import {
  brokenPicture,
  checkPixels,
  orient,
  type Picture,
  type ReadPictureOptions,
  type RgbaPicture,
  withAlpha,
} from "./picture.ts";
import { checkBytes } from "../../option_keys.ts";

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const GREY = 0, RGB = 2, PALETTE = 3, RGBA = 6;

/** Channels and allowed depths of colour types (section 11.2.1). */
const COLOURS: Readonly<
  Record<number, { readonly channels: number; readonly depths: readonly number[] }>
> = {
  [GREY]: { channels: 1, depths: [1, 2, 4, 8, 16] },
  [RGB]: { channels: 3, depths: [8, 16] },
  [PALETTE]: { channels: 1, depths: [1, 2, 4, 8] },
  4: { channels: 2, depths: [8, 16] },
  [RGBA]: { channels: 4, depths: [8, 16] },
};

/** First column and row, and steps between columns and rows, of each pass (section 8.2). */
const ADAM7 = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;
const WHOLE = [[0, 0, 1, 1]] as const;

interface Header {
  readonly width: number;
  readonly height: number;
  readonly depth: number;
  readonly colour: number;
  readonly channels: number;
  readonly passes: readonly (readonly [number, number, number, number])[];
}

/**
 * Reads a PNG file, turned as EXIF says, transparency laid on white. `readPicture` reads other files too.
 *
 * @param file For messages.
 * @throws {FormatError} If it is none, or is damaged.
 * @throws {ResourceError} If it has more than 100 million pixels.
 *
 * @example
 * ```ts
 * import { readPng } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const { width, height, data } = readPng(await Deno.readFile("page.png"), "page.png");
 * assertEquals(data.length, 3 * width * height);
 * ```
 * @category Pictures
 */
export function readPng(bytes: Uint8Array, file = "picture"): Picture {
  checkBytes(bytes, "a picture");
  return withAlpha(decodePng(bytes, { file }), "white");
}

/**
 * Decodes a PNG file.
 *
 * @throws {FormatError} If it is none, or is damaged.
 * @throws {ResourceError} If it has more pixels than it may have.
 */
export function decodePng(bytes: Uint8Array, options: ReadPictureOptions): RgbaPicture {
  const { file } = options;
  if (!isPng(bytes)) {
    const remedy = "Read it with readPicture(), which knows other kinds too";
    throw new FormatError("is no PNG file", { file, remedy });
  }
  const chunks = chunksOf(bytes, file);
  const header = headerOf(chunks[0], file);
  checkPixels(header, options);
  const { width, height, colour, passes } = header;
  const chunk = (wanted: string) => chunks.find(({ name }) => name === wanted)?.data;
  const palette = chunk("PLTE");
  if (colour === PALETTE && !palette) throw brokenPicture("has no palette", { file });
  const sizes = passes.map((pass) => passSize(header, pass));
  const length = sizes.reduce((sum, { rows, rowBytes }) => sum + rows * (rowBytes + 1), 0);
  const raw = inflate(chunks, length, file);
  const data = new Uint8Array(4 * width * height);
  const write = pixelWriter(header, { data, palette, transparent: chunk("tRNS"), file });
  let at = 0;
  passes.forEach(([left, top, across, down], i) => {
    const { columns, rows, rowBytes, step } = sizes[i]!;
    const pass = raw.subarray(at, at += rows * (rowBytes + 1));
    unfilter(pass, { rowBytes, rows, step }, file);
    for (let y = 0; y < rows; y++) {
      const row = pass.subarray(y * (rowBytes + 1) + 1, (y + 1) * (rowBytes + 1));
      write(row, columns, { to: 4 * ((top + y * down) * width + left), step: 4 * across });
    }
  });
  const exif = chunk("eXIf");
  return orient({ width, height, channels: 4, data }, exif ? exifOrientation(exif) : 1);
}

/** Whether bytes begin as PNG files do. */
export function isPng(bytes: Uint8Array): boolean {
  return SIGNATURE.every((byte, i) => bytes[i] === byte);
}

interface Chunk {
  readonly name: string;
  readonly data: Uint8Array;
}

function chunksOf(bytes: Uint8Array, file: string | undefined): Chunk[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const chunks: Chunk[] = [];
  const { crc32 } = builtin("node:zlib");
  for (let at = 8; at + 12 <= bytes.length;) {
    const length = view.getUint32(at), end = at + 8 + length;
    const name = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    const place = `chunk ${JSON.stringify(name)} at byte ${at}`;
    if (end + 4 > bytes.length) throw brokenPicture("is cut off", { file, place });
    // A capital says that the picture cannot be shown without the chunk (section 5.4).
    if (/^[A-Z]/.test(name) && crc32(bytes.subarray(at + 4, end)) !== view.getUint32(end)) {
      throw brokenPicture("is damaged: its check sum is another", { file, place });
    }
    chunks.push({ name, data: bytes.subarray(at + 8, end) });
    if (name === "IEND") return chunks;
    at = end + 4;
  }
  throw brokenPicture("is cut off: no IEND chunk ends it", { file, place: "end" });
}

function headerOf(chunk: Chunk | undefined, file: string | undefined): Header {
  const place = "header";
  if (chunk?.name !== "IHDR" || chunk.data.length !== 13) {
    throw brokenPicture("does not begin with an IHDR chunk of 13 bytes", { file, place });
  }
  const view = new DataView(chunk.data.buffer, chunk.data.byteOffset, 13);
  const width = view.getUint32(0), height = view.getUint32(4);
  const [depth, colour, compression, filter, interlace] = chunk.data.subarray(8) as unknown as [
    ...[number, number, number, number, number],
  ];
  if (width === 0 || height === 0 || width >= 2 ** 31 || height >= 2 ** 31) {
    throw brokenPicture(`has ${width} × ${height} pixels`, { file, place });
  }
  const kind = COLOURS[colour];
  if (!kind?.depths.includes(depth)) {
    throw brokenPicture(`has colour type ${colour} with ${depth} bits`, { file, place });
  }
  if (compression !== 0 || filter !== 0 || interlace > 1) {
    throw brokenPicture(
      `has compression ${compression}, filter method ${filter}, interlacing ${interlace}`,
      { file, place },
    );
  }
  const { channels } = kind;
  return { width, height, depth, colour, channels, passes: interlace === 1 ? ADAM7 : WHOLE };
}

function passSize(
  { width, height, depth, channels }: Header,
  [left, top, across, down]: Header["passes"][number],
) {
  const columns = Math.max(0, Math.ceil((width - left) / across));
  const rows = columns === 0 ? 0 : Math.max(0, Math.ceil((height - top) / down));
  const rowBytes = Math.ceil(columns * channels * depth / 8);
  return { columns, rows, rowBytes, step: Math.max(1, channels * depth / 8) };
}

function inflate(
  chunks: readonly Chunk[],
  length: number,
  file: string | undefined,
): Uint8Array {
  const parts = chunks.filter(({ name }) => name === "IDAT").map(({ data }) => data);
  const place = "pixels";
  let raw: Uint8Array;
  try {
    raw = builtin("node:zlib").inflateSync(joinBytes(parts), { maxOutputLength: length });
  } catch (error) {
    const { code, message } = error as Error & { readonly code?: string };
    const what = code === "ERR_BUFFER_TOO_LARGE"
      ? `has more than the ${length} bytes of pixels that its header says`
      : `has damaged data: ${message}`;
    throw brokenPicture(what, { file, place });
  }
  if (raw.length !== length) {
    throw brokenPicture(`has ${raw.length} bytes of pixels, not ${length}`, { file, place });
  }
  return raw;
}

/** Section 9.2: each byte was written as its difference to a guess from its neighbours. */
function unfilter(
  raw: Uint8Array,
  { rowBytes, rows, step }: {
    readonly rowBytes: number;
    readonly rows: number;
    readonly step: number;
  },
  file: string | undefined,
): void {
  let above = new Uint8Array(rowBytes);
  for (let y = 0; y < rows; y++) {
    const start = y * (rowBytes + 1), filter = raw[start]!;
    const row = raw.subarray(start + 1, start + 1 + rowBytes);
    if (filter === 1) {
      for (let i = step; i < rowBytes; i++) row[i]! += row[i - step]!;
    } else if (filter === 2) {
      for (let i = 0; i < rowBytes; i++) row[i]! += above[i]!;
    } else if (filter === 3) {
      for (let i = 0; i < step; i++) row[i]! += above[i]! >> 1;
      for (let i = step; i < rowBytes; i++) row[i]! += (row[i - step]! + above[i]!) >> 1;
    } else if (filter === 4) {
      for (let i = 0; i < step; i++) row[i]! += above[i]!;
      for (let i = step; i < rowBytes; i++) {
        row[i]! += paeth(row[i - step]!, above[i]!, above[i - step]!);
      }
    } else if (filter !== 0) {
      throw brokenPicture(`has filter ${filter}`, { file, place: `row ${y}` });
    }
    above = row as Uint8Array<ArrayBuffer>;
  }
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const a = Math.abs(guess - left), b = Math.abs(guess - up), c = Math.abs(guess - corner);
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

interface PixelTarget {
  readonly data: Uint8Array;
  readonly palette: Uint8Array | undefined;
  /** Of the palette's first entries the opacity, of other files the colour that is transparent (section 11.3.1.1). */
  readonly transparent: Uint8Array | undefined;
  readonly file: string | undefined;
}

/** Writes pixels of a row: the first at byte `to`, the others `step` bytes apart. */
type PixelWriter = (
  row: Uint8Array,
  columns: number,
  place: { readonly to: number; readonly step: number },
) => void;

function pixelWriter(
  { depth, colour, channels }: Header,
  { data, palette, transparent, file }: PixelTarget,
): PixelWriter {
  const most = 2 ** depth - 1, isColoured = colour === RGB || colour === RGBA;
  const to8 = Uint8Array.from({ length: most + 1 }, (_, value) => Math.round(value * 255 / most));
  const hidden = colour !== PALETTE && transparent && transparent.length >= 2 * channels
    ? Array.from({ length: channels }, (_, c) => transparent[2 * c]! << 8 | transparent[2 * c + 1]!)
    : undefined;
  if (colour === PALETTE) {
    return (row, columns, { to, step }) => {
      for (let x = 0, at = to; x < columns; x++, at += step) {
        const index = sampleAt(row, x, depth);
        if (3 * index + 2 >= palette!.length) {
          throw brokenPicture(`has colour ${index}, which its palette lacks`, { file });
        }
        for (let c = 0; c < 3; c++) data[at + c] = palette![3 * index + c]!;
        data[at + 3] = transparent?.[index] ?? 255;
      }
    };
  }
  return (row, columns, { to, step }) => {
    for (let x = 0, at = to; x < columns; x++, at += step) {
      const first = x * channels;
      for (let c = 0; c < 3; c++) {
        data[at + c] = to8[sampleAt(row, isColoured ? first + c : first, depth)]!;
      }
      const isHidden = hidden?.every((value, c) => sampleAt(row, first + c, depth) === value);
      data[at + 3] = channels === 2 || channels === 4
        ? to8[sampleAt(row, first + channels - 1, depth)]!
        : isHidden
        ? 0
        : 255;
    }
  };
}

function sampleAt(row: Uint8Array, index: number, depth: number): number {
  if (depth === 8) return row[index]!;
  if (depth === 16) return row[2 * index]! << 8 | row[2 * index + 1]!;
  const bit = index * depth;
  return row[bit >> 3]! >> (8 - depth - (bit & 7)) & ((1 << depth) - 1);
}
