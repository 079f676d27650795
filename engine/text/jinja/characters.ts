// Texts as Python sees them: code points, and its own idea of a blank.

/** Number of code points. */
export function lengthOf(text: string): number {
  let length = text.length;
  for (let i = 0; i + 1 < text.length; i++) {
    const isPair = (text.charCodeAt(i) & 0xfc00) === 0xd800 &&
      (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00;
    if (isPair) length--;
  }
  return length;
}

/** What Python counts as a blank: White_Space and the four separators of information. */
export const BLANKS = "\\p{White_Space}\\x1c-\\x1f";
