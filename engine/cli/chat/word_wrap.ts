// Breaks a streamed text at blanks, so that a word does not stand half at the end of one row and half on the next.
// A word is held back until it has ended; what is wider than the screen is left to the terminal.

import { widthOf } from "./line_editor.ts";

/** Wraps pieces of one text. */
export interface WordWrap {
  /** What may be shown now. */
  push(text: string): string;
  /** The rest. */
  end(): string;
}

/** A wrapper for a screen so many columns wide; the text begins in column 0. */
export function createWordWrap(columns: number): WordWrap {
  let column = 0;
  let blanks = "", word = "";
  const widthOfAll = (text: string): number =>
    [...text].reduce((sum, character) => sum + widthOf(character), 0);

  function place(): string {
    const width = widthOfAll(word);
    const space = widthOfAll(blanks);
    const breaks = column > 0 && blanks !== "" && column + space + width > columns;
    const text = breaks ? `\n${word}` : blanks + word;
    column = breaks ? width : column + space + width;
    // The terminal goes on in its next row by itself.
    if (column > columns) column %= columns;
    blanks = word = "";
    return text;
  }

  return {
    push(text: string): string {
      let out = "";
      for (const piece of text.match(/\n|[^\S\n]+|\S+/g) ?? []) {
        if (piece === "\n") {
          out += `${place()}\n`;
          column = 0;
        } else if (/\s/.test(piece)) {
          if (word !== "") out += place();
          blanks += piece;
        } else {
          word += piece;
          // A language without blanks is not held back.
          if (widthOfAll(word) >= columns) out += place();
        }
      }
      return out;
    },
    end: place,
  };
}
