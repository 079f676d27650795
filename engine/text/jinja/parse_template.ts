// Statements: one function for each tag, in a table. Tags of Jinja that are not built are refused by name
// (refused.ts); tags that nobody knows are, too.

import { fail } from "./failure.ts";
import { tokenize } from "./lexer.ts";
import { parseExpression, parseFilter, parseLoopList, parseTuple } from "./parse_expression.ts";
import { REFUSED_TAGS, refuseListed } from "./refused.ts";
import { hideAssignedLater } from "./scopes.ts";
import type {
  Application,
  Body,
  Expression,
  MacroExtra,
  Parameter,
  Statement,
  Target,
} from "./syntax.ts";
import { createTokenReader, type TokenReader } from "./token_reader.ts";

/** The tags that are built, by name. */
export const TAGS: ReadonlyMap<string, (reader: TokenReader, line: number) => Statement> = new Map([
  ["if", parseIf],
  ["for", parseFor],
  ["set", parseSet],
  ["macro", parseMacro],
  ["call", parseCallBlock],
  ["filter", parseFilterBlock],
  ["with", parseWith],
  ["generation", parseGeneration],
  ["break", parseJump("break")],
  ["continue", parseJump("continue")],
  ["do", parseDo],
  ["print", parsePrint],
]);

/** Parses a template. */
export function parseTemplate(template: string): Body {
  return hideAssignedLater(parseBody(createTokenReader(tokenize(template)), [], ""));
}

/** Statements until one of the tags `ends`, whose name is left at the cursor. */
function parseBody(reader: TokenReader, ends: readonly string[], block: string): Statement[] {
  const body: Statement[] = [];
  while (true) {
    const { type, text, line } = reader.next();
    if (type === "text") body.push({ type: "text", text, line });
    else if (type === "outputBegin") {
      body.push({ type: "output", value: parseTuple(reader), line });
      reader.expect("outputEnd");
    } else if (type === "statementBegin") {
      if (ends.includes(reader.peek().text)) return body;
      body.push(reader.nested(() => parseStatement(reader)));
    } else if (type === "end") {
      if (ends.length === 0) return body;
      const wanted = ends.map((name) => `'${name}'`).join(" or ");
      return fail(`Unexpected end of template: ${wanted} is missing for '${block}'`, line);
    }
  }
}

function parseStatement(reader: TokenReader): Statement {
  const { text: name, line } = reader.expect("name");
  const parse = TAGS.get(name);
  if (parse !== undefined) return parse(reader, line);
  refuseListed(name, { what: "tag", table: REFUSED_TAGS, line });
  return fail(`Encountered unknown tag '${name}'`, line);
}

function endTag(reader: TokenReader): void {
  reader.expect("statementEnd");
}

/** A body up to one end tag, which is passed. */
function parseBlock(reader: TokenReader, end: string, block: string): Statement[] {
  const body = parseBody(reader, [end], block);
  reader.expect("name", end);
  // Jinja allows the name of a macro behind its end tag.
  if (reader.peek().type === "name") reader.next();
  endTag(reader);
  return body;
}

/** What may stand between `else` and the end tag of a block, which is passed. */
function parseElse(reader: TokenReader, block: string): Body {
  let otherwise: Body = [];
  if (reader.accept("name", "else")) {
    endTag(reader);
    otherwise = parseBody(reader, [`end${block}`], block);
  }
  reader.expect("name", `end${block}`);
  endTag(reader);
  return otherwise;
}

function parseIf(reader: TokenReader, line: number): Statement {
  const branches: { test: Expression; body: Body }[] = [];
  do {
    const test = parseTuple(reader);
    endTag(reader);
    branches.push({ test, body: parseBody(reader, ["elif", "else", "endif"], "if") });
  } while (reader.accept("name", "elif"));
  return { type: "if", branches, otherwise: parseElse(reader, "if"), line };
}

function parseNames(reader: TokenReader): string[] {
  const names: string[] = [];
  const isWrapped = reader.accept("operator", "(");
  do {
    if (names.length > 0 && reader.peek().type !== "name") break;
    names.push(reader.expect("name").text);
  } while (reader.accept("operator", ","));
  if (isWrapped) reader.expect("operator", ")");
  return names;
}

function parseTarget(reader: TokenReader): Target {
  const following = reader.peek(1);
  if (following.type === "operator" && following.text === ".") {
    const object = reader.expect("name").text;
    reader.next();
    return { type: "attribute", object, name: reader.expect("name").text };
  }
  return { type: "names", names: parseNames(reader) };
}

