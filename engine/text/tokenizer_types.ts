// What a tokenizer is to the rest of the engine. Implementations: gguf_tokenizer.ts, tokenizer_json/tokenizer.ts.
//
// Decoding is a concatenation of the bytes a token stands for (`tokenBytes`), with one rule about the
// blanks in front of the first token (`leadingBlanks`). That is what lets stream_decoder.ts emit text
// token by token and still equal `decode` of the whole. Half characters become U+FFFD as the
// Encoding Standard says (one for each maximal broken part).
//
// Left out: padding and truncation to a length, and pairs of texts; the caller does these with ids.

/**
 * How a text is turned into ids.
 * @category Tokens and templates
 */
export interface EncodeOptions {
  /**
   * Whether the text of a control token becomes that token. False by default, because text that a
   * user wrote must never become a control token. Tokens that the model's author declared as plain
   * extra words are found in either case.
   */
  readonly special?: boolean;
  /** Whether BOS, EOS, [CLS] and the like are added by the model's own rule. True by default. */
  readonly addSpecial?: boolean;
  /** Changes text between whole tokens before it is encoded; how encodeChat keeps texts of users apart. */
  readonly restore?: (text: string) => string;
}

/**
 * How ids are turned into text.
 * @category Tokens and templates
 */
export interface DecodeOptions {
  /** Whether control tokens are left out of the text. False by default. */
  readonly skipSpecial?: boolean;
}

/**
 * How text becomes tokens: merges of pairs, the likeliest pieces (Viterbi), the longest piece of a word, whole words,
 * or the longest token at each place whatever the words.
 * @category Tokens and templates
 */
export type TokenizerAlgorithm =
  | "bpe"
  | "unigram"
  | "word_piece"
  | "word_level"
  | "maximum_matching";

/**
 * Marks for filling in, as far as a file names them.
 * @category Tokens and templates
 */
export interface InfillIds {
  /** In front of what stands before the hole. */
  readonly prefix?: number;
  /** In front of what stands behind it. */
  readonly suffix?: number;
  /** In front of what fills it. */
  readonly middle?: number;
  /** What stands where a file or a repository ends. */
  readonly ends: readonly number[];
}

/**
 * Text to ids and back. Immutable for its users; may keep a bounded cache of words inside.
 * @category Tokens and templates
 */
export interface Tokenizer {
  /** How text becomes tokens. */
  readonly algorithm: TokenizerAlgorithm;
  /** Number of ids: every id is in `0 … vocabSize - 1`. */
  readonly vocabSize: number;
  /** Beginning of a text; absent where the model names none. */
  readonly bosId?: number;
  /** End of a text; absent where the model names none. */
  readonly eosId?: number;
  /** What stands for text outside the vocabulary. */
  readonly unkId?: number;
  /** Filler of batches. */
  readonly padId?: number;
  /** What stands for a hidden word. */
  readonly maskId?: number;
  /** Every id at which generation ends: end of text, of turn, of message. */
  readonly endOfGenerationIds: ReadonlySet<number>;
  /** Marks for filling in that the model's file names; where it names none, the vocabulary may have some. */
  readonly infillIds?: InfillIds;
  /** Whether the model's own rule puts BOS (or [CLS]) in front. */
  readonly addBos: boolean;
  /** Whether the model's own rule puts EOS (or [SEP]) behind. */
  readonly addEos: boolean;
  /** What the model's own rule puts in front of every text; one id as a rule. */
  readonly prefixIds: readonly number[];
  /** What the model's own rule puts behind every text. */
  readonly suffixIds: readonly number[];
  /** How many blanks decoding drops from the front of the first token: 0, 1 or Infinity. */
  readonly leadingBlanks: number;
  /** What was assumed or found missing while building; one sentence each, to be shown once. */
  readonly warnings: readonly string[];
  /**
   * Text to ids.
   *
   * @throws {FormatError} If the vocabulary has no token for a part of the text and no unknown token.
   */
  encode(text: string, options?: EncodeOptions): number[];
  /**
   * Ids to text.
   *
   * @throws {RangeError} If an id is outside the vocabulary.
   */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string;
  /** Reads the texts of all tokens at once, for who will ask for every one: a fifth of the time. They are kept. */
  readTexts?(): void;
  /** The bytes that a token stands for; not to be changed by the caller. */
  tokenBytes(id: number): Uint8Array;
  /** The token as the vocabulary writes it (`Ġthe`, `▁the`, `##ing`, `<0x0A>`). */
  tokenText(id: number): string;
  /** Whether the id is a control token, which has no place in ordinary text. */
  isSpecial(id: number): boolean;
  /** The id of a token as the vocabulary writes it; the first one where two are alike. */
  idOf(token: string): number | undefined;
  /** Where texts of control tokens begin, as `encode` with `special` would find them. */
  findSpecial(text: string): number[];
}
