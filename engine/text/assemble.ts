// Puts a tokenizer together from a vocabulary and a function that encodes ordinary text. What every
// tokenizer has in common lives here: whole tokens are found first, BOS and EOS go around, decoding
// is the joined bytes of the ids, and ids are checked before they are trusted.

import { joinBytes } from "../byte_source.ts";
import { createNormalizedTokens } from "./normalized_tokens.ts";
import { createSpecialSplitter, type SpecialSplitter, type TokenManners } from "./special_split.ts";
import type {
  DecodeOptions,
  EncodeOptions,
  Tokenizer,
  TokenizerAlgorithm,
} from "./tokenizer_types.ts";
import { TOKEN_KIND, tokensOfKinds, type Vocabulary } from "./vocabulary/vocabulary.ts";
import { checkOptionKeys, type OptionKeys } from "../option_keys.ts";

/** What differs between tokenizers. */
export interface TokenizerParts {
  readonly vocabulary: Vocabulary;
  readonly algorithm: TokenizerAlgorithm;
  readonly bosId?: number | undefined;
  readonly eosId?: number | undefined;
  readonly unkId?: number | undefined;
  readonly padId?: number | undefined;
  readonly maskId?: number | undefined;
  readonly endOfGenerationIds: ReadonlySet<number>;
  /** Ids that go in front of every text by the model's own rule. */
  readonly prefix: readonly number[];
  /** Ids that go behind every text by the model's own rule. */
  readonly suffix: readonly number[];
  readonly leadingBlanks: number;
  readonly warnings: readonly string[];
  /** How whole tokens stand in their text; most have no manners. */
  readonly manners?: ReadonlyMap<number, TokenManners>;
  /** Makes texts alike that are one to the model, without a change of length, before whole tokens are looked for. */
  readonly unify?: ((text: string) => string) | undefined;
  /** Whole tokens that are looked for in normalized text; nothing where all stand in the text as written. */
  readonly normalized?: NormalizedParts | undefined;
  /** Encodes text that holds no whole tokens; `isFirst` says that the text begins here. */
  encodeStretch(text: string, isFirst: boolean, out: number[]): void;
  /** Bytes that an id stands for. */
  bytesOf(id: number): Uint8Array;
}

/** What is needed for tokens of normalized text. */
export interface NormalizedParts {
  readonly ids: ReadonlySet<number>;
  normalize(text: string): string;
  /** Encodes normalized text that holds no whole tokens. */
  encodeNormal(text: string, isFirst: boolean, out: number[]): void;
}

