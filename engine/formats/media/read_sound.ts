// Reads sounds of the kinds that people have, told by their first bytes: WAV by code of our own, MP3 by libmpg123 built
// for WebAssembly. What else there is, is refused by name, with the command that converts it.

import { FormatError, ResourceError, SourceError, UnsupportedError } from "../../errors.ts";
import { importNpm } from "../../npm_packages.ts";
import { checkBytes, checkOptionKeys, type OptionKeys } from "../../option_keys.ts";
import { refuseMisfetched } from "../misfetched.ts";
import { brokenSound, CONVERT, readWav, type Wave } from "./wav.ts";

/**
 * Options of {@linkcode readSound}.
 * @category Speech
 */
export interface ReadSoundOptions {
  /** For messages. */
  readonly file?: string | undefined;
  /** Longest sound in seconds, refused before more memory is taken. Default 86400, a day. */
  readonly maxSeconds?: number | undefined;
}

/** What is known and not read, by its beginning as Latin-1. */
const NOT_READ: Readonly<Record<string, RegExp>> = {
  FLAC: /^(ID3[^]*)?fLaC/,
  "Ogg (Vorbis, Opus)": /^OggS/,
  "M4A, MP4 or MOV": /^[^]{4}ftyp/,
  // deno-lint-ignore no-control-regex -- its first byte is one
  "WebM or Matroska": /^\x1a\x45\xdf\xa3/,
  AIFF: /^FORM[^]{4}AIF[FC]/,
  "AU": /^\.snd/,
  AMR: /^#!AMR/,
  WMA: /^\x30\x26\xb2\x75/,
  AAC: /^\xff[\xf0\xf1\xf8\xf9]/,
};

/** Of MPEG audio: a tag, or the first 11 bits of a frame that names a layer. */
const MP3 = /^(ID3|\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff])/;

/** Bytes that are decoded at once. */
const PIECE = 1 << 16;
const DAY = 86_400;

const KEYS: OptionKeys<ReadSoundOptions> = { file: true, maxSeconds: true };

/**
 * Reads a WAV or MP3 file; several channels become one by their mean.
 *
 * For MP3 Deno fetches a package when the first one is read (`mpg123-decoder`: libmpg123 in WebAssembly); after that no
 * network is needed. An MP3 file does not say how long it is, so that one that was cut off is a shorter sound.
 *
 * @throws {FormatError} If it is no sound, damaged or cut off.
 * @throws {UnsupportedError} If it is of another kind; the message has the command that converts it.
 * @throws {ResourceError} If it is longer than `maxSeconds`.
 * @throws {RangeError} If `maxSeconds` is no number of seconds, or an option is not known.
 * @throws {SourceError} If a package has to be fetched and cannot be.
 *
 * @example
 * ```ts ignore
 * import { readSound } from "@troodon/troodon";
 *
 * const { samples, rate } = await readSound(await Deno.readFile("talk.mp3"), { file: "talk.mp3" });
 * console.log(samples.length / rate, "seconds");
 * ```
 * @category Speech
 */
export async function readSound(
  bytes: Uint8Array,
  options: ReadSoundOptions = {},
): Promise<Wave> {
  checkOptionKeys(options, { of: "readSound()", known: KEYS });
  checkBytes(bytes, "a sound");
  const { file = "sound", maxSeconds = DAY } = options;
  if (!(maxSeconds >= 0)) {
    throw new RangeError(`Cannot use maxSeconds ${maxSeconds}: it is a number of seconds`);
  }
  if (bytes.length === 0) {
    throw new FormatError("is empty", { file, remedy: "Give another file, or fetch it again" });
  }
  const start = Array.from(bytes.subarray(0, 4096), (byte) => String.fromCharCode(byte)).join("");
  if (/^(RIFF|RF64)/.test(start)) {
    const wave = readWav(bytes, file);
    if (wave.samples.length > maxSeconds * wave.rate) throw tooLong(file, maxSeconds);
    return wave;
  }
  const known = Object.entries(NOT_READ).find(([, pattern]) => pattern.test(start));
  if (known) {
    throw new UnsupportedError(`${known[0]} sounds are not read`, {
      ...{ file, remedy: CONVERT },
    });
  }
  if (MP3.test(start)) return await decodeMp3(bytes, { file, maxSeconds });
  refuseMisfetched(start, { file, kind: "sound" });
  const shown = bytes.subarray(0, 8).toHex().replace(/..(?=.)/g, "$& ");
  throw new FormatError(`is no WAV or MP3 file: it begins with ${shown}`, {
    file,
    remedy: CONVERT,
  });
}

function tooLong(file: string, seconds: number): ResourceError {
  return new ResourceError(`is longer than ${seconds} s, the most that is read`, {
    ...{ file, remedy: "Cut it, or give a larger maxSeconds" },
  });
}

/** What of `mpg123-decoder` is used. */
interface Mp3Package {
  readonly MPEGDecoder: new () => Mp3Decoder;
}

interface Mp3Decoder {
  readonly ready: Promise<void>;
  decode(bytes: Uint8Array): {
    readonly channelData: readonly Float32Array[];
    readonly samplesDecoded: number;
    readonly sampleRate: number;
  };
  free(): void;
}

async function decodeMp3(
  bytes: Uint8Array,
  { file, maxSeconds }: { readonly file: string; readonly maxSeconds: number },
): Promise<Wave> {
  const { MPEGDecoder } = await loadMp3(file);
  const decoder = new MPEGDecoder();
  await decoder.ready;
  const pieces: Float32Array[] = [];
  let length = 0, rate = 0;
  try {
    for (let at = 0; at < bytes.length; at += PIECE) {
      const piece = bytes.subarray(at, at + PIECE);
      const { channelData, samplesDecoded, sampleRate } = decodePiece(decoder, piece, file);
      if (samplesDecoded === 0) continue;
      if (rate !== 0 && rate !== sampleRate) {
        throw brokenSound(`changes its rate from ${rate} to ${sampleRate} Hz`, { file });
      }
      rate = sampleRate;
      length += samplesDecoded;
      if (length > maxSeconds * rate) throw tooLong(file, maxSeconds);
      pieces.push(mean(channelData, samplesDecoded));
    }
  } finally {
    decoder.free();
  }
  if (length === 0) throw brokenSound("has no frame that can be decoded", { file });
  const samples = new Float32Array(length);
  let at = 0;
  for (const piece of pieces) {
    samples.set(piece, at);
    at += piece.length;
  }
  return { samples, rate };
}

/** The package prints what is wrong and tries on, for ever where that stays so: the first complaint ends it. */
function decodePiece(decoder: Mp3Decoder, piece: Uint8Array, file: string) {
  const { error } = console;
  console.error = (complaint: string) => {
    throw brokenSound(`is damaged: ${complaint}`, { file });
  };
  try {
    return decoder.decode(piece);
  } finally {
    console.error = error;
  }
}

function mean(channels: readonly Float32Array[], length: number): Float32Array {
  const sum = new Float32Array(length);
  for (const channel of channels) {
    for (let i = 0; i < length; i++) sum[i]! += channel[i]! / channels.length;
  }
  return sum;
}

async function loadMp3(file: string): Promise<Mp3Package> {
  try {
    return await importNpm<Mp3Package>("mpg123-decoder");
  } catch (cause) {
    throw new SourceError(`the decoder of MP3 could not be loaded: ${cause}`, {
      ...{ file, cause },
      remedy: "Read one such file where there is a network, or convert this one to WAV",
    });
  }
}
