// Regular expressions of tokenizer.json, written for Oniguruma (Ruby's syntax), as JavaScript ones, with
// the `v` flag where they have set intersections or nested sets, which it knows too. What differs is rewritten:
//   \s \w \d \h     Unicode's meaning, in and out of sets         [[:alpha:]]    Unicode properties
//   X?+ X*+ X++     atomic: (?=(?<a>X+))\k<a>; so is (?>X)        (?i) to the end of its group
//   ^ $ \A \z .     lines end at \n only                          \p{Han}        also scripts by name
// Left out, and refused by name: backreferences, \G, \K, \X, conditionals, (?x), absent operators.

const WORD = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
const SETS: Readonly<Record<string, string>> = {
  s: "\\p{White_Space}",
  S: "\\P{White_Space}",
  d: "\\p{Nd}",
  D: "\\P{Nd}",
  w: `[${WORD}]`,
  W: `[^${WORD}]`,
  h: "[0-9A-Fa-f]",
  H: "[^0-9A-Fa-f]",
};
const ANCHORS: Readonly<Record<string, string>> = {
  A: "(?<![\\s\\S])",
  z: "(?![\\s\\S])",
  Z: "(?=\\n?(?![\\s\\S]))",
  b: `(?:(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}]))`,
  B: `(?:(?<=[${WORD}])(?=[${WORD}])|(?<![${WORD}])(?![${WORD}]))`,
  R: "(?:\\r\\n|[\\n\\v\\f\\r\\u0085\\u2028\\u2029])",
};
const POSIX: Readonly<Record<string, string>> = {
  alpha: "\\p{Alphabetic}",
  digit: "\\p{Nd}",
  alnum: "[\\p{Alphabetic}\\p{Nd}]",
  space: "\\p{White_Space}",
  upper: "\\p{Uppercase}",
  lower: "\\p{Lowercase}",
  punct: "[\\p{P}\\p{S}]",
  cntrl: "\\p{Cc}",
  word: `[${WORD}]`,
  xdigit: "[0-9A-Fa-f]",
};
/** Characters that must be escaped, in sets; more than the `v` flag asks for does no harm there. Outside of them it does. */
const SYNTAX = /[\^$\\.*+?()[\]{}|/\-&!#%,:;<=>@`~]/, OUTSIDE = /[\^$\\.*+?()[\]{}|/]/;
const CONTROLS: Readonly<Record<string, string>> = { a: "\\x07", e: "\\x1b" };

/** A pattern, and how far it is read. */
interface Cursor {
  pattern: string;
  at: number;
}

interface Group {
  /** Where its text starts in the output. */
  readonly start: number;
  /** What closes it. */
  close: string;
}

/**
 * Under `v`, V8 remembers a way back from every letter of a word and gives up after some millions; under `u` it
 * does not. What both flags read alike goes under `u`.
 */
function compile(source: string): RegExp {
  if (hasSets(source) || /\(\?[a-z]*i/.test(source)) return new RegExp(source, "gv");
  try {
    return new RegExp(source, "gu");
  } catch {
    return new RegExp(source, "gv");
  }
}

/** Whether a class has a class in it, or an operator. */
function hasSets(source: string): boolean {
  let isInside = false;
  for (let i = 0; i < source.length; i++) {
    const char = source[i];
    if (char === "\\") i++;
    else if (char === "]") isInside = false;
    else if (isInside && (char === "[" || /^(&&|--)/.test(source.slice(i, i + 2)))) return true;
    else if (char === "[") isInside = true;
  }
  return false;
}

/**
 * Translates a pattern.
 *
 * @returns The pattern, with the flags `g` and `u` or `v`.
 * @throws {SyntaxError} If it is not well formed, or has a construct that is not known here.
 */
export function fromOniguruma(source: string): RegExp {
  const cursor: Cursor = { pattern: source, at: 0 };
  const groups: Group[] = [];
  let out = "";
  let atom = 0;
  let names = 0;

  while (cursor.at < cursor.pattern.length) {
    const char = String.fromCodePoint(cursor.pattern.codePointAt(cursor.at)!);
    if (char === "(") openGroup();
    else if (char === ")") closeGroup();
    else if ("*+?{".includes(char)) quantify(char);
    else {
      const before = out.length;
      if (char === "[") out += readSet(cursor);
      else if (char === "\\") out += readEscape(cursor, false);
      else {
        cursor.at += char.length;
        out += char === "."
          ? "[^\\n]"
          : char === "^"
          ? "(?<![^\\n])"
          : char === "$"
          ? "(?![^\\n])"
          : char === "|"
          ? char
          : literal(char, false);
      }
      atom = before;
    }
  }
  if (groups.length > 0) throw new SyntaxError("a group is not closed");
  return compile(out);

  function openGroup(): void {
    const flags = /^\(\?([im]*)(?:-([im]*))?([:)])/.exec(
      cursor.pattern.slice(cursor.at, cursor.at + 12),
    );
    if (flags) {
      const [all, on = "", off = "", end] = flags;
      cursor.at += all.length;
      // Ruby's m lets the dot match line ends; the dot is rewritten, so it would be lost.
      if (on.includes("m") || off.includes("m")) throw new SyntaxError("flag m is not known");
      const open = on === "" && off === "" ? "(?:" : `(?${on}${off && `-${off}`}:`;
      if (end === ":") groups.push({ start: out.length, close: ")" });
      else if (groups.length > 0) groups.at(-1)!.close += ")";
      else rest();
      out += open;
      return;
    }
    const kind =
      /^\((?:\?(?:[=!]|<[=!]|>|<\w+>))?/.exec(cursor.pattern.slice(cursor.at, cursor.at + 40))![0];
    if (kind === "(" && cursor.pattern[cursor.at + 1] === "?") {
      throw new SyntaxError(`${cursor.pattern.slice(cursor.at, cursor.at + 4)} is not known`);
    }
    cursor.at += kind.length;
    const name = `a${names}`;
    if (kind === "(?>") names++;
    groups.push({ start: out.length, close: kind === "(?>" ? `))\\k<${name}>)` : ")" });
    // Captures are of no use to a tokenizer.
    out += kind === "(?>"
      ? `(?:(?=(?<${name}>`
      : kind === "(" || /^\(\?<\w/.test(kind)
      ? "(?:"
      : kind;
  }

  // A flag outside all groups holds to the end of the pattern.
  function rest(): void {
    cursor.pattern += ")";
    groups.push({ start: out.length, close: ")" });
  }

  function closeGroup(): void {
    const group = groups.pop();
    if (!group) throw new SyntaxError("a parenthesis closes nothing");
    out += group.close;
    atom = group.start;
    cursor.at++;
  }

  function quantify(char: string): void {
    const braces = char === "{"
      ? /^\{(?:\d+(?:,\d*)?|,\d+)\}/.exec(cursor.pattern.slice(cursor.at, cursor.at + 24))
      : null;
    if (char === "{" && !braces) {
      atom = out.length;
      out += "\\{";
      cursor.at++;
      return;
    }
    const quantifier = braces ? braces[0].replace("{,", "{0,") : char;
    cursor.at += braces ? braces[0].length : 1;
    const next = cursor.pattern[cursor.at];
    if (next === "?") {
      out += quantifier + next;
      cursor.at++;
    } else if (next === "+" && !braces) {
      const name = `a${names++}`;
      out = `${out.slice(0, atom)}(?:(?=(?<${name}>${out.slice(atom)}${quantifier}))\\k<${name}>)`;
      cursor.at++;
    } else if (next === "+") {
      // Only ?+ *+ ++ are possessive in Ruby's syntax; a counted one is repeated.
      out = `${out.slice(0, atom)}(?:${out.slice(atom)}${quantifier})+`;
      cursor.at++;
    } else {
      out += quantifier;
    }
  }
}

/** Reads what a backslash begins, in a set or outside. */
function readEscape(cursor: Cursor, inSet: boolean): string {
  const { pattern } = cursor;
  const char = pattern[cursor.at + 1];
  if (char === undefined) throw new SyntaxError("a backslash stands at the end");
  cursor.at += 2;
  if (char in SETS) return SETS[char]!;
  if (!inSet && char in ANCHORS) return ANCHORS[char]!;
  if (inSet && char === "b") return "\\x08";
  if (char in CONTROLS) return CONTROLS[char]!;
  if ("nrtfv".includes(char)) return `\\${char}`;
  if (char === "p" || char === "P") {
    const [all, negated, name] =
      /^\{(\^?)([\w=& -]+)\}/.exec(pattern.slice(cursor.at, cursor.at + 64)) ?? [];
    if (all === undefined) throw new SyntaxError("a property has no name");
    cursor.at += all.length;
    return property(name!, (char === "P") !== (negated === "^"));
  }
  if (char === "x" || char === "u") {
    const code = /^(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{4})|([0-9a-fA-F]{2}))/.exec(
      char === "x" && pattern[cursor.at] !== "{"
        ? pattern.slice(cursor.at, cursor.at + 2)
        : pattern.slice(cursor.at, cursor.at + 8),
    );
    if (!code) throw new SyntaxError(`\\${char} has no number`);
    cursor.at += code[0].length;
    return `\\u{${code[1] ?? code[2] ?? code[3]}}`;
  }
  if (/[0-9A-Za-z]/.test(char)) throw new SyntaxError(`\\${char} is not known`);
  return literal(char, inSet);
}

/** Reads a set; `&&` binds weaker than standing side by side, so each side becomes a set of its own. */
function readSet(cursor: Cursor): string {
  const { pattern } = cursor;
  const negated = pattern[++cursor.at] === "^";
  if (negated) cursor.at++;
  const sides = [""];
  for (let first = true;; first = false) {
    const rest = pattern.slice(cursor.at, cursor.at + 2);
    if (rest === "") throw new SyntaxError("a set is not closed");
    if (rest[0] === "]" && !first) break;
    const posix = rest === "[:"
      ? /^\[:(\^?)(\w+):\]/.exec(pattern.slice(cursor.at, cursor.at + 16))
      : null;
    let item: string;
    if (rest === "&&") {
      cursor.at += 2;
      sides.push("");
      continue;
    } else if (posix) {
      const set = POSIX[posix[2]!];
      if (set === undefined) throw new SyntaxError(`${posix[0]} is not known`);
      cursor.at += posix[0].length;
      item = posix[1] ? `[^${set}]` : set;
    } else if (rest[0] === "[") {
      item = readSet(cursor);
    } else if (rest[0] === "\\") {
      item = readEscape(cursor, true);
    } else {
      const char = String.fromCodePoint(pattern.codePointAt(cursor.at)!);
      cursor.at += char.length;
      const isRange = char === "-" && !first && pattern[cursor.at] !== "]" &&
        isSingle(sides.at(-1)!);
      item = isRange ? "-" : literal(char, true);
    }
    sides[sides.length - 1] += item;
  }
  cursor.at++;
  const inner = sides.length === 1 ? sides[0] : sides.map((side) => `[${side}]`).join("&&");
  return `[${negated ? "^" : ""}${inner}]`;
}

/** Whether the last item of a set is one character that may begin a range. */
function isSingle(side: string): boolean {
  return /(?:\\u\{[0-9a-fA-F]+\}|\\x[0-9a-f]{2}|\\[^pPwWdDsS\w]|\\[nrtfv]|[^\]}\\-])$/u.test(
    side,
  ) &&
    !/[^\\]-(?:\\u\{[0-9a-fA-F]+\}|\\?.)$/u.test(side);
}

function literal(char: string, isInSet: boolean): string {
  return (isInSet ? SYNTAX : OUTSIDE).test(char) ? `\\${char}` : char;
}

function property(name: string, negated: boolean): string {
  const posix = POSIX[name.toLowerCase()];
  if (posix !== undefined) return negated ? `[^${posix}]` : posix;
  for (const text of [name, `Script=${name}`]) {
    try {
      new RegExp(`\\p{${text}}`, "v");
      return `\\${negated ? "P" : "p"}{${text}}`;
    } catch {
      // Not this kind of property.
    }
  }
  throw new SyntaxError(`the property ${name} is not known`);
}
