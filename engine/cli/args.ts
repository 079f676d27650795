// Command lines as data. A command states its positionals and flags once; parsing, checking, the help
// page and the "did you mean" all come from that statement. `node:util` does the splitting; what it
// leaves out (numbers, choices, nearest names, one-line messages) is here. Nothing is ever ignored: an
// unknown flag, a missing value or a surplus argument is a UsageError (exit code 2).

import { parseArgs } from "node:util";
import { nearest } from "../nearest.ts";

/** One `--flag`. */
export interface Flag {
  /** How its value is read; `boolean` takes none. */
  readonly type: "boolean" | "string" | "number" | "integer";
  /** What it does, one line. */
  readonly help: string;
  /** One letter, for `-h` style. */
  readonly short?: string;
  /** Name of the value in the help page. */
  readonly value?: string;
  /** The only values allowed. */
  readonly choices?: readonly string[];
  /** Smallest and largest number allowed. */
  readonly min?: number;
  readonly max?: number;
  /** May be given several times; the value is a list. */
  readonly multiple?: boolean;
}

/** The positional of a command that takes only what is in the cache. */
export const CACHED_MODEL = "CACHED-MODEL";

/** Flags by name, without the dashes. */
export type Flags = Readonly<Record<string, Flag>>;

/** A command, or a task of tools/. */
export interface CommandLine {
  /** As typed: `troodon generate`, `deno task fuzz`. */
  readonly name: string;
  /** One line: what it does. */
  readonly summary: string;
  /** `MODEL`, `[FILTER]` (may be absent), `[TEXT…]` (any number, last). */
  readonly positionals?: readonly string[];
  readonly flags: Flags;
  /** Whole command lines, each with what it shows. */
  readonly examples: readonly (readonly [command: string, what: string])[];
  /** Paragraphs below the flags. */
  readonly notes?: readonly string[];
}

type FlagValue<F extends Flag> = F["type"] extends "boolean" ? boolean
  : F extends { readonly choices: readonly (infer Choice)[] } ? Choice
  : F["type"] extends "string" ? string
  : number;

/** Parsed values: absent flags are undefined, `multiple` flags are lists. */
export interface ParsedLine<F extends Flags> {
  readonly positionals: readonly string[];
  readonly flags: {
    readonly [K in keyof F]:
      | (F[K] extends { multiple: true } ? readonly FlagValue<F[K]>[] : FlagValue<F[K]>)
      | undefined;
  };
  /** `--help` was asked for; nothing else was checked. */
  readonly help: boolean;
}

/** The command line is wrong; exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** `". Did you mean X?"`, or a pointer to the help page. */
export function suggestion(
  word: string,
  known: Iterable<string>,
  { prefix = "", name }: { prefix?: string; name: string },
): string {
  const near = nearest(word, known);
  return near === undefined ? `. See ${name} --help` : `. Did you mean ${prefix}${near}?`;
}

const HELP: Flag = { type: "boolean", short: "h", help: "show this page" };

const KINDS = { string: "a text", integer: "a whole number", number: "a number", boolean: "none" };

function convert(text: string, name: string, flag: Flag): string | number {
  if (flag.type === "string") {
    if (flag.choices && !flag.choices.includes(text)) {
      throw new UsageError(`--${name} takes ${flag.choices.join(", ")}: got "${text}"`);
    }
    return text;
  }
  const number = text.trim() === "" ? NaN : Number(text);
  const kind = KINDS[flag.type];
  const wrong = flag.type === "integer" ? !Number.isSafeInteger(number) : !Number.isFinite(number);
  if (wrong) throw new UsageError(`--${name} takes ${kind}: got "${text}"`);
  if (number < (flag.min ?? -Infinity) || number > (flag.max ?? Infinity)) {
    const range = flag.max === undefined
      ? `${flag.min} or more`
      : `${flag.min ?? "up"} to ${flag.max}`;
    throw new UsageError(`--${name} takes ${kind}, ${range}: got ${text}`);
  }
  return number;
}

