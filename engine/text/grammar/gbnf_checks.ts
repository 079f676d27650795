// What a grammar in GBNF must not be: a rule that begins with itself, or that never ends.

import { FormatError } from "../../errors.ts";
import type { Node, Rule } from "./gbnf_compile.ts";
import type { Regular } from "./nfa.ts";

type Rules = ReadonlyMap<string, Rule>;

/** The rules for which something holds, which may hang on for which others it is known to hold. */
function grow(
  rules: Rules,
  holds: (node: Node, known: ReadonlySet<string>) => boolean,
): Set<string> {
  const known = new Set<string>(), users = new Map<string, Rule[]>();
  for (const rule of rules.values()) {
    for (const name of namesIn(rule.body!)) {
      const list = users.get(name);
      if (list) list.push(rule);
      else users.set(name, [rule]);
    }
  }
  const todo = [...rules.values()];
  for (const { name, body } of todo) {
    if (known.has(name) || !holds(body!, known)) continue;
    known.add(name);
    for (const user of users.get(name) ?? []) todo.push(user);
  }
  return known;
}

/** Rules that an expression names, each once. */
function namesIn(node: Node, names = new Set<string>()): Set<string> {
  if (node.kind === "rule") names.add(node.name);
  else if (node.kind === "repeat") namesIn(node.item, names);
  else if (node.kind !== "regular") { for (const item of node.items) namesIn(item, names); }
  return names;
}

function mayBeEmpty(node: Node, empty: ReadonlySet<string>): boolean {
  switch (node.kind) {
    case "regular":
      return isNullable(node.regular);
    case "rule":
      return empty.has(node.name);
    case "sequence":
      return node.items.every((item) => mayBeEmpty(item, empty));
    case "choice":
      return node.items.some((item) => mayBeEmpty(item, empty));
    case "repeat":
      return node.min === 0 || mayBeEmpty(node.item, empty);
  }
}

// Rules with which an expression may begin.
function beginnings(node: Node, empty: ReadonlySet<string>): string[] {
  switch (node.kind) {
    case "rule":
      return [node.name];
    case "choice":
      return node.items.flatMap((item) => beginnings(item, empty));
    case "repeat":
      return beginnings(node.item, empty);
    case "sequence": {
      const first = node.items.findIndex((item) => !mayBeEmpty(item, empty));
      const items = first < 0 ? node.items : node.items.slice(0, first + 1);
      return items.flatMap((item) => beginnings(item, empty));
    }
    default:
      return [];
  }
}

export function refuseLeftRecursion(rules: Rules): void {
  const empty = grow(rules, mayBeEmpty);
  const next = new Map(
    [...rules.values()].map(({ name, body }) => [name, new Set(beginnings(body!, empty))]),
  );
  // What begins with nothing that is left is left no more; what stays leads in a circle.
  const before = new Map<string, string[]>([...next.keys()].map((name) => [name, []]));
  for (const [name, others] of next) for (const other of others) before.get(other)!.push(name);
  const done = [...next.keys()].filter((name) => next.get(name)!.size === 0);
  for (const name of done) {
    for (const user of before.get(name)!) {
      const others = next.get(user)!;
      others.delete(name);
      if (others.size === 0) done.push(user);
    }
    next.delete(name);
  }
  const seen = new Set<string>();
  let [name] = next.keys();
  for (; name !== undefined && !seen.has(name); [name] = next.get(name)!) seen.add(name);
  if (name === undefined) return;
  throw new FormatError(`rule ${name} of the grammar can begin with itself (left recursion)`, {
    remedy: `Write it as a repetition, or put the recursion last`,
  });
}

// A rule that always asks for another one never comes to an end.
export function refuseEndless(root: Rule, rules: Rules): void {
  const ending = grow(rules, canEnd);
  const endless = [...rules.keys()].find((name) => !ending.has(name));
  if (endless === undefined) return;
  throw new FormatError(
    `no text ends rule ${ending.has(root.name) ? endless : root.name} of the grammar`,
  );
}

function canEnd(node: Node, ending: ReadonlySet<string>): boolean {
  switch (node.kind) {
    case "regular":
      return !hasNone(node.regular);
    case "rule":
      return ending.has(node.name);
    case "sequence":
      return node.items.every((item) => canEnd(item, ending));
    case "choice":
      return node.items.some((item) => canEnd(item, ending));
    case "repeat":
      return node.min === 0 || canEnd(node.item, ending);
  }
}

// A text in quotes may be empty, a class of characters may have none.
function isNullable(regular: Regular): boolean {
  return regular.kind === "words" && regular.words.includes("");
}

function hasNone(regular: Regular): boolean {
  return regular.kind === "set" && regular.set.length === 0;
}