function parseFor(reader: TokenReader, line: number): Statement {
  const target: Target = { type: "names", names: parseNames(reader) };
  reader.expect("name", "in");
  let list = parseLoopList(reader);
  if (reader.isAt("operator", ",")) {
    const items = [list];
    while (reader.accept("operator", ",")) items.push(parseLoopList(reader));
    list = { type: "list", items, isTuple: true, line };
  }
  const test = reader.accept("name", "if") ? parseExpression(reader) : undefined;
  const isRecursive = reader.accept("name", "recursive");
  endTag(reader);
  const body = parseBody(reader, ["else", "endfor"], "for");
  const otherwise = parseElse(reader, "for");
  return { type: "for", target, list, test, body, otherwise, isRecursive, line };
}

function parseFilterList(reader: TokenReader): Application[] {
  const filters: Application[] = [];
  while (reader.accept("operator", "|")) filters.push(parseFilter(reader));
  return filters;
}

function parseSet(reader: TokenReader, line: number): Statement {
  const target = parseTarget(reader);
  if (reader.accept("operator", "=")) {
    const value = parseTuple(reader);
    endTag(reader);
    return { type: "set", target, value, line };
  }
  const filters = parseFilterList(reader);
  endTag(reader);
  return { type: "capture", target, filters, body: parseBlock(reader, "endset", "set"), line };
}

function parseParameters(reader: TokenReader): Parameter[] {
  const parameters: Parameter[] = [];
  reader.expect("operator", "(");
  while (!reader.accept("operator", ")")) {
    const name = reader.expect("name").text;
    const fallback = reader.accept("operator", "=") ? parseExpression(reader) : undefined;
    parameters.push({ name, fallback });
    if (!reader.isAt("operator", ")")) reader.expect("operator", ",");
  }
  return parameters;
}

function parseMacro(reader: TokenReader, line: number): Statement {
  const name = reader.expect("name").text;
  const parameters = parseParameters(reader);
  endTag(reader);
  const body = parseBlock(reader, "endmacro", "macro");
  return { type: "macro", name, parameters, uses: extrasOf(body), body, line };
}

function parseCallBlock(reader: TokenReader, line: number): Statement {
  const parameters = reader.isAt("operator", "(") ? parseParameters(reader) : [];
  const call = parseExpression(reader);
  if (call.type !== "call") fail("expected a call behind 'call'", line);
  endTag(reader);
  const body = parseBlock(reader, "endcall", "call");
  return { type: "callBlock", parameters, uses: extrasOf(body), call, body, line };
}

function parseFilterBlock(reader: TokenReader, line: number): Statement {
  const filters = [parseFilter(reader), ...parseFilterList(reader)];
  endTag(reader);
  return { type: "filterBlock", filters, body: parseBlock(reader, "endfilter", "filter"), line };
}

function parseWith(reader: TokenReader, line: number): Statement {
  const values: [string, Expression][] = [];
  while (reader.peek().type === "name") {
    const name = reader.next().text;
    reader.expect("operator", "=");
    values.push([name, parseExpression(reader)]);
    if (!reader.accept("operator", ",")) break;
  }
  endTag(reader);
  return { type: "with", values, body: parseBlock(reader, "endwith", "with"), line };
}

// Marks what an assistant wrote, for training; when rendering, only its content matters. It is a scope, since
// transformers makes a call of it.
function parseGeneration(reader: TokenReader, line: number): Statement {
  endTag(reader);
  return { type: "scope", body: parseBlock(reader, "endgeneration", "generation"), line };
}

function parseJump(type: "break" | "continue") {
  return (reader: TokenReader, line: number): Statement => {
    endTag(reader);
    return { type, line };
  };
}

function parseDo(reader: TokenReader, line: number): Statement {
  const value = parseTuple(reader);
  endTag(reader);
  return { type: "discard", value, line };
}

function parsePrint(reader: TokenReader, line: number): Statement {
  const body: Statement[] = [];
  do {
    if (body.length > 0 && reader.peek().type === "statementEnd") break;
    body.push({ type: "output", value: parseExpression(reader), line });
  } while (reader.accept("operator", ","));
  endTag(reader);
  return { type: "group", body, line };
}

const EXTRAS: readonly MacroExtra[] = ["caller", "kwargs", "varargs"];

/** Which of the names that Jinja gives to macros a body reads, wherever it does. */
function extrasOf(body: Body): MacroExtra[] {
  const read = new Set<unknown>();
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const { type, name } = node as { type?: unknown; name?: unknown };
    if (type === "name") read.add(name);
    for (const part of Object.values(node)) visit(part);
  };
  visit(body);
  return EXTRAS.filter((name) => read.has(name));
}
