// A list of texts that need not exist before they are looked at: an array, or what a file holds
// (formats/string_table.ts).

/** Texts by place. */
export interface TextList {
  readonly length: number;
  /** A text; undefined where there is none. */
  get(index: number): string | undefined;
  /** All of them; they are kept then. */
  all(): readonly string[];
}

/** An array, which must not change afterwards, as a list. */
export function listOf(texts: readonly string[]): TextList {
  return { length: texts.length, get: (index) => texts[index], all: () => texts };
}
