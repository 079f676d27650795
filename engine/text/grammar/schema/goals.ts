// A goal is a set of schemas that must hold at one place, some of them negated; equal ones are one, so that recursive
// schemas end. What a goal allows is a list of shapes, each about one type: the disjunctive normal form of what its
// schemas say.

import { FormatError, UnsupportedError } from "../../../errors.ts";
import { statementOf } from "./keywords.ts";
import { literalsOfMember } from "./values.ts";
import { ALL_TYPES, type Atom, keyOf, type Literal, type Statement, TYPE } from "./statement.ts";
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
/** How deep it is looked whether two schemas can hold at once: into members, and into choices, of so many alternatives. */
const DISJOINT_DEPTH = 3;
const CHOICE_DEPTH = 3;
const MOST_LOOKS = 32;

type ObjectAtom = Atom & { readonly kind: "object" };

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
  /** What is said of members, for those that must not be there. */
  readonly objects: readonly ObjectAtom[];
  /** What was not looked at. */
  readonly choices: readonly (readonly Statement[])[];
}

/** All goals of a document. */
export class Goals {
  readonly document: SchemaDocument;
  readonly #byKey = new Map<string, Goal>();
  readonly #branches = new Map<Goal, readonly (readonly Atom[])[]>();
  readonly #glances = new Map<string, Glance>();
  readonly #branchGlances = new WeakMap<readonly Atom[], Glance>();
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

  // What a branch becomes by its next statement: choices and negations, which are choices too, come last, and of choices
  // the one with the fewest alternatives that can still hold.
  #steps(branch: Branch): Branch[] {
    const rank = (item: Literal | readonly Statement[]) =>
      !("node" in item) ? 2 + item.length : item.isNegated ? 1 : 0;
    const next = branch.todo.reduce((a, b) => rank(b) < rank(a) ? b : a);
    const todo = branch.todo.filter((item) => item !== next);
    if (!("node" in next)) {
      if (next.some((statement) => isImplied(statement, branch))) return [{ ...branch, todo }];
      const open = next.filter((statement) => !isRefuted(statement, branch));
      return open.flatMap((statement) => this.#with({ ...branch, todo }, statement));
    }
    const key = literalKey(next);
    if (branch.done.has(key)) return [{ ...branch, todo }];
    if (branch.done.has(literalKey({ ...next, isNegated: !next.isNegated }))) return [];
    if (next.isNegated) {
      const other = { node: next.node, isNegated: false };
      if (
        next.beside?.some((one) => this.#areDisjoint(one, other)) ||
        this.#differ(this.#glanceAt(branch), this.#glance(other), CHOICE_DEPTH)
      ) return [{ ...branch, todo }];
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
    if (types === 0 || isRefuted({ atoms, literals, choices }, branch)) return [];
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
      known = this.#differ(this.#glance(a), this.#glance(b), CHOICE_DEPTH) ||
        this.#isPlainlyEmpty(this.of([a, b]), DISJOINT_DEPTH);
      this.#disjoint.set(key, known);
    }
    return known;
  }

  #glance(literal: Literal): Glance {
    const key = literalKey(literal);
    const known = this.#glances.get(key);
    if (known) return known;
    const glance = this.#glanceOf({ atoms: [], literals: [literal], choices: [] });
    this.#glances.set(key, glance);
    return glance;
  }

  #glanceAt({ atoms }: Branch): Glance {
    let glance = this.#branchGlances.get(atoms);
    if (!glance) {
      this.#branchGlances.set(atoms, glance = this.#glanceOf({ atoms, literals: [], choices: [] }));
    }
    return glance;
  }

  // Without a look at negations; choices are left for who needs them.
  #glanceOf(statement: Statement): Glance {
    let types = ALL_TYPES;
    let values: ReadonlySet<string> | undefined;
    const tags = new Map<string, ReadonlySet<string>>();
    const required = new Set<string>();
    const objects: ObjectAtom[] = [];
    const choices: (readonly Statement[])[] = [];
    const todo = [statement];
    const seen = new Set<string>();
    for (const one of todo) {
      choices.push(...one.choices);
      for (const literal of one.literals) {
        if (literal.isNegated || seen.has(literalKey(literal))) continue;
        seen.add(literalKey(literal));
        todo.push(statementOf(this.document, literal));
      }
      for (const atom of one.atoms) {
        if (atom.kind === "types") types &= atom.types;
        if (atom.kind === "required") { for (const name of atom.names) required.add(name); }
        if (atom.kind === "values" && !atom.isNegated) values = atom.keys;
        if (atom.kind !== "object") continue;
        objects.push(atom);
        for (const [name, { node, isNegated }] of atom.named) {
          const own = isNegated ? undefined : valuesOf(node);
          if (own) tags.set(name, own);
        }
      }
    }
    return { types, tags, required, values, objects, choices };
  }

  // Whether no value is of both; of a choice each alternative must differ.
  #differ(a: Glance, b: Glance, depth: number): boolean {
    if (differ(a, b)) return true;
    if (depth === 0) return false;
    const every = (one: Glance, other: Glance) =>
      one.choices.some((choice) =>
        choice.length <= MOST_LOOKS &&
        choice.every((statement) =>
          this.#differ(merged(one, this.#glanceOf(statement)), other, depth - 1)
        )
      );
    return every(a, b) || every(b, a);
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
    if (low > high) types &= ~(TYPE.whole | TYPE.broken);
    const isObjectEmpty = depth > 0 && [...required].some((name) => {
      const literals = objects.flatMap((atom) => literalsOfMember(atom, name));
      return literals.length > 0 && this.#isPlainlyEmpty(this.of(literals), depth - 1);
    });
    if (isObjectEmpty) types &= ~TYPE.object;
    return types === 0;
  }
}

