// Text of every kind for tokenizers, from a seed: prose, strings that were odd enough to be kept, words of many
// scripts that no vocabulary has seen, code, numbers, blanks and emoji. Nothing repeats often enough that a
// cache of words could do the work.

import { readFixture } from "./fixtures.ts";
import { random } from "./weights.ts";

/** First and last letter of scripts. */
const SCRIPTS = [
  ...["az", "AZ", "àÿ", "αω", "ая", "את", "ضي", "कह", "กฮ", "ぁん", "ァン", "가힣", "一龠"],
].map((ends) => [...ends].map((letter) => letter.codePointAt(0)!) as [number, number]);

const EMOJI = ["🦖", "👩‍🚀", "🏳️‍🌈", "👍🏽", "🇯🇵", "❤️", "😀"];
const BLANKS = [" ", "  ", "\n", "\n\n\n", "\t", "        ", "\r\n", "\u00a0", "\u3000"];
const MARKS = ["; ", ", ", ". ", "!? ", "... ", "(", ")", "[]", '"', "'", "'s ", "/", "-", "→"];

/** Text of about that many UTF-8 bytes, and no fewer. */
export function mixedText(bytes: number, seed: number): string {
  const next = random(seed);
  const below = (count: number) => Math.floor(next() * count);
  const pick = (from: readonly string[]) => from[below(from.length)]!;
  const word = (): string => {
    const [first, last] = SCRIPTS[below(SCRIPTS.length)]!;
    const letters = Array.from({ length: 1 + below(9) }, () => first + below(last - first + 1));
    return String.fromCodePoint(...letters);
  };
  const prose = readFixture("text/opticks-book3.txt");
  const odd = JSON.parse(readFixture("golden/tokenizer-strings.json")).strings as string[];
  const makers: readonly (() => string)[] = [
    () => {
      const start = below(prose.length - 200);
      return prose.slice(start, start + 20 + below(180));
    },
    () => pick(odd),
    () => Array.from({ length: 1 + below(12) }, word).join(" "),
    () =>
      `function ${word()}_${below(999)}(${word()}) {\n\t\treturn ${next()} * x["${word()}"];\n}\n`,
    () => String(below(2 ** 31)),
    () => pick(EMOJI),
    () => pick(BLANKS).repeat(1 + below(6)),
    () => pick(MARKS),
  ];
  const parts: string[] = [];
  const encoder = new TextEncoder();
  for (let size = 0; size < bytes;) {
    const part = makers[below(makers.length)]!();
    parts.push(part);
    size += encoder.encode(part).length;
  }
  return parts.join("");
}
