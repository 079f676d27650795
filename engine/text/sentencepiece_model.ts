// SentencePiece's `.model` files: the message ModelProto of sentencepiece_model.proto, of which only what
// encoding needs is kept. Training data, self tests and the denormalizer are skipped.

import { FormatError } from "../errors.ts";
import { floatOf, int32Of, type ProtoField, readMessage } from "./protobuf.ts";
import { TOKEN_KIND } from "./vocabulary/vocabulary.ts";

/** What a model file says. */
export interface SentencePieceModel {
  readonly texts: readonly string[];
  readonly scores: Float32Array;
  readonly kinds: Uint8Array;
  /** `unigram`, `bpe`, `word` or `char`. */
  readonly algorithm: string;
  /** -1 where there is none. */
  readonly unkId: number;
  readonly bosId: number;
  readonly eosId: number;
  readonly padId: number;
  readonly byteFallback: boolean;
  /** Whether the mark of a blank goes behind a word instead of before it. */
  readonly blankIsSuffix: boolean;
  readonly addDummyPrefix: boolean;
  readonly removeExtraBlanks: boolean;
  readonly escapeBlanks: boolean;
  /** Precompiled character map; empty for none. */
  readonly charsmap: Uint8Array;
}

const ALGORITHMS = ["", "unigram", "bpe", "word", "char"];
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Settings = Mutable<Omit<SentencePieceModel, "texts" | "scores" | "kinds">>;

/** What the proto file gives for absent fields. */
const DEFAULTS: Settings = {
  algorithm: "unigram",
  unkId: 0,
  bosId: 1,
  eosId: 2,
  padId: -1,
  byteFallback: false,
  blankIsSuffix: false,
  addDummyPrefix: true,
  removeExtraBlanks: true,
  escapeBlanks: true,
  charsmap: new Uint8Array(0),
};

type Read = (settings: Settings, field: ProtoField) => void;

const TRAINER_FIELDS: ReadonlyMap<number, Read> = new Map<number, Read>([
  [3, (s, field) => s.algorithm = ALGORITHMS[int32Of(field)] ?? `type ${field.value}`],
  [24, (s, { value }) => s.blankIsSuffix = value !== 0n],
  [35, (s, { value }) => s.byteFallback = value !== 0n],
  [40, (s, field) => s.unkId = int32Of(field)],
  [41, (s, field) => s.bosId = int32Of(field)],
  [42, (s, field) => s.eosId = int32Of(field)],
  [43, (s, field) => s.padId = int32Of(field)],
]);

const NORMALIZER_FIELDS: ReadonlyMap<number, Read> = new Map<number, Read>([
  [2, (s, { bytes }) => s.charsmap = bytes],
  [3, (s, { value }) => s.addDummyPrefix = value !== 0n],
  [4, (s, { value }) => s.removeExtraBlanks = value !== 0n],
  [5, (s, { value }) => s.escapeBlanks = value !== 0n],
]);

/**
 * Reads a model file.
 *
 * @throws {FormatError} If it is not of this format, or a piece has no text, no score or no known type.
 */
export function readSentencePieceModel(bytes: Uint8Array, file: string): SentencePieceModel {
  const settings: Settings = { ...DEFAULTS };
  const texts: string[] = [];
  const scores: number[] = [];
  const kinds: number[] = [];
  for (const field of readMessage(bytes, { file, place: "ModelProto" })) {
    if (field.number === 1) {
      const piece = readPiece(field.bytes, file, texts.length);
      texts.push(piece.text);
      scores.push(piece.score);
      kinds.push(piece.kind);
    } else if (field.number === 2) {
      readFields(field.bytes, {
        at: { file, place: "trainer_spec" },
        fields: TRAINER_FIELDS,
        settings,
      });
    } else if (field.number === 3) {
      readFields(field.bytes, {
        at: { file, place: "normalizer_spec" },
        fields: NORMALIZER_FIELDS,
        settings,
      });
    }
  }
  if (texts.length === 0) {
    throw new FormatError("holds no pieces: no model of SentencePiece", {
      file,
      remedy: "Fetch the file again",
    });
  }
  return { ...settings, texts, scores: Float32Array.from(scores), kinds: Uint8Array.from(kinds) };
}

function readFields(
  message: Uint8Array,
  { at, fields, settings }: {
    readonly at: { file: string; place: string };
    readonly fields: ReadonlyMap<number, Read>;
    readonly settings: Settings;
  },
): void {
  for (const field of readMessage(message, at)) fields.get(field.number)?.(settings, field);
}

function readPiece(message: Uint8Array, file: string, id: number) {
  const at = { file, place: `piece ${id}` };
  let text: string | undefined;
  let score = 0;
  let kind: number = TOKEN_KIND.normal;
  for (const field of readMessage(message, at)) {
    if (field.number === 1) text = decodeText(field.bytes, at);
    else if (field.number === 2) score = floatOf(field);
    else if (field.number === 3) kind = int32Of(field);
  }
  if (text === undefined || text === "") throw new FormatError("has no text", at);
  if (!Number.isFinite(score)) throw new FormatError("its score is no number", at);
  if (!(kind >= 1 && kind <= 6)) throw new FormatError(`its type is ${kind}: 1 to 6 are known`, at);
  return { text, score, kind };
}

function decodeText(bytes: Uint8Array, at: { file: string; place: string }): string {
  try {
    return UTF8.decode(bytes);
  } catch (cause) {
    throw new FormatError("its text is not UTF-8", { ...at, cause });
  }
}