/** Bytes to text: a broken part becomes U+FFFD, a byte order mark stays. */
export function decodeUtf8(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

/** How many of `most` blanks `bytes` begins with. */
export function countLeadingBlanks(bytes: Uint8Array, most: number): number {
  let count = 0;
  while (count < most && bytes[count] === 0x20) count++;
  return count;
}

/** The roles that there are. */
function rolesOf(parts: TokenizerParts): Partial<Tokenizer> {
  const roles = ["bosId", "eosId", "unkId", "padId", "maskId"] as const;
  return Object.fromEntries(
    roles.filter((role) => parts[role] !== undefined).map((role) => [role, parts[role]]),
  );
}

/** Takes tokens of some ids out of a map; they are a map of their own then. */
function takeIds(tokens: Map<string, number>, ids: ReadonlySet<number>): Map<string, number> {
  const taken = new Map([...tokens].filter(([, id]) => ids.has(id)));
  for (const text of taken.keys()) tokens.delete(text);
  return taken;
}

const NO_OPTIONS = {};
const ENCODE_KEYS: OptionKeys<EncodeOptions> = { special: true, addSpecial: true, restore: true };
const DECODE_KEYS: OptionKeys<DecodeOptions> = { skipSpecial: true };

/** Builds the public object. */
export function assembleTokenizer(parts: TokenizerParts): Tokenizer {
  const { vocabulary, prefix, suffix, leadingBlanks, manners, unify = (text) => text } = parts;
  const { texts, kinds, ids } = vocabulary;
  // At once, which is 7 ms for Gemma's 6,249: while weights are loaded others work too, while a chat begins nobody does.
  const tokensOf = (...wanted: number[]) => {
    const tokens = tokensOfKinds(vocabulary, wanted);
    return parts.unify === undefined
      ? tokens
      : new Map(Array.from(tokens, ([text, id]) => [unify(text), id]));
  };
  const control = tokensOf(TOKEN_KIND.control, TOKEN_KIND.unknown);
  const extraWords = tokensOf(TOKEN_KIND.userDefined);
  const late = parts.normalized && createNormalizedTokens({
    control: takeIds(control, parts.normalized.ids),
    extra: takeIds(extraWords, parts.normalized.ids),
    manners,
    ...parts.normalized,
  });
  const splitPlain = createSpecialSplitter(extraWords, manners);
  // Thousands of control tokens are worth a trie only once somebody asks for them.
  let splitAll: SpecialSplitter | undefined;
  let splitControl: SpecialSplitter | undefined;

  function splitSpecial(): SpecialSplitter {
    return splitAll ??= createSpecialSplitter(new Map([...extraWords, ...control]), manners);
  }

  function check(id: number): void {
    if (!Number.isInteger(id) || id < 0 || id >= texts.length) {
      throw new RangeError(`Cannot decode token ${id}: ids are 0 to ${texts.length - 1}`);
    }
  }

  function isSpecial(id: number): boolean {
    check(id);
    return kinds[id] === TOKEN_KIND.control || kinds[id] === TOKEN_KIND.unknown;
  }

  function tokenBytes(id: number): Uint8Array {
    check(id);
    return parts.bytesOf(id);
  }

  function encode(written: string, options: EncodeOptions = NO_OPTIONS): number[] {
    if (options !== NO_OPTIONS) checkOptionKeys(options, { of: "encode()", known: ENCODE_KEYS });
    if (typeof written !== "string") throw new TypeError("Cannot encode what is no text");
    const text = unify(written);
    const { special = false, addSpecial = true, restore } = options;
    const out: number[] = addSpecial ? [...prefix] : [];
    (special ? splitSpecial() : splitPlain)(
      text,
      (stretch, start) => {
        const isFirst = start === 0;
        if (late !== undefined) late.encode(stretch, { special, isFirst, restore }, out);
        else parts.encodeStretch(restore === undefined ? stretch : restore(stretch), isFirst, out);
      },
      (token) => out.push(token),
    );
    if (addSpecial) out.push(...suffix);
    return out;
  }

  function decode(tokens: ArrayLike<number>, options: DecodeOptions = NO_OPTIONS): string {
    if (options !== NO_OPTIONS) checkOptionKeys(options, { of: "decode()", known: DECODE_KEYS });
    const ids = Array.from(tokens);
    const pieces = (options.skipSpecial ? ids.filter((id) => !isSpecial(id)) : ids).map(tokenBytes);
    if (pieces.length === 0) return "";
    pieces[0] = pieces[0].subarray(countLeadingBlanks(pieces[0], leadingBlanks));
    return decodeUtf8(joinBytes(pieces));
  }

  return {
    algorithm: parts.algorithm,
    vocabSize: texts.length,
    ...rolesOf(parts),
    endOfGenerationIds: parts.endOfGenerationIds,
    addBos: prefix.length > 0,
    addEos: suffix.length > 0,
    prefixIds: prefix,
    suffixIds: suffix,
    leadingBlanks,
    warnings: parts.warnings,
    encode,
    decode,
    readTexts: () => void texts.all(),
    tokenBytes,
    tokenText: (id) => (check(id), texts.get(id)!),
    isSpecial,
    idOf: (token) => ids.get(token),
    findSpecial(text) {
      const found: number[] = late?.findControl(text) ?? [];
      // By control tokens alone: a word of the vocabulary that overlaps one must not hide it here.
      splitControl ??= createSpecialSplitter(control, manners);
      splitControl(unify(text), () => {}, (_id, start) => found.push(start));
      return found;
    },
  };
}
