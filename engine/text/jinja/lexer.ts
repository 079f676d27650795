// A template as a list of tokens. Text between tags is trimmed here, as Jinja's lexer does it with
// `trim_blocks` and `lstrip_blocks` on: the line end behind a statement or comment goes, blanks before one
// at the beginning of a line go, `-` takes all blanks and `+` none. Line ends become "\n", and one at
// the very end of the template is dropped. Source: Jinja 3.1's lexer.py and its documentation.

import { fail } from "./failure.ts";

/** A piece of a template. `text` is the text itself, `data` the decoded value of a literal. */
export interface Token {
  readonly type:
    | "text"
    | "outputBegin"
    | "outputEnd"
    | "statementBegin"
    | "statementEnd"
    | "name"
    | "string"
    | "integer"
    | "float"
    | "operator"
    | "end";
  readonly text: string;
  readonly line: number;
}

const OPENING = /\{\{|\{%|\{#/g;
const RAW = /\{%[-+]?\s*raw\s*(?:-%\}\s*|%\})/y;
const END_RAW = /\{%([-+]?)\s*endraw\s*(?:\+%\}|-%\}\s*|%\}\n?)/g;
const INSIDE =
  /\s+|(?<float>\d[\d_]*(?:\.\d[\d_]*(?:[eE][+-]?\d+)?|[eE][+-]?\d+))|(?<integer>0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|\d[\d_]*)|(?<name>[\p{L}_][\p{L}\p{M}\p{Nd}_]*)|(?<string>'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*")|(?<operator>\/\/|\*\*|==|!=|>=|<=|[-+\/*%~[\](){}>=<.:|,;])/uy;
const INSIDE_TYPES = ["name", "operator", "string", "integer", "float"] as const;
const CLOSES: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };

/** Blanks before a tag at the beginning of a line. */
function stripLine(text: string, startsLine: boolean): string {
  const lineStart = text.lastIndexOf("\n") + 1;
  if (lineStart === 0 && !startsLine) return text;
  return /^[^\S\n]*$/.test(text.slice(lineStart)) ? text.slice(0, lineStart) : text;
}

/** Cuts a template into tokens; the last one is of type `end`. */
export function tokenize(template: string): Token[] {
  const source = template.replace(/\r\n?/g, "\n").replace(/\n$/, "");
  const tokens: Token[] = [];
  let at = 0;
  let line = 1;
  // Whether text beginning at `at` begins a line, as far as stripping is concerned.
  let startsLine = true;

  function advance(to: number): void {
    for (let i = at; i < to; i++) if (source.charCodeAt(i) === 10) line++;
    startsLine = to > 0 && source[to - 1] === "\n";
    at = to;
  }

  function pushText(text: string): void {
    if (text !== "") tokens.push({ type: "text", text, line });
  }

  /** Text before a tag at `end`, trimmed by the tag's sign. */
  function textBefore(end: number, sign: string, isOutput: boolean): string {
    const text = source.slice(at, end);
    if (sign === "-") return text.trimEnd();
    return sign === "+" || isOutput ? text : stripLine(text, startsLine);
  }

  function readRaw(opening: number, sign: string, contentStart: number): void {
    END_RAW.lastIndex = contentStart;
    const closing = END_RAW.exec(source);
    if (closing === null) {
      return fail("Unexpected end of template: the raw block is not closed", line);
    }
    pushText(textBefore(opening, sign, false));
    advance(contentStart);
    pushText(textBefore(closing.index, closing[1], false));
    advance(closing.index + closing[0].length);
  }

  function readComment(opening: number): void {
    const closing = source.indexOf("#}", opening + 2);
    if (closing < 0) return fail("Unexpected end of template: the comment is not closed", line);
    const sign = source[opening + 2];
    pushText(textBefore(opening, sign === "-" || sign === "+" ? sign : "", false));
    advance(closing);
    finishTag(closing + 2, source[closing - 1], true);
  }

  /** Moves behind a tag that ends at `end`, with what its closing sign takes along. */
  function finishTag(end: number, sign: string, trimsLine: boolean): void {
    let next = end;
    if (sign === "-") { while (next < source.length && /\s/.test(source[next])) next++; }
    else if (sign !== "+" && trimsLine && source[next] === "\n") next++;
    advance(next);
    // What was not taken along does not begin a line: the tag stands before it.
    if (next === end) startsLine = false;
  }

  function readTag(opening: number, isOutput: boolean, sign: string): void {
    pushText(textBefore(opening, sign, isOutput));
    advance(opening + 2 + sign.length);
    tokens.push({ type: isOutput ? "outputBegin" : "statementBegin", text: "", line });
    const open: string[] = [];
    const closing = isOutput ? "}}" : "%}";
    while (true) {
      if (open.length === 0) {
        // Only statements may end with "+": behind a value it is an operator.
        const mark = source[at] === "-" || (source[at] === "+" && !isOutput) ? source[at] : "";
        if (source.startsWith(mark + closing, at)) {
          tokens.push({ type: isOutput ? "outputEnd" : "statementEnd", text: "", line });
          finishTag(at + mark.length + 2, mark, !isOutput);
          return;
        }
      }
      INSIDE.lastIndex = at;
      const match = INSIDE.exec(source);
      if (match === null) {
        return at >= source.length
          ? fail("Unexpected end of template: a tag is not closed", line)
          : fail(`unexpected character ${JSON.stringify(source[at])}`, line);
      }
      const type = INSIDE_TYPES.find((type) => match.groups![type] !== undefined);
      const text = type && match.groups![type];
      if (type === "operator") {
        if ("([{".includes(text!)) open.push(text!);
        else if (CLOSES[text!] !== undefined && open.pop() !== CLOSES[text!]) {
          fail(`unexpected '${text}'`, line);
        }
      }
      if (type !== undefined) tokens.push({ type, text: text!, line });
      advance(at + match[0].length);
    }
  }

  while (at < source.length) {
    OPENING.lastIndex = at;
    const match = OPENING.exec(source);
    if (match === null) {
      pushText(source.slice(at));
      advance(source.length);
      break;
    }
    const opening = match.index;
    const sign = /[-+]/.test(source[opening + 2] ?? "") ? source[opening + 2] : "";
    RAW.lastIndex = opening;
    const raw = RAW.exec(source);
    if (raw !== null) readRaw(opening, sign, opening + raw[0].length);
    else if (match[0] === "{#") readComment(opening);
    else readTag(opening, match[0] === "{{", sign);
  }
  tokens.push({ type: "end", text: "", line });
  return tokens;
}

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};
const ESCAPE = /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{1,3})|([\s\S]))/g;

/** The value of a literal text, with Python's escapes. */
export function unquote(literal: string, line: number): string {
  return literal.slice(1, -1).replace(ESCAPE, (whole, x, u, long, octal, simple) => {
    if (simple !== undefined) return SIMPLE_ESCAPES[simple] ?? whole;
    const code = octal === undefined ? parseInt(x ?? u ?? long, 16) : parseInt(octal, 8);
    return code <= 0x10ffff ? String.fromCodePoint(code) : fail(`${whole} is no character`, line);
  });
}
