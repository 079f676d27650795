// A JSON Schema as a grammar: its goals are found, those that no value can meet are found out by what they ask for, and
// what is left becomes expressions, each when a text first comes to it.

import { FormatError } from "../../../errors.ts";
import type { Automaton } from "../automaton.ts";
import { type Bounds, createBounds } from "../bounds.ts";
import { createDfa } from "../dfa.ts";
import type { ArrayExpression, Expression, Leaf, ObjectExpression } from "../expression.ts";
import type { Grammar } from "../grammar.ts";
import { ANY_STRING, BLANK, scannerOf } from "../json_marks.ts";
import { createNameTree } from "../name_tree.ts";
import { withinStack } from "../nesting.ts";
import { spell } from "../spelling.ts";
import { SchemaDocument } from "./document.ts";
import { type Goal, Goals } from "./goals.ts";
import { numberParts, type NumberRule } from "./numbers.ts";
import {
  type ArrayShape,
  type ObjectShape,
  orAny,
  type Shape,
  shapesOf,
  type TextShape,
  type ValueShape,
} from "./shapes.ts";

/** Most values of which an array without equal items knows which have been there. */
const MOST_VALUES = 1000;
/** Most grammars that are kept for schemas that come again. */
const MOST_KEPT = 16;

const kept = new Map<string, Grammar>();

/**
 * The grammar of a JSON Schema: JSON in which white space is as JSON.stringify or a person would write it, strings are as
 * JSON.stringify writes them, and members come in any order.
 *
 * @throws {FormatError} If it is no schema, or no value is allowed by it; with the path.
 * @throws {UnsupportedError} If it has a keyword that is not supported, with its path, or is too deep or large.
 */
export function compileSchema(schema: unknown): Grammar {
  const text = JSON.stringify(schema);
  if (text === undefined) throw new FormatError("a schema is an object, true or false");
  let grammar = kept.get(text);
  if (!grammar) {
    grammar = withinStack("a schema", () => new SchemaCompiler(JSON.parse(text)).compile());
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value!);
    kept.set(text, grammar);
  }
  return grammar;
}

class SchemaCompiler {
  readonly #goals: Goals;
  readonly #root: Goal;
  readonly #shapes = new Map<Goal, readonly Shape[]>();
  readonly #met = new Set<Goal>();
  /** Of shapes that hang on no others. */
  readonly #metAlone = new Map<Shape, boolean>();
  readonly #references = new Map<Goal, Expression>();

  constructor(schema: unknown) {
    const document = new SchemaDocument(schema);
    this.#goals = new Goals(document);
    this.#root = this.#goals.of([{ node: document.root, isNegated: false }]);
  }