// Whether a statement cannot hold beside what a branch says already, at a glance: a member that must be there and must
// not, or of whose few values none is left; for values that can be objects only.
function isRefuted({ atoms }: Statement, branch: Branch): boolean {
  let { types } = branch;
  for (const atom of atoms) if (atom.kind === "types") types &= atom.types;
  if (types === 0) return true;
  if (types !== TYPE.object) return false;
  const isObject = (atom: Atom) => atom.kind === "object";
  const fresh = atoms.filter(isObject);
  const objects = [...branch.atoms.filter(isObject), ...fresh];
  const refutes = (names: readonly string[], told: readonly ObjectAtom[]) =>
    names.some((name) =>
      told.some((atom) => forbids(atom, name)) ||
      told.some(({ named }) => named.has(name) && valuesOf(named.get(name)!.node)) &&
        hasNoValue(objects, name)
    );
  return atoms.some((atom) => atom.kind === "required" && refutes(atom.names, objects)) ||
    fresh.length > 0 &&
      branch.atoms.some((atom) => atom.kind === "required" && refutes(atom.names, fresh));
}

// Whether none of the few values of a member is left.
function hasNoValue(objects: readonly ObjectAtom[], name: string): boolean {
  let left: ReadonlySet<string> | undefined;
  for (const { named } of objects) {
    const literal = named.get(name);
    const values = literal && !literal.isNegated && valuesOf(literal.node);
    if (values) left = left ? left.intersection(values) : values;
  }
  if (!left) return false;
  for (const { named } of objects) {
    const literal = named.get(name);
    const values = literal?.isNegated ? valuesOf(literal.node) : undefined;
    if (values && Object.keys(literal!.node.schema).length === 1) left = left.difference(values);
  }
  return left.size === 0;
}

const valueSets = new WeakMap<SchemaNode, ReadonlySet<string> | undefined>();

/** The values of a schema with const or enum, others of its keywords left aside. */
function valuesOf(node: SchemaNode): ReadonlySet<string> | undefined {
  if (valueSets.has(node)) return valueSets.get(node);
  const { schema } = node;
  const list = typeof schema === "boolean" || schema.$ref !== undefined
    ? undefined
    : "const" in schema
    ? [schema.const]
    : schema.enum;
  const values = Array.isArray(list) ? new Set(list.map(keyOf)) : undefined;
  valueSets.set(node, values);
  return values;
}

// Whether a statement says nothing new, at a glance: types, members that must be there or must not.
function isImplied({ atoms, literals, choices }: Statement, branch: Branch): boolean {
  return literals.length === 0 && choices.length === 0 && atoms.every((atom) => {
    if (atom.kind === "types") return (branch.types & ~atom.types) === 0;
    if (atom.kind === "required") {
      return atom.names.every((name) =>
        branch.atoms.some((other) => other.kind === "required" && other.names.includes(name))
      );
    }
    const isAbsence = atom.kind === "object" && atom.patterns.length === 0 && !atom.others &&
      [...atom.named.keys()].every((name) => forbids(atom, name));
    return isAbsence &&
      [...atom.named.keys()].every((name) => branch.atoms.some((other) => forbids(other, name)));
  });
}

/** Whether an object of an atom cannot have a member of that name. */
function forbids(atom: Atom, name: string): boolean {
  if (atom.kind !== "object") return false;
  const { named, patterns, others } = atom;
  const own = named.get(name);
  if (own && isNever(own)) return true;
  const isOpen = own !== undefined || !others || !isNever(others);
  if (isOpen && !patterns.some(([, , literal]) => isNever(literal))) return false;
  return literalsOfMember(atom, name).some(isNever);
}

/** Whether a literal allows nothing, plainly. */
function isNever({ node, isNegated }: Literal): boolean {
  return node.schema === isNegated;
}

/** A text by which equal literals are known. */
function literalKey({ node: { id }, isNegated }: Literal): string {
  return isNegated ? `!${id}` : String(id);
}

function differ(a: Glance, b: Glance): boolean {
  if ((a.types & b.types) === 0) return true;
  if (a.values && b.values) return a.values.isDisjointFrom(b.values);
  if ((a.types & b.types & ~TYPE.object) !== 0) return false;
  if (cannotHave(a, b.required) || cannotHave(b, a.required)) return true;
  for (const [name, values] of a.tags) {
    const others = b.tags.get(name);
    const isThere = a.required.has(name) || b.required.has(name);
    if (others && isThere && values.isDisjointFrom(others)) return true;
  }
  return false;
}

function merged(a: Glance, b: Glance): Glance {
  const tags = new Map(a.tags);
  for (const [name, values] of b.tags) {
    const own = tags.get(name);
    tags.set(name, own ? own.intersection(values) : values);
  }
  return {
    types: a.types & b.types,
    tags,
    required: a.required.union(b.required),
    values: a.values && b.values ? a.values.intersection(b.values) : a.values ?? b.values,
    objects: [...a.objects, ...b.objects],
    choices: b.choices,
  };
}

function cannotHave({ objects }: Glance, names: ReadonlySet<string>): boolean {
  return objects.some((atom) => [...names].some((name) => forbids(atom, name)));
}
