// Rules in GBNF as an expression. Whatever is regular and not too large becomes one scanner, also across rules: one
// reads faster than many, and its masks are kept.

import type { Expression } from "./expression.ts";
import { scannerOf } from "./json_marks.ts";
import { choice, type Regular, repeat, sequence } from "./nfa.ts";

/** The text of a rule, or a part of it. */
export type Node =
  /** A text, or a class of characters. */
  | { readonly kind: "regular"; readonly regular: Regular }
  | { readonly kind: "sequence"; readonly items: readonly Node[] }
  | { readonly kind: "choice"; readonly items: readonly Node[] }
  | { readonly kind: "repeat"; readonly item: Node; readonly min: number; readonly max: number }
  | Rule;

/** A rule; its body may come later than its name. */
export interface Rule {
  readonly kind: "rule";
  readonly name: string;
  body: Node | undefined;
}

/** A regular part, and about how many states it takes. */
interface Sized {
  readonly regular: Regular;
  readonly size: number;
}

/** Most states of a part that is made one scanner. */
const MOST_STATES = 2000;

/** What has been found out about rules; undefined while it is being found out, and for what is not regular. */
interface Known {
  readonly regular: Map<Rule, Sized | undefined>;
  readonly expressions: Map<Rule, Expression>;
}

/** The expression of a rule. */
export function compileNode(root: Rule): Expression {
  return compile(root, { regular: new Map(), expressions: new Map() });
}

function compile(node: Node, known: Known): Expression {
  const sized = regularOf(node, known);
  if (sized) return leafOf(sized.regular);
  switch (node.kind) {
    case "regular":
      return leafOf(node.regular);
    case "rule": {
      let expression = known.expressions.get(node);
      if (!expression) {
        const reference = { kind: "reference" as const, name: node.name, target: undefined };
        known.expressions.set(node, expression = reference);
        Object.assign(reference, { target: compile(node.body!, known) });
      }
      return expression;
    }
    case "repeat":
      return { kind: "repeat", item: compile(node.item, known), min: node.min, max: node.max };
    case "sequence":
      return { kind: "sequence", items: joined(node.items, sequence, known) };
    case "choice":
      return { kind: "choice", items: joined(node.items, choice, known) };
  }
}

// Neighbours that are regular become one.
function joined(
  items: readonly Node[],
  join: (...items: readonly Regular[]) => Regular,
  known: Known,
): Expression[] {
  const result: Expression[] = [];
  let run: Sized[] = [];
  const flush = () => {
    if (run.length > 0) result.push(leafOf(join(...run.map(({ regular }) => regular))));
    run = [];
  };
  for (const item of items) {
    const sized = regularOf(item, known);
    if (sized) {
      if (sizeOf(run) + sized.size > MOST_STATES) flush();
      run.push(sized);
      continue;
    }
    flush();
    result.push(compile(item, known));
  }
  flush();
  return result;
}

function leafOf(regular: Regular): Expression {
  return { kind: "leaf", automaton: scannerOf(regular, "raw") };
}

function sizeOf(parts: readonly Sized[]): number {
  return parts.reduce((sum, { size }) => sum + size, 0);
}

function regularOf(node: Node, known: Known): Sized | undefined {
  switch (node.kind) {
    case "regular": {
      const { regular } = node;
      return { regular, size: regular.kind === "words" ? regular.words[0]!.length + 1 : 1 };
    }
    case "rule": {
      if (!known.regular.has(node)) {
        known.regular.set(node, undefined);
        known.regular.set(node, regularOf(node.body!, known));
      }
      return known.regular.get(node);
    }
    case "repeat": {
      const item = regularOf(node.item, known);
      const copies = node.max === Infinity ? node.min + 1 : node.max;
      if (!item || item.size * copies > MOST_STATES) return undefined;
      return { regular: repeat(item.regular, [node.min, node.max]), size: item.size * copies };
    }
    default: {
      const parts: Sized[] = [];
      for (const item of node.items) {
        const part = regularOf(item, known);
        if (!part || sizeOf(parts) + part.size > MOST_STATES) return undefined;
        parts.push(part);
      }
      const regulars = parts.map(({ regular }) => regular);
      const join = node.kind === "sequence" ? sequence : choice;
      return { regular: join(...regulars), size: sizeOf(parts) + 1 };
    }
  }
}
