// A goal is a set of schemas that must hold at one place, some of them negated; equal ones are one, so that recursive
// schemas end. What a goal allows is a list of shapes, each about one type: the disjunctive normal form of what its
// schemas say.

import { FormatError, UnsupportedError } from "../../../errors.ts";
import { statementOf } from "./keywords.ts";
import { literalsOfMember } from "./values.ts";
import { ALL_TYPES, type Atom, keyOf, type Literal, type Statement } from "./statement.ts";
import type { SchemaDocument, SchemaNode } from "./document.ts";

/** Schemas that must hold at one place. */
export interface Goal {
  readonly id: number;
  readonly literals: readonly Literal[];
  /** The path of one of them. */
  readonly path: string;
}

/** Most alternatives of a goal, and steps until they are found. */
const MOST_BRANCHES = 1024;
const MOST_STEPS = 16_384;
/** How deep it is looked whether two schemas can hold at once. */
const DISJOINT_DEPTH = 3;

interface Branch {
  readonly atoms: readonly Atom[];
  readonly types: number;
  readonly todo: readonly (Literal | readonly Statement[])[];
  readonly done: ReadonlySet<string>;
}

/** What is known of the values of some schemas at a glance. */
interface Glance {
  readonly types: number;
  /** Members with few possible values, by name. */
  readonly tags: ReadonlyMap<string, ReadonlySet<string>>;
  readonly required: ReadonlySet<string>;
  readonly values: ReadonlySet<string> | undefined;
}

/** All goals of a document. */
export class Goals {
  readonly document: SchemaDocument;
  readonly #byKey = new Map<string, Goal>();
  readonly #branches = new Map<Goal, readonly (readonly Atom[])[]>();
  readonly #glances = new Map<string, Glance>();
  readonly #disjoint = new Map<string, boolean>();
  /** By schema, whether it is known not to lead to itself at the same place; false while that is looked at. */
  readonly #ending = new Map<SchemaNode, boolean>();

  constructor(document: SchemaDocument) {
    this.document = document;
  }

  /** The goal of some schemas. */
  of(literals: readonly Literal[]): Goal {
    const byKey = new Map<string, Literal>();
    for (const literal of literals) {
      if (literal.node.schema === !literal.isNegated) continue; // says nothing
      byKey.set(literalKey(literal), literal);
    }
    const keys = [...byKey.keys()].sort();
    const key = keys.join(" ");
    let goal = this.#byKey.get(key);
    if (!goal) {
      const own = keys.map((one) => byKey.get(one)!);
      const path = own[0]?.node.path ?? literals[0]?.node.path ?? "#";
      goal = { id: this.#byKey.size, literals: own, path };
      this.#byKey.set(key, goal);
    }
    return goal;
  }

  /** Lists of atoms, of which one holds wherever the goal does. */
  branches(goal: Goal): readonly (readonly Atom[])[] {
    let branches = this.#branches.get(goal);
    if (!branches) this.#branches.set(goal, branches = this.#expand(goal));
    return branches;
  }

  #expand(goal: Goal): (readonly Atom[])[] {
    const ready: (readonly Atom[])[] = [];
    const open: Branch[] = [{
      ...{ atoms: [], types: ALL_TYPES, todo: goal.literals, done: new Set() },
    }];
    let steps = 0;
    for (let branch = open.pop(); branch; branch = open.pop()) {
      if (branch.todo.length === 0) ready.push(branch.atoms);
      else open.push(...this.#steps(branch));
      if (open.length + ready.length > MOST_BRANCHES || ++steps > MOST_STEPS) {
        throw new UnsupportedError(`allows more than ${MOST_BRANCHES} kinds of values at once`, {
          place: goal.path,
        });
      }
    }
    return ready;
  }

  // What a branch becomes by its next statement: choices and negations, which are choices too, come last.
  #steps(branch: Branch): Branch[] {
    const rank = (item: Literal | readonly Statement[]) =>
      !("node" in item) ? 1 : item.isNegated ? 2 : 0;
    const next = branch.todo.reduce((a, b) => rank(b) < rank(a) ? b : a);
    const todo = branch.todo.filter((item) => item !== next);
    if (!("node" in next)) {
      return next.flatMap((statement) => this.#with({ ...branch, todo }, statement));
    }
    const key = literalKey(next);
    if (branch.done.has(key)) return [{ ...branch, todo }];
    if (branch.done.has(literalKey({ ...next, isNegated: !next.isNegated }))) return [];
    if (next.isNegated) {
      const other = { node: next.node, isNegated: false };
      if (next.beside?.some((one) => this.#areDisjoint(one, other))) {
        return [{ ...branch, todo }];
      }
    }
    this.#refuseCycle(next.node);
    const done = new Set(branch.done).add(key);
    const statement = statementOf(this.document, next);
    return this.#with({ ...branch, todo, done }, statement);
  }

  // Schemas that hold at the same place, and again the first one: what that means, no rule says.
  #refuseCycle(node: SchemaNode): void {
    const known = this.#ending.get(node);
    if (known) return;
    if (known === false) {
      throw new FormatError("refers to itself and says nothing else", { place: node.path });
    }
    this.#ending.set(node, false);
    const todo = [statementOf(this.document, { node, isNegated: false })];
    for (const { literals, choices } of todo) {
      for (const literal of literals) this.#refuseCycle(literal.node);
      todo.push(...choices.flat());
    }
    this.#ending.set(node, true);
  }

  #with(branch: Branch, { atoms, literals, choices }: Statement): Branch[] {
    let { types } = branch;
    for (const atom of atoms) if (atom.kind === "types") types &= atom.types;
    if (types === 0) return [];
    return [{
      ...branch,
      types,
      atoms: [...branch.atoms, ...atoms],
      todo: [...branch.todo, ...literals, ...choices],
    }];
  }

