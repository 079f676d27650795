// WAV files: RIFF chunks with samples as they are (Microsoft's RIFF specification, 1991), also with sizes of 64 bits
// (RF64, EBU Tech 3306): 8-bit unsigned, 16, 24 and 32-bit integers, 32 and 64-bit floats, telephony's A-law and µ-law
// (ITU-T G.711), any number of channels, which become one by their mean. Compressed kinds are refused by number.

import { UnsupportedError } from "../../errors.ts";
import { type Broken, brokenAs } from "./broken.ts";
import { checkBytes } from "../../option_keys.ts";

/**
 * Sound of one channel.
 * @category Speech
 */
export interface Wave {
  /** Between -1 and 1. */
  readonly samples: Float32Array;
  /** Samples a second. */
  readonly rate: number;
}

type ReadSample = (view: DataView, at: number) => number;

/** What converts other kinds. */
export const CONVERT = "Convert it: ffmpeg -i FILE -ar 16000 -ac 1 FILE.wav";

/** Lengths from here on, of more than there is, stand where nobody knew them when the file began. */
const UNKNOWN = 0x7ffff000;
/** What stands in place of a length of 64 bits. */
const LONG = 0xffffffff;
const PCM = 1, FLOAT = 3, A_LAW = 6, MU_LAW = 7, EXTENSIBLE = 0xfffe;

const READERS: ReadonlyMap<string, ReadSample> = new Map<string, ReadSample>([
  [`${PCM} 8`, (view, at) => (view.getUint8(at) - 128) / 128],
  [`${PCM} 16`, (view, at) => view.getInt16(at, true) / 0x8000],
  [`${PCM} 24`, (view, at) => (view.getUint16(at, true) | view.getInt8(at + 2) << 16) / 0x800000],
  [`${PCM} 32`, (view, at) => view.getInt32(at, true) / 0x80000000],
  [`${FLOAT} 32`, (view, at) => view.getFloat32(at, true)],
  [`${FLOAT} 64`, (view, at) => view.getFloat64(at, true)],
  [`${A_LAW} 8`, (view, at) => fromALaw(view.getUint8(at) ^ 0x55) / 0x8000],
  [`${MU_LAW} 8`, (view, at) => fromMuLaw(~view.getUint8(at)) / 0x8000],
]);

function fromALaw(code: number): number {
  const segment = code >> 4 & 7, step = (code & 15) << 4;
  const value = segment === 0 ? step + 8 : (step + 0x108) << segment - 1;
  return code & 0x80 ? value : -value;
}

function fromMuLaw(code: number): number {
  const value = (((code & 15) << 3) + 0x84 << (code >> 4 & 7)) - 0x84;
  return code & 0x80 ? -value : value;
}

/**
 * Reads a WAV file.
 *
 * @param file For messages.
 * @throws {FormatError} If it is none, or is cut off.
 * @throws {UnsupportedError} If its samples are of another kind.
 *
 * @example
 * ```ts ignore
 * import { readWav, resample } from "@troodon/troodon";
 *
 * const { samples, rate } = readWav(await Deno.readFile("talk.wav"), "talk.wav");
 * const speech = resample(samples, { from: rate, to: 16000 });
 * console.log(speech.length / 16000, "seconds");
 * ```
 * @category Speech
 */
export function readWav(bytes: Uint8Array, file = "sound"): Wave {
  checkBytes(bytes, "a sound");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const chunks = chunksOf(view, file);
  const format = chunks.get("fmt "), data = chunks.get("data");
  if (!format || format.byteLength < 16) throw brokenSound("has no format chunk", { file });
  if (!data) throw brokenSound("has no data chunk", { file });
  const channels = format.getUint16(2, true), rate = format.getUint32(4, true);
  const bits = format.getUint16(14, true);
  let kind = format.getUint16(0, true);
  if (kind === EXTENSIBLE && format.byteLength >= 26) kind = format.getUint16(24, true);
  const read = READERS.get(`${kind} ${bits}`);
  if (!read) {
    throw new UnsupportedError(`samples of kind ${kind} with ${bits} bits are not read`, {
      file,
      remedy: CONVERT,
    });
  }
  if (channels === 0 || rate === 0) {
    throw brokenSound(`has ${channels} channels at ${rate} Hz`, { file });
  }
  const frameBytes = channels * bits / 8, stated = format.getUint16(12, true);
  if (stated !== 0 && stated !== frameBytes) {
    throw brokenSound(
      `states ${stated} bytes for samples of ${channels} channels with ${bits} bits`,
      { file, place: "format chunk" },
    );
  }
  const samples = new Float32Array(Math.floor(data.byteLength / frameBytes));
  for (let i = 0; i < samples.length; i++) {
    let sum = 0;
    for (let c = 0; c < channels; c++) sum += read(data, i * frameBytes + c * bits / 8);
    samples[i] = sum / channels;
  }
  return { samples, rate };
}

/** The error of a file that breaks the rules of its kind of sounds. */
export const brokenSound: Broken = brokenAs(
  "The sound is damaged or cut short: fetch it again, or save it anew as WAV",
);

function chunksOf(view: DataView, file: string): Map<string, DataView> {
  const isRiff = view.byteLength >= 12 && /^(RIFF|RF64)$/.test(tag(view, 0));
  if (!isRiff || tag(view, 8) !== "WAVE") throw brokenSound("is no WAV file", { file });
  const chunks = new Map<string, DataView>();
  for (let at = 12; at + 8 <= view.byteLength;) {
    const name = tag(view, at), stated = view.getUint32(at + 4, true);
    const rest = view.byteLength - at - 8, long = chunks.get("ds64");
    let length = stated;
    if (name === "data") {
      if (stated === LONG && long) length = Number(long.getBigUint64(8, true));
      // Who writes to a pipe does not know how much will come: some write none, others the most.
      else if (stated === 0 ? view.getUint32(4, true) === 0 : stated >= UNKNOWN) length = rest;
    }
    if (length > rest) {
      throw brokenSound(`is cut off: ${length} bytes of "${name}" begin at ${at + 8}`, {
        file,
      });
    }
    if (!chunks.has(name)) {
      chunks.set(name, new DataView(view.buffer, view.byteOffset + at + 8, length));
    }
    at += 8 + length + length % 2;
  }
  return chunks;
}

function tag(view: DataView, at: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((i) => view.getUint8(at + i)));
}
