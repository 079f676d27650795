// A cursor over the tokens of a template, shared by the two halves of the parser.

import { fail } from "./failure.ts";
import type { Token } from "./lexer.ts";

/** Reads tokens one after the other. */
export interface TokenReader {
  /** The token at the cursor, or one behind it. */
  peek(ahead?: number): Token;
  /** Moves on by one and gives the token passed. */
  next(): Token;
  /** Whether the cursor is at an operator or name with this text. */
  isAt(type: "operator" | "name", text: string): boolean;
  /** Passes an operator or name if it is there. */
  accept(type: "operator" | "name", text: string): boolean;
  /** Passes a token that must be there. */
  expect(type: Token["type"], text?: string): Token;
  /** Runs a rule of the grammar with a limit on how deep rules nest. */
  nested<T>(rule: () => T): T;
}

const MAX_NESTING = 150;

function describe({ type, text }: Token): string {
  if (type === "end") return "end of template";
  if (type === "statementEnd" || type === "outputEnd") return "end of tag";
  return type === "text" ? "text" : `'${text.slice(0, 40)}'`;
}

/** Starts at the first token. */
export function createTokenReader(tokens: readonly Token[]): TokenReader {
  let at = 0;
  let depth = 0;
  const last = tokens.length - 1;
  const peek = (ahead = 0) => tokens[Math.min(at + ahead, last)];
  const next = () => tokens[Math.min(at++, last)];
  const isAt = (type: string, text: string) => peek().type === type && peek().text === text;

  return {
    peek,
    next,
    isAt,
    accept: (type, text) => isAt(type, text) && (at++, true),
    expect(type, text) {
      const token = peek();
      if (token.type === type && (text === undefined || token.text === text)) return next();
      if (token.type === "end") {
        fail("Unexpected end of template", token.line);
      }
      const wanted = text === undefined ? type : `'${text}'`;
      return fail(`expected ${wanted}, found ${describe(token)}`, token.line);
    },
    nested(rule) {
      if (++depth > MAX_NESTING) fail(`the template nests deeper than ${MAX_NESTING}`, peek().line);
      const result = rule();
      depth--;
      return result;
    },
  };
}
