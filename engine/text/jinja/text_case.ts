// Python's case: of letters, and of texts. The mappings are those of JavaScript's Unicode, which may be newer than a
// Python's; titlecase of the few letters that have one of their own beyond the four digraphs is left out.

const DIGRAPHS: Readonly<Record<string, string>> = {
  Ǆ: "ǅ",
  ǆ: "ǅ",
  Ǉ: "ǈ",
  ǉ: "ǈ",
  Ǌ: "ǋ",
  ǌ: "ǋ",
  Ǳ: "ǲ",
  ǳ: "ǲ",
};

/** A letter as a title begins with it: of several capitals only the first stays one. */
function titleLetter(char: string): string {
  if (/[\p{Lt}\u10d0-\u10ff]/u.test(char)) return char;
  const [first = "", ...rest] = Array.from(DIGRAPHS[char] ?? char.toUpperCase());
  return first + rest.join("").toLowerCase();
}

/** `str.title`. */
export function titleText(text: string): string {
  let isInside = false;
  return Array.from(text).map((char) => {
    const shown = isInside ? char.toLowerCase() : titleLetter(char);
    isInside = /\p{Cased}/u.test(char);
    return shown;
  }).join("");
}

/** `str.istitle`. */
export function isTitle(text: string): boolean {
  let isInside = false;
  let hasCase = false;
  for (const char of text) {
    const isBig = /[\p{Uppercase}\p{Lt}]/u.test(char);
    const isSmall = !isBig && /\p{Lowercase}/u.test(char);
    if (isBig ? isInside : isSmall && !isInside) return false;
    isInside = isBig || isSmall;
    hasCase ||= isInside;
  }
  return hasCase;
}

export function swapCase(text: string): string {
  return Array.from(text).map((char) =>
    /\p{Uppercase}/u.test(char)
      ? char.toLowerCase()
      : /\p{Lowercase}/u.test(char)
      ? char.toUpperCase()
      : char
  ).join("");
}

/** `str.capitalize`. */
export function capitalizeText(text: string): string {
  const [first = "", ...rest] = Array.from(text);
  return (first && titleLetter(first)) + rest.join("").toLowerCase();
}

/** `str.islower`: some letters have case, and none is a capital. */
export function isLowerText(text: string): boolean {
  return /\p{Lowercase}/u.test(text) && !/[\p{Uppercase}\p{Lt}]/u.test(text);
}

/** `str.isupper`. */
export function isUpperText(text: string): boolean {
  return /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
}

/** `str.casefold`, as far as JavaScript's case mappings give it. */
export function foldText(text: string): string {
  return text.toUpperCase().toLowerCase().replaceAll("ς", "σ");
}
