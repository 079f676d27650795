// The matrices of llama2.c's version 2: int8 values, and one float32 scale for each group of them. The
// engine's 8-bit formats keep half-precision scales, so repacking would change weights in silence; these
// come out as float32, exactly value · scale, computed as they are read. The price is four times the memory.
//
// Exporters wrote the scales in two places over time: behind all matrices, or each behind its own. Both
// files have the same length and header. Scales are small and never negative, which int8 values read as
// floats are not; so the place whose first numbers look like scales is taken.

import type { ByteSource } from "../../byte_source.ts";
import { FormatError } from "../../errors.ts";
import { checkRange } from "../../io.ts";
import type { TensorInfo } from "../source.ts";

interface Matrix {
  readonly name: string;
  readonly shape: readonly number[];
}

interface Place {
  /** Offset of the int8 values. */
  readonly values: number;
  /** Offset of the scales. */
  readonly scales: number;
}

const SAMPLE = 1024;
/** 127 times this is larger than any weight. */
const MAX_SCALE = 1e4;
/** Small whole numbers, read as floats, are far below this. */
const MIN_SCALE = 1e-20;

/**
 * Tensors of the matrices, in file order.
 *
 * @param start Offset of the first one. The file's length is checked before.
 * @throws {FormatError} If there are no scales in either place.
 */
export async function placeGroups(
  source: ByteSource,
  matrices: readonly Matrix[],
  { start, group }: { start: number; group: number },
): Promise<TensorInfo[]> {
  const sizes = matrices.map(({ shape }) => shape.reduce((product, dim) => product * dim, 1));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  // Behind the first matrix there are its scales or the next one's values, whatever the sizes are.
  const atEnd = !await looksLikeScales(source, start + sizes[0], sizes[0] / group);
  if (atEnd && !await looksLikeScales(source, start + total, sizes[0] / group)) {
    throw new FormatError("its scales are no scales", {
      file: source.name,
      place: `byte ${start + total}`,
      remedy: "The file is damaged: fetch or export it again",
    });
  }
  let [values, scales] = [start, start + total];
  return matrices.map(({ name, shape }, i) => {
    const place = { values, scales: atEnd ? scales : values + sizes[i] };
    const scaleBytes = 4 * (sizes[i] / group);
    values += sizes[i] + (atEnd ? 0 : scaleBytes);
    scales += scaleBytes;
    const data = createGroupSource(source, name, { ...place, elements: sizes[i], group });
    return { name, shape, format: "F32", source: data, offset: 0, byteLength: data.size };
  });
}

async function looksLikeScales(source: ByteSource, at: number, count: number): Promise<boolean> {
  const scales = new Float32Array(Math.min(count, SAMPLE));
  await source.readInto(at, new Uint8Array(scales.buffer));
  return scales.every((scale) => scale >= 0 && scale < MAX_SCALE) &&
    scales.some((scale) => scale > MIN_SCALE);
}

/** A source of float32 bytes. */
function createGroupSource(
  source: ByteSource,
  matrix: string,
  { values, scales, elements, group }: Place & { elements: number; group: number },
): ByteSource {
  const name = `${source.name}, ${matrix}`;
  const size = 4 * elements;
  return {
    name,
    size,
    readInto(offset, target) {
      checkRange(name, { size, offset, length: target.length });
      if (target.length === 0) return;
      const first = Math.floor(offset / 4);
      const end = Math.ceil((offset + target.length) / 4);
      const firstGroup = Math.floor(first / group);
      const bytes = new Int8Array(end - first);
      const factors = new Float32Array(Math.ceil(end / group) - firstGroup);
      const decode = () => {
        const floats = new Float32Array(bytes.length);
        for (let i = 0; i < bytes.length; i++) {
          floats[i] = bytes[i] * factors[Math.floor((first + i) / group) - firstGroup];
        }
        const from = offset - 4 * first;
        target.set(new Uint8Array(floats.buffer, from, target.length));
      };
      const readings = [
        source.readInto(values + first, new Uint8Array(bytes.buffer)),
        source.readInto(scales + 4 * firstGroup, new Uint8Array(factors.buffer)),
      ];
      if (readings.some((reading) => reading instanceof Promise)) {
        return Promise.all(readings).then(decode);
      }
      decode();
    },
    // The file itself is closed by its owner.
    close() {},
  };
}
