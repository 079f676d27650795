// Scanners of what stands between the values of JSON, with the white space that is allowed there: none, one blank, or a
// line end and what a line is indented by, so that an answer cannot go on in blanks for ever.

import type { Automaton, Spelling } from "./automaton.ts";
import { charactersOf } from "./code_points.ts";
import { createDfa } from "./dfa.ts";
import type { Leaf } from "./expression.ts";
import { ANY, choice, EMPTY, oneOf, type Regular, repeat, sequence, word } from "./nfa.ts";
import { spell } from "./spelling.ts";

/** Deepest indent. */
const INDENT = 64;

const character = (text: string): Regular => oneOf(charactersOf(text));
const SPACE: Regular = choice(
  EMPTY,
  character(" "),
  sequence(
    repeat(character("\r"), [0, 1]),
    character("\n"),
    choice(repeat(character(" "), [0, INDENT]), repeat(character("\t"), [0, INDENT])),
  ),
);

/** A scanner of one language. */
export function scannerOf(regular: Regular, spelling: Spelling): Automaton {
  return spell(createDfa([{ regular }]), spelling);
}

/** A leaf whose scanner is made when it is first asked for: who constrains nothing does not wait for it. */
function leafOf(regular: Regular, spelling: Spelling): Leaf {
  let made: Automaton | undefined;
  return {
    kind: "leaf",
    get automaton() {
      return made ??= scannerOf(regular, spelling);
    },
  };
}

const mark = (...parts: readonly Regular[]): Leaf => leafOf(sequence(...parts), "raw");

/** White space alone. */
export const BLANK: Leaf = mark(SPACE);
/** `[` */
export const OPEN_ARRAY: Leaf = mark(word("["), SPACE);
/** `]` */
export const CLOSE_ARRAY: Leaf = mark(SPACE, word("]"));
/** `{` */
export const OPEN_OBJECT: Leaf = mark(word("{"), SPACE);
/** `}` */
export const CLOSE_OBJECT: Leaf = mark(SPACE, word("}"));
/** `]` and `}` where white space was read already. */
export const END_ARRAY: Leaf = mark(word("]"));
export const END_OBJECT: Leaf = mark(word("}"));
/** `,` */
export const COMMA: Leaf = mark(SPACE, word(","), SPACE);
/** `:` */
export const COLON: Leaf = mark(SPACE, word(":"), SPACE);
/** Any string. */
export const ANY_STRING: Leaf = leafOf(ANY, "json");
