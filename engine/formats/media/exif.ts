// The one fact of EXIF that pixels need: which way is up. EXIF is a TIFF file (TIFF 6.0, section 2) inside of a picture.
// What is broken there is passed over, as by every viewer: the pixels are not.

const ORIENTATION = 0x0112, SHORT = 3;

/**
 * Orientation of EXIF data.
 *
 * @param data With or without the six bytes `Exif\0\0` in front.
 * @returns 1 to 8; 1 where none is told.
 */
export function exifOrientation(data: Uint8Array): number {
  const start = data[0] === 0x45 && data[1] === 0x78 ? 6 : 0;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (view.byteLength < start + 10) return 1;
  const order = view.getUint16(start);
  if (order !== 0x4949 && order !== 0x4d4d) return 1;
  const isLittle = order === 0x4949;
  const directory = start + view.getUint32(start + 4, isLittle);
  if (directory + 2 > view.byteLength) return 1;
  const entries = view.getUint16(directory, isLittle);
  for (let i = 0, at = directory + 2; i < entries && at + 12 <= view.byteLength; i++, at += 12) {
    if (view.getUint16(at, isLittle) !== ORIENTATION) continue;
    const value = view.getUint16(at + 2, isLittle) === SHORT ? view.getUint16(at + 8, isLittle) : 1;
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}