  #areDisjoint(a: Literal, b: Literal): boolean {
    const key = `${literalKey(a)} ${literalKey(b)}`;
    let known = this.#disjoint.get(key);
    if (known === undefined) {
      this.#disjoint.set(key, false); // for those who ask while this is being found out
      known = differ(this.#glance(a), this.#glance(b)) ||
        this.#isPlainlyEmpty(this.of([a, b]), DISJOINT_DEPTH);
      this.#disjoint.set(key, known);
    }
    return known;
  }

  // Without a look at choices.
  #glance(literal: Literal): Glance {
    const key = literalKey(literal);
    const known = this.#glances.get(key);
    if (known) return known;
    let types = ALL_TYPES;
    let values: ReadonlySet<string> | undefined;
    const tags = new Map<string, ReadonlySet<string>>();
    const required = new Set<string>();
    const todo = [literal];
    const seen = new Set<string>();
    for (const one of todo) {
      if (seen.has(literalKey(one))) continue;
      seen.add(literalKey(one));
      const { atoms, literals } = statementOf(this.document, one);
      todo.push(...literals.filter(({ isNegated }) => !isNegated));
      for (const atom of atoms) {
        if (atom.kind === "types") types &= atom.types;
        if (atom.kind === "required") { for (const name of atom.names) required.add(name); }
        if (atom.kind === "values" && !atom.isNegated) values = atom.keys;
        if (atom.kind !== "object") continue;
        for (const [name, { node: { schema } }] of atom.named) {
          if (typeof schema === "boolean") continue;
          const list = "const" in schema ? [schema.const] : schema.enum;
          if (Array.isArray(list)) tags.set(name, new Set(list.map(keyOf)));
        }
      }
    }
    const glance = { types, tags, required, values };
    this.#glances.set(key, glance);
    return glance;
  }

  // Whether every branch contradicts itself in a way that is seen without following recursion.
  #isPlainlyEmpty(goal: Goal, depth: number): boolean {
    return this.branches(goal).every((atoms) => this.#contradicts(atoms, depth));
  }

  #contradicts(atoms: readonly Atom[], depth: number): boolean {
    let types = ALL_TYPES;
    let values: Set<string> | undefined;
    let low = -Infinity;
    let high = Infinity;
    const required = new Set<string>();
    const objects = atoms.filter((atom) => atom.kind === "object");
    for (const atom of atoms) {
      if (atom.kind === "types") types &= atom.types;
      else if (atom.kind === "values" && !atom.isNegated) {
        const own = [...atom.keys].filter((key) => !values || values.has(key));
        values = new Set(own);
      } else if (atom.kind === "range") {
        low = Math.max(low, atom.low);
        high = Math.min(high, atom.high);
      } else if (atom.kind === "required") { for (const name of atom.names) required.add(name); }
    }
    if (values?.size === 0) return true;
    if (low > high) types &= ~(4 | 8);
    const isObjectEmpty = depth > 0 && [...required].some((name) => {
      const literals = objects.flatMap((atom) => literalsOfMember(atom, name));
      return literals.length > 0 && this.#isPlainlyEmpty(this.of(literals), depth - 1);
    });
    if (isObjectEmpty) types &= ~64;
    return types === 0;
  }
}

/** A text by which equal literals are known. */
function literalKey({ node: { id }, isNegated }: Literal): string {
  return isNegated ? `!${id}` : String(id);
}

function differ(a: Glance, b: Glance): boolean {
  if ((a.types & b.types) === 0) return true;
  if (a.values && b.values) return a.values.isDisjointFrom(b.values);
  if (((a.types & b.types) & ~64) !== 0) return false;
  for (const [name, values] of a.tags) {
    const others = b.tags.get(name);
    const isThere = a.required.has(name) || b.required.has(name);
    if (others && isThere && values.isDisjointFrom(others)) return true;
  }
  return false;
}
