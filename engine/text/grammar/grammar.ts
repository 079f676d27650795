// A grammar as its users hold it, and how grammars are put together.

import type { Expression, Leaf } from "./expression.ts";
import { createDfa, type Part } from "./dfa.ts";
import { ALL } from "./code_points.ts";
import { withinStack } from "./nesting.ts";
import { ANY, oneOf, sequence, word } from "./nfa.ts";
import { parseWhole, quoted } from "./pattern.ts";
import { spell } from "./spelling.ts";
import { FormatError } from "../../errors.ts";

/**
 * What texts are allowed. Made by compileSchema, compileGbnf, compileRegex and what is below.
 * @category Text
 */
export interface Grammar {
  /**
   * What it is made of.
   *
   * @ignore Its parts are nobody's but this folder's.
   */
  readonly root: Expression;
}

/**
 * The texts that a regular expression of ECMAScript matches as a whole.
 *
 * @throws {FormatError} If it is none, or matches nothing. @throws {UnsupportedError} If it is more than a regular language,
 *   or too deep or long.
 */
export function compileRegex(source: string): Grammar {
  return withinStack("a regular expression", () => {
    const parts = parseWhole(source);
    if (createDfa(parts).isEmpty) {
      throw new FormatError(`no text matches ${quoted(source)}`);
    }
    return { root: leafOf(parts) };
  });
}

/** A text as it is. */
export function literal(text: string): Grammar {
  return { root: leafOf([{ regular: word(text) }]) };
}

/** One after the other. */
export function inOrder(...grammars: readonly Grammar[]): Grammar {
  return { root: { kind: "sequence", items: grammars.map(({ root }) => root) } };
}

/** One of several. */
export function oneOfGrammars(...grammars: readonly Grammar[]): Grammar {
  return { root: { kind: "choice", items: grammars.map(({ root }) => root) } };
}

/** Zero or more of one. */
export function repeated(
  { root }: Grammar,
  { min = 0, max = Infinity }: { readonly min?: number; readonly max?: number } = {},
): Grammar {
  return { root: { kind: "repeat", item: root, min, max } };
}

/**
 * Free text up to a trigger, the trigger included: what follows in an order begins behind the first one.
 *
 * @throws {RangeError} If the trigger is empty.
 */
export function until(trigger: string): Grammar {
  if (trigger === "") throw new RangeError("Cannot wait for an empty trigger");
  const ends: Part = { regular: sequence(ANY, word(trigger)) };
  const holdsBefore: Part = {
    regular: sequence(ANY, word(trigger), oneOf(ALL), ANY),
    isNegated: true,
  };
  return { root: leafOf([ends, holdsBefore]) };
}

function leafOf(parts: readonly Part[]): Leaf {
  return { kind: "leaf", automaton: spell(createDfa(parts), "raw") };
}
