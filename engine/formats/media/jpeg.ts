// JPEG files (ITU-T T.81): what a file says before its pixels, checked here before libjpeg sees it: its size, which way
// is up, and whether it is whole. Pixels are mozjpeg's (libjpeg-turbo), equal to PIL's bit by bit. Left out: colours for
// print (CMYK), arithmetic coding, lossless and 12-bit pictures, which are refused, and colour profiles, not applied.

import { UnsupportedError } from "../../errors.ts";
import { libjpeg } from "./codecs.ts";
import { exifOrientation } from "./exif.ts";
import {
  brokenPicture,
  checkPixels,
  orient,
  type ReadPictureOptions,
  type RgbaPicture,
} from "./picture.ts";

const SOI = 0xd8, EOI = 0xd9, SOS = 0xda, APP1 = 0xe1;
/** Baseline, extended sequential, progressive (table B.1). */
const READ_FRAMES = [0xc0, 0xc1, 0xc2];
/** DHT, JPG and DAC stand among the frames. */
const NO_FRAMES = [0xc4, 0xc8, 0xcc];
/** Each scan of a progressive picture goes over all of it: a small file can ask for hours. */
const MAX_SCANS = 500;

interface JpegHead {
  readonly width: number;
  readonly height: number;
  readonly orientation: number;
}

/**
 * Decodes a JPEG file.
 *
 * @throws {FormatError} If it is damaged or cut off.
 * @throws {UnsupportedError} If it is of a rare kind.
 * @throws {ResourceError} If it has more pixels than it may have.
 */
export async function decodeJpeg(
  bytes: Uint8Array,
  options: ReadPictureOptions,
): Promise<RgbaPicture> {
  const head = headOf(bytes, options);
  const { picture, complaint } = await libjpeg(bytes);
  // What libjpeg only warns of, and where it fills up with grey; of the rest the pixels are whole.
  if (!picture || /premature end|bad huffman|resync/i.test(complaint)) {
    throw brokenPicture(`has damaged pixels: ${complaint}`, {
      file: options.file,
      place: "scan",
    });
  }
  return orient(picture, head.orientation);
}

/** Whether bytes begin as JPEG files do. */
export function isJpeg(bytes: Uint8Array): boolean {
  return bytes[0] === 0xff && bytes[1] === SOI && bytes[2] === 0xff;
}

/** Walks over all segments, up to the mark of the end. */
function headOf(bytes: Uint8Array, options: ReadPictureOptions): JpegHead {
  const { file } = options;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let size: { readonly width: number; readonly height: number } | undefined;
  let orientation = 1, scans = 0;
  for (let at = nextMarker(bytes, 2); at < bytes.length; at = nextMarker(bytes, at)) {
    const marker = bytes[at + 1]!, place = `segment ${marker.toString(16)} at byte ${at}`;
    if (marker === EOI) {
      if (size && scans > 0) return { ...size, orientation };
      throw brokenPicture("ends without pixels", { file, place });
    }
    if (at + 4 > bytes.length) break;
    const length = view.getUint16(at + 2), end = at + 2 + length;
    if (length < 2 || end > bytes.length) {
      throw brokenPicture(
        `says it has ${length} bytes, and the file has ${bytes.length - at - 2} more`,
        { file, place },
      );
    }
    const data = bytes.subarray(at + 4, end);
    if (marker >= 0xc0 && marker <= 0xcf && !NO_FRAMES.includes(marker)) {
      size = frameSize(data, { marker, place, file });
      checkPixels(size, options);
    } else if (marker === APP1 && String.fromCharCode(...data.subarray(0, 6)) === "Exif\0\0") {
      orientation = exifOrientation(data);
    } else if (marker === SOS && ++scans > MAX_SCANS) {
      throw brokenPicture(`has more than ${MAX_SCANS} scans`, { file, place });
    }
    at = end;
  }
  const place = `byte ${bytes.length}`;
  throw brokenPicture(`is cut off ${scans > 0 ? `in scan ${scans}` : "before its pixels"}`, {
    file,
    place,
  });
}

function frameSize(
  data: Uint8Array,
  { marker, place, file }: {
    readonly marker: number;
    readonly place: string;
    readonly file: string | undefined;
  },
): { readonly width: number; readonly height: number } {
  const remedy = "Save it as a JPEG of red, green and blue with 8 bits, or as PNG";
  const refuse = (what: string) =>
    new UnsupportedError(`${what} JPEG is not read`, { file, place, remedy });
  if (!READ_FRAMES.includes(marker)) throw refuse("lossless, hierarchical or arithmetic");
  if (data.length < 6) throw brokenPicture("is too short for a frame", { file, place });
  const [precision, h1, h0, w1, w0, components] = data as unknown as [
    ...[number, number, number, number, number, number],
  ];
  if (precision !== 8) throw refuse(`${precision}-bit`);
  if (components === 4) throw refuse("four-colour (CMYK)");
  const width = w1 << 8 | w0, height = h1 << 8 | h0;
  if (width === 0 || height === 0) {
    throw brokenPicture(`has ${width} × ${height} pixels`, { file, place });
  }
  return { width, height };
}

/** The place of the next marker: behind 0xff neither a stuffed zero, nor filling, nor a restart within a scan. */
function nextMarker(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(0xff, from); at >= 0; at = bytes.indexOf(0xff, at + 1)) {
    const next = bytes[at + 1];
    const isRestart = next !== undefined && next >= 0xd0 && next <= 0xd7;
    if (next !== undefined && next > 1 && next !== 0xff && !isRestart) return at;
  }
  return bytes.length;
}
