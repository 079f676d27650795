// Which names a scope hides before it assigns them, as Jinja's compiler has it (idtracking.py of 3.1.6): a name
// becomes a local variable of the scope around its first mention, and where that mention is an assignment
// the variable begins without a value, whatever the caller or a global is called. It shows where a name
// is read out of turn: by a macro or a loop's body that stands above the assignment, or in the body of
// `{% set x %}` itself. Scopes within are not looked into, and an assignment in an `if` hides nothing.

import type { Arguments, Body, Expression, Statement, Target } from "./syntax.ts";

/** Names that a scope or one around it mentions. */
interface Names {
  has(name: string): boolean;
}

/** What one scope mentions itself, in the order of Jinja's visit. */
interface Mentions {
  readonly known: Set<string>;
  readonly hidden: Set<string>;
}

/** What stands in a scope before its body, or within its head. */
interface Head {
  readonly names?: readonly string[];
  readonly read?: readonly Expression[];
}

/** The tree with a `hide` at the beginning of every scope that needs one. */
export function hideAssignedLater(body: Body): Body {
  return enter(body, { has: () => false });
}

function enter(body: Body, outer: Names, { names = [], read = [] }: Head = {}): Body {
  const own: Mentions = { known: new Set(names), hidden: new Set() };
  read.forEach((expression) => readNames(expression, own));
  for (const statement of body) mention(statement, own, false);
  const hidden = [...own.hidden].filter((name) => !outer.has(name));
  const inner: Names = { has: (name) => own.known.has(name) || outer.has(name) };
  const inside = body.map((statement) => enterWithin(statement, inner));
  return hidden.length === 0 ? inside : [{ type: "hide", names: hidden, line: 0 }, ...inside];
}

/** The same statement, whose scopes are entered. */
function enterWithin(statement: Statement, outer: Names): Statement {
  const within = (body: Body) => body.map((one) => enterWithin(one, outer));
  switch (statement.type) {
    case "if": {
      const branches = statement.branches.map((one) => ({ ...one, body: within(one.body) }));
      return { ...statement, branches, otherwise: within(statement.otherwise) };
    }
    case "group":
      return { ...statement, body: within(statement.body) };
    case "for": {
      const body = enter(statement.body, outer, { names: ["loop", ...namesOf(statement.target)] });
      return { ...statement, body, otherwise: enter(statement.otherwise, outer) };
    }
    case "with": {
      const names = statement.values.map(([name]) => name);
      return { ...statement, body: enter(statement.body, outer, { names }) };
    }
    case "macro":
    case "callBlock": {
      const names = [...statement.uses, ...statement.parameters.map(({ name }) => name)];
      const read = statement.parameters.flatMap(({ fallback }) => fallback ?? []);
      return { ...statement, body: enter(statement.body, outer, { names, read }) };
    }
    case "capture":
    case "filterBlock":
    case "scope":
      return { ...statement, body: enter(statement.body, outer) };
    default:
      return statement;
  }
}

function mention(statement: Statement, own: Mentions, isBranch: boolean): void {
  const store = (name: string) => {
    if (!own.known.has(name) && !isBranch) own.hidden.add(name);
    own.known.add(name);
  };
  const storeIn = (target: Target) => {
    if (target.type === "names") target.names.forEach(store);
    else own.known.add(target.object);
  };
  switch (statement.type) {
    case "output":
    case "discard":
      return readNames(statement.value, own);
    case "if":
      for (const { test, body } of statement.branches) {
        readNames(test, own);
        for (const one of body) mention(one, own, true);
      }
      for (const one of statement.otherwise) mention(one, own, true);
      return;
    case "group":
      for (const one of statement.body) mention(one, own, isBranch);
      return;
    case "for":
      return readNames(statement.list, own);
    case "set":
      readNames(statement.value, own);
      return storeIn(statement.target);
    case "capture":
      return storeIn(statement.target);
    case "macro":
      return store(statement.name);
    case "callBlock":
      return readNames(statement.call, own);
    case "filterBlock":
      return statement.filters.forEach(({ args }) => readNames(args, own));
    case "with":
      return statement.values.forEach(([, value]) => readNames(value, own));
  }
}

function namesOf(target: Target): readonly string[] {
  return target.type === "names" ? target.names : [];
}

function readNames(expression: Expression | Arguments, { known }: Mentions): void {
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const { type, name } = node as { type?: unknown; name?: unknown };
    if (type === "name") known.add(name as string);
    for (const part of Object.values(node)) visit(part);
  };
  visit(expression);
}
