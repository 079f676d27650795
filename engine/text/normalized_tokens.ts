// Added tokens with `normalized: true` (Hugging Face's added_vocabulary.rs): they are looked for after those
// of the text as written, in what the normalizer makes of the stretches between, and are normalized
// themselves; they decode as they were normalized. Where two become alike the control token wins, then the
// one of the lower id; the reference's choice changes from run to run.
//
// Texts of users stay apart here too (control_guard.ts). What is hidden cannot be told from where a token
// stands in normalized text, so every character is hidden that a last character of a found token can come
// from; and since stand-ins pass the normalizer in place of what they hide, that is normalized by itself.

import { createSpecialSplitter, type SpecialSplitter, type TokenManners } from "./special_split.ts";

/** What looking for tokens in normalized text needs. */
export interface NormalizedTokensOptions {
  /** Control tokens as the file writes them. */
  readonly control: ReadonlyMap<string, number>;
  /** Words added by hand as the file writes them. */
  readonly extra: ReadonlyMap<string, number>;
  readonly manners?: ReadonlyMap<number, TokenManners> | undefined;
  normalize(text: string): string;
  /** Encodes normalized text that holds no whole tokens. */
  encodeNormal(text: string, isFirst: boolean, out: number[]): void;
}

/** How a stretch is encoded. */
export interface StretchOptions {
  /** Whether control tokens are found. */
  readonly special: boolean;
  /** Whether the text begins here. */
  readonly isFirst: boolean;
  readonly restore: ((text: string) => string) | undefined;
}

/** Tokens of normalized text. */
export interface NormalizedTokens {
  /** Encodes text as written. */
  encode(text: string, options: StretchOptions, out: number[]): void;
  /** Places of a text to hide so that it holds no control token. */
  findControl(text: string): number[];
}

/**
 * Whether what a normalizer makes of a text begins with what it makes of the first character. Where that is dropped,
 * the reference takes nothing for the beginning of the text.
 */
export function keepsStart(text: string, normalize: (text: string) => string): boolean {
  const first = String.fromCodePoint(text.codePointAt(0) ?? 0);
  return normalize(first) !== "" || normalize(text) !== normalize(text.slice(first.length));
}

/** Makes the encoder of stretches. */
export function createNormalizedTokens(options: NormalizedTokensOptions): NormalizedTokens {
  const { manners, normalize, encodeNormal } = options;
  const textOf = new Map<number, string>();
  const splitterOf = (...lists: ReadonlyMap<string, number>[]): SpecialSplitter => {
    const tokens = new Map<string, number>();
    for (const [text, id] of lists.flatMap((list) => [...list])) {
      const normal = normalize(text);
      textOf.set(id, normal);
      if (!tokens.has(normal)) tokens.set(normal, id);
    }
    return createSpecialSplitter(tokens, manners);
  };
  const splitControl = splitterOf(options.control);
  const splitPlain = splitterOf(options.extra);
  const splitAll = splitterOf(options.control, options.extra);

  /** What becomes of a character that does not begin its text. */
  const inside = (char: string) => normalize("a" + char).slice(normalize("a").length);

  function showHidden(text: string, restore: ((text: string) => string) | undefined): string {
    if (restore === undefined || restore(text) === text) return text;
    return Array.from(text, (char) => {
      const shown = restore(char);
      return shown === char ? char : inside(shown);
    }).join("");
  }

  return {
    encode(text, { special, isFirst, restore }, out) {
      const isStart = isFirst && keepsStart(text, normalize);
      (special ? splitAll : splitPlain)(
        normalize(text),
        (part, start) => encodeNormal(showHidden(part, restore), isStart && start === 0, out),
        (id) => out.push(id),
      );
    },
    findControl(text) {
      const last = new Set<string>();
      splitControl(
        normalize(text),
        () => {},
        (id) => last.add(Array.from(textOf.get(id)!).at(-1)!),
      );
      if (last.size === 0) return [];
      const places: number[] = [];
      for (let at = 0; at < text.length; at++) {
        const char = String.fromCodePoint(text.codePointAt(at)!);
        if (Array.from(inside(char)).some((part) => last.has(part))) places.push(at);
        at += char.length - 1;
      }
      // A token that the normalizer put together of other characters.
      return places.length > 0 ? places : Array.from({ length: text.length }, (_, at) => at);
    },
  };
}
