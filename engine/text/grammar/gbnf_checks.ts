// What a grammar in GBNF must not be: a rule that begins with itself, or that never ends.

import { FormatError } from "../../errors.ts";
import type { Node, Rule } from "./gbnf_compile.ts";
import type { Regular } from "./nfa.ts";

type Rules = ReadonlyMap<string, Rule>;

// Rules by whether they may be empty: what is certain at first grows until nothing changes.
function emptyRules(rules: Rules): ReadonlySet<string> {
  return grow(rules, mayBeEmpty);
}

function grow(
  rules: Rules,
  holds: (node: Node, known: ReadonlySet<string>) => boolean,
): Set<string> {
  const known = new Set<string>();
  for (let size = -1; size < known.size;) {
    size = known.size;
    for (const { name, body } of rules.values()) if (holds(body!, known)) known.add(name);
  }
  return known;
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
  const empty = emptyRules(rules);
  const next = new Map(
    [...rules.values()].map(({ name, body }) => [name, beginnings(body!, empty)]),
  );
  for (const name of rules.keys()) {
    const reached = new Set(next.get(name));
    for (const other of reached) for (const further of next.get(other)!) reached.add(further);
    if (reached.has(name)) {
      throw new FormatError(`rule ${name} of the grammar can begin with itself (left recursion)`, {
        remedy: `Write it as a repetition, or put the recursion last`,
      });
    }
  }
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