  compile(): Grammar {
    this.#explore();
    this.#findMet();
    if (!this.#met.has(this.#root)) {
      throw new FormatError("no value is allowed by the schema", { place: this.#blame() });
    }
    return { root: { kind: "sequence", items: [BLANK, this.#reference(this.#root)] } };
  }

  #explore(): void {
    const todo = new Set([this.#root]);
    for (const goal of todo) {
      const shapes = shapesOf(this.#goals, goal);
      this.#shapes.set(goal, shapes);
      for (const shape of shapes) for (const further of goalsOf(shape)) todo.add(further);
    }
  }

  // Those that a value can meet: more and more, until no further one is found.
  #findMet(): void {
    const open = new Set([...this.#shapes.keys()].reverse());
    for (let size = -1; size !== this.#met.size;) {
      size = this.#met.size;
      for (const goal of open) {
        // All of them are looked at: what is not supported is told now, not in the middle of an answer.
        if (this.#shapes.get(goal)!.filter((shape) => this.#isMet(shape)).length === 0) continue;
        this.#met.add(goal);
        open.delete(goal);
      }
    }
  }

  // The deepest of what is asked for in vain.
  #blame(): string {
    let goal = this.#root;
    for (const seen = new Set([goal]);; seen.add(goal)) {
      const [shape, ...others] = this.#shapes.get(goal)!;
      if (!shape || others.length > 0) return goal.path;
      const next = neededGoals(shape).find((one) => !this.#met.has(one) && !seen.has(one));
      if (!next) return goal.path;
      goal = next;
    }
  }

  #isMet(shape: Shape): boolean {
    switch (shape.kind) {
      case "word":
        return true;
      case "number":
      case "text": {
        let isMet = this.#metAlone.get(shape);
        if (isMet === undefined) {
          isMet = shape.kind === "number" ? hasNumbers(shape.rule) : hasTexts(shape);
          this.#metAlone.set(shape, isMet);
        }
        return isMet;
      }
      case "array":
        return this.#arrayBounds(shape) !== undefined;
      case "object":
        return this.#isObjectMet(shape);
    }
  }

  // How long an array can be with items that can be; undefined if none fits.
  #arrayBounds(
    { prefix, rest, min, max, contains, isUnique }: ArrayShape,
  ): { min: number; max: number } | undefined {
    const blocked = prefix.findIndex((goal) => !this.#met.has(goal));
    let most = Math.min(
      max,
      blocked >= 0 ? blocked : this.#met.has(rest) ? Infinity : prefix.length,
    );
    if (contains) {
      const inside = contains.inside.map((goal) => this.#met.has(goal));
      const outside = contains.outside.map((goal) => this.#met.has(goal));
      // Behind the last item of another kind, only so many of the kind may follow.
      if (!outside.at(-1)) most = Math.min(most, prefix.length + contains.max);
      const places = inside.slice(0, Math.min(prefix.length, most)).filter(Boolean).length;
      const further = inside.at(-1) ? Math.max(0, most - prefix.length) : 0;
      if (places + further < contains.min) return undefined;
      if (outside.slice(0, -1).some((one) => !one)) {
        const first = outside.findIndex((one) => !one);
        if (!inside[first]) most = Math.min(most, first);
      }
    }
    if (isUnique && prefix.length === 0) {
      most = Math.min(most, this.#values(rest)?.length ?? Infinity);
    }
    return min <= most ? { min, max: most } : undefined;
  }

  #isObjectMet({ names, others, min, max, demands }: ObjectShape): boolean {
    const members = [...names.values()];
    const isMet = (values: readonly ValueShape[]) => values.some(({ goal }) => this.#met.has(goal));
    const possible = members.filter(({ values }) => isMet(values)).length;
    const isOpen = others.some(({ values }) => isMet(values));
    const required = members.filter(({ isRequired }) => isRequired);
    const meetable = [...members, ...others].flatMap(({ values }) => values)
      .reduce((bits, { goal, meets }) => this.#met.has(goal) ? bits | meets : bits, 0);
    return required.every(({ values }) => isMet(values)) && required.length <= max &&
      (min <= possible || isOpen) && (demands & ~meetable) === 0;
  }

  // The few values of a goal as JSON, or undefined where they are not few.
  #values(goal: Goal): readonly string[] | undefined {
    const texts = new Set<string>();
    for (const shape of this.#shapes.get(goal)!) {
      const [part, ...further] = shape.kind === "text" ? shape.parts : [];
      if (shape.kind === "word") texts.add(shape.text);
      else if (shape.kind === "number" && shape.rule.points) {
        for (const point of shape.rule.points) texts.add(JSON.stringify(point));
      } else if (part?.regular.kind === "words" && !part.isNegated && further.length === 0) {
        for (const word of part.regular.words) texts.add(JSON.stringify(word));
      } else return undefined;
    }
    return texts.size <= MOST_VALUES ? [...texts] : undefined;
  }

  #reference(goal: Goal): Expression {
    let reference = this.#references.get(goal);
    if (!reference) {
      reference = new LazyReference(goal.path, () => this.#expression(goal));
      this.#references.set(goal, reference);
    }
    return reference;
  }

  #optional(goal: Goal): Expression | undefined {
    return this.#met.has(goal) ? this.#reference(goal) : undefined;
  }

  #expression(goal: Goal): Expression {
    const shapes = this.#shapes.get(goal)!.filter((shape) => this.#isMet(shape));
    const words = shapes.filter((shape) => shape.kind === "word").map(({ text }) => text);
    const items = shapes.flatMap((shape): Expression[] => {
      switch (shape.kind) {
        case "word":
          return [];
        case "number":
          return [numberLeaf(shape.rule)];
        case "text":
          return [textLeaf(shape)];
        case "array":
          return [this.#array(shape)];
        case "object":
          return [this.#object(shape)];
      }
    });
    if (words.length > 0) items.push(wordLeaf(words));
    return items.length === 1 ? items[0]! : { kind: "choice", items };
  }

  #array(shape: ArrayShape): ArrayExpression {
    const { prefix, rest, contains, isUnique } = shape;
    const bounds = this.#arrayBounds(shape)!;
    const few = isUnique && prefix.length === 0 && !contains ? this.#values(rest) : undefined;
    const sorted = contains?.inside.map((inside, i) => ({
      inside: this.#optional(inside),
      outside: this.#optional(contains.outside[i]!),
    }));
    return {
      kind: "array",
      prefix: prefix.slice(0, bounds.max).map((goal) => this.#reference(goal)),
      rest: this.#optional(rest),
      ...bounds,
      ...contains && {
        contains: {
          min: contains.min,
          max: contains.max,
          prefix: sorted!.slice(0, -1),
          rest: sorted!.at(-1)!,
        },
      },
      unique: few ? createNameTree(few).tree : isUnique ? "texts" : undefined,
    };
  }

  #object({ names, others, min, max, demands }: ObjectShape): ObjectExpression {
    const valuesOf = (values: readonly ValueShape[]) =>
      values.filter(({ goal }) => this.#met.has(goal))
        .map(({ goal, meets }) => ({ value: this.#reference(goal), meets }));
    const members = [...names].map(([name, { values, isRequired }]) => ({
      name,
      values: valuesOf(values),
      isRequired,
    })).filter(({ values }) => values.length > 0);
    const { tree, order } = createNameTree(members.map(({ name }) => JSON.stringify(name)));
    const sorted = order.map((i) => members[i]!);
    return {
      kind: "object",
      names: tree,
      values: sorted.map(({ values }) => values),
      required: sorted.map(({ isRequired }) => isRequired),
      others: others.map(({ key, values }) => ({
        key: textLeaf(key),
        values: valuesOf(values),
      })).filter(({ values }) => values.length > 0),
      known: new Set([...names.keys()].map((name) => latin1(JSON.stringify(name)))),
      ...{ min, max, demands },
    };
  }
}

/** A reference that is made when it is followed. */
class LazyReference {
  readonly kind = "reference";
  readonly name: string;
  readonly #make: () => Expression;
  #target: Expression | undefined;

  constructor(name: string, make: () => Expression) {
    this.name = name;
    this.#make = make;
  }

  get target(): Expression {
    return this.#target ??= this.#make();
  }
}

function goalsOf(shape: Shape): Goal[] {
  switch (shape.kind) {
    case "array": {
      const { prefix, rest, contains } = shape;
      return [...prefix, rest, ...contains?.inside ?? [], ...contains?.outside ?? []];
    }
    case "object": {
      const { names, others } = shape;
      return [...names.values(), ...others].flatMap(({ values }) => values.map(({ goal }) => goal));
    }
    default:
      return [];
  }
}

function neededGoals(shape: Shape): Goal[] {
  if (shape.kind === "object") {
    return [...shape.names.values()].filter(({ isRequired }) => isRequired)
      .flatMap(({ values }) => values.map(({ goal }) => goal));
  }
  return shape.kind === "array" ? [...shape.prefix, shape.rest].slice(0, shape.min) : [];
}

// As bytes of UTF-8, each a character: how the reader looks names up.
function latin1(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
}

const scanners = new Map<string, Automaton>();

// Scanners that every schema asks for are shared, and with them what is known of their tokens.
function shared(key: string, make: () => Automaton): Automaton {
  let automaton = scanners.get(key);
  if (!automaton) scanners.set(key, automaton = make());
  return automaton;
}

function wordLeaf(words: readonly string[]): Leaf {
  const key = [...words].sort().join(" ");
  return {
    kind: "leaf",
    automaton: shared(key, () => scannerOf({ kind: "words", words }, "raw")),
  };
}

function numberLeaf(rule: NumberRule): Leaf {
  const make = () => spell(createDfa(numberParts(rule)), "raw");
  const isPlain = rule.low === -Infinity && rule.high === Infinity && !rule.points &&
    rule.excluded.length === 0 && rule.multiples.length === 0;
  const key = `number ${rule.isWhole} ${rule.isBroken}`;
  return { kind: "leaf", automaton: isPlain ? shared(key, make) : make() };
}

function hasNumbers(rule: NumberRule): boolean {
  const { low, high, isWhole, isBroken, points, excluded, multiples } = rule;
  if (points || excluded.length > 0 || multiples.length > 0) {
    return !createDfa(numberParts(rule)).isEmpty;
  }
  if (isWhole && Math.ceil(low) <= Math.floor(high)) return true;
  return isBroken && (low < high || low === high && !Number.isInteger(low));
}

function isFree({ min, max }: TextShape): boolean {
  return min === 0 && max === Infinity;
}

function textLeaf(shape: TextShape): Leaf {
  const { parts, min, max } = shape;
  const automaton = parts.length > 0 ? spell(createDfa(parts), "json") : ANY_STRING.automaton;
  if (isFree(shape)) return { kind: "leaf", automaton };
  return { kind: "leaf", automaton, bounds: createBounds(automaton.dfa, { min, max }) };
}

function hasTexts(shape: TextShape): boolean {
  const { parts, min, max } = shape;
  if (parts.length === 0) return min <= max;
  const dfa = createDfa(orAny(parts));
  if (dfa.isEmpty) return false;
  const bounds: Bounds | undefined = isFree(shape) ? undefined : createBounds(dfa, { min, max });
  return !bounds || bounds.canFinish(0, 0);
}