function checkPositionals(line: CommandLine, given: readonly string[]): void {
  const wanted = line.positionals ?? [];
  const missing = wanted[given.length];
  if (missing !== undefined && !missing.startsWith("[")) {
    throw new UsageError(`${line.name} needs ${missing}. See ${line.name} --help`);
  }
  if (given.length > wanted.length && !wanted.at(-1)?.includes("…")) {
    const surplus = given[wanted.length];
    const way = Object.hasOwn(line.flags, "text") && wanted.at(-1) !== "[TEXT]"
      ? "A text is given by --text"
      : `See ${line.name} --help`;
    throw new UsageError(`${line.name} does not take "${surplus}". ${way}`);
  }
}

/**
 * Reads a command line.
 *
 * @throws {UsageError} On anything that the statement does not allow.
 */
export function parseLine<const F extends Flags>(
  line: CommandLine & { readonly flags: F },
  args: readonly string[],
): ParsedLine<F> {
  const known: Flags = { ...line.flags, help: HELP };
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { type, short }]) => [
      name,
      { type: type === "boolean" ? "boolean" as const : "string" as const, ...short && { short } },
    ]),
  );
  const { tokens, positionals } = parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values: Record<string, unknown> = {};
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const { name, rawName, value } = token;
    const flag = Object.hasOwn(known, name) ? known[name] : undefined;
    if (flag === undefined) {
      const near = suggestion(name, Object.keys(known), { prefix: "--", name: line.name });
      throw new UsageError(`Unknown flag ${rawName}${near}`);
    }
    if (flag.type === "boolean") {
      if (value !== undefined) throw new UsageError(`--${name} takes no value: got "${value}"`);
      values[name] = true;
      continue;
    }
    if (value === undefined || (!token.inlineValue && /^-[^0-9.]/.test(value))) {
      throw new UsageError(`--${name} needs a value: ${flag.value ?? KINDS[flag.type]}`);
    }
    const converted = convert(value, name, flag);
    if (flag.multiple) {
      ((values[name] ??= []) as unknown[]).push(converted);
    } else {
      if (Object.hasOwn(values, name)) throw new UsageError(`--${name} is given twice`);
      values[name] = converted;
    }
  }
  const help = values.help === true;
  if (!help) checkPositionals(line, positionals);
  return { positionals, flags: values as ParsedLine<F>["flags"], help };
}

const COLUMNS = 98;

/** Breaks text at blanks so that no line is longer than a page is wide. */
function wrap(text: string, indent = ""): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > COLUMNS - indent.length) {
      lines.push(word);
    } else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.join(`\n${indent}`);
}

function flagLabel(name: string, flag: Flag): string {
  const value = flag.type === "boolean"
    ? ""
    : ` ${flag.value ?? (flag.choices?.join("|") ?? (flag.type === "string" ? "TEXT" : "N"))}`;
  return `  ${flag.short ? `-${flag.short}, ` : "    "}--${name}${value}`;
}

/** The help page. */
export function helpPage(line: CommandLine): string {
  const rows = Object.entries({ ...line.flags, help: HELP })
    .map(([name, flag]) => [flagLabel(name, flag), flag.help] as const);
  const column = Math.min(34, Math.max(...rows.map(([label]) => label.length)) + 2);
  const parts = [
    line.summary,
    `\nUsage: ${[line.name, ...(line.positionals ?? []), "[flags]"].join(" ")}\n`,
    "Flags:",
    ...rows.map(([label, help]) => {
      const text = wrap(help, " ".repeat(column));
      return label.length + 1 < column
        ? label.padEnd(column) + text
        : `${label}\n${" ".repeat(column)}${text}`;
    }),
  ];
  for (const note of line.notes ?? []) parts.push(`\n${wrap(note)}`);
  parts.push("\nExamples:");
  for (const [command, what] of line.examples) parts.push(`  # ${what}`, `  ${command}`);
  return parts.join("\n");
}
