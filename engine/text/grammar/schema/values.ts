// Whether a value is allowed by a schema, for the values of enum and const beside other keywords, and for names of
// members. It reads the same statements that grammars are made of.

import { createDfa, type Dfa, type Part } from "../dfa.ts";
import { statementOf } from "./keywords.ts";
import { type Atom, keyOf, type Literal, type Pattern, type Statement, TYPE } from "./statement.ts";
import { isRecord, type SchemaDocument } from "./document.ts";

/** Whether a value is allowed. */
export function allowsValue(
  document: SchemaDocument,
  { literal, value }: { readonly literal: Literal; readonly value: unknown },
): boolean {
  const { node: { schema }, isNegated } = literal;
  if (typeof schema === "boolean") return schema !== isNegated;
  const positive = isNegated ? { node: literal.node, isNegated: false } : literal;
  return holds(document, statementOf(document, positive), value) !== isNegated;
}

function holds(document: SchemaDocument, statement: Statement, value: unknown): boolean {
  return statement.atoms.every((atom) => atomHolds(document, atom, value)) &&
    statement.literals.every((literal) => allowsValue(document, { literal, value })) &&
    statement.choices.every((choice) => choice.some((one) => holds(document, one, value)));
}

/** The type of a value, as a bit. */
export function typeOf(value: unknown): number {
  if (value === null) return TYPE.null;
  if (Array.isArray(value)) return TYPE.array;
  switch (typeof value) {
    case "boolean":
      return TYPE.boolean;
    case "string":
      return TYPE.string;
    case "number":
      return Number.isInteger(value) ? TYPE.whole : TYPE.broken;
    default:
      return TYPE.object;
  }
}

function atomHolds(document: SchemaDocument, atom: Atom, value: unknown): boolean {
  switch (atom.kind) {
    case "types":
      return (atom.types & typeOf(value)) !== 0;
    case "values":
      return atom.keys.has(keyOf(value)) !== atom.isNegated;
    case "range":
      return typeof value !== "number" || value >= atom.low && value <= atom.high;
    case "multiple":
      return typeof value !== "number" || isMultiple(value, atom.of) !== atom.isNegated;
    case "text":
      return typeof value !== "string" || matches(atom.part, value);
    case "length":
      return typeof value !== "string" || isWithin([...value].length, atom);
    case "items":
      return !Array.isArray(value) || isWithin(value.length, atom);
    case "members":
      return !isRecord(value) || isWithin(Object.keys(value).length, atom);
    case "list":
      return !Array.isArray(value) || value.every((item, i) => {
        const literal = atom.prefix[i] ?? atom.rest;
        return !literal || allowsValue(document, { literal, value: item });
      });
    case "contains": {
      if (!Array.isArray(value)) return true;
      const items = value.slice(atom.from);
      return isWithin(
        items.filter((item) => allowsValue(document, { literal: atom.item, value: item })).length,
        atom,
      );
    }
    case "unique":
      return !Array.isArray(value) || new Set(value.map(keyOf)).size === value.length;
    case "object":
      return !isRecord(value) ||
        Object.entries(value).every(([name, one]) =>
          literalsOfMember(atom, name).every((literal) =>
            allowsValue(document, { literal, value: one })
          )
        );
    case "exists":
      return !isRecord(value) ||
        Object.entries(value).some(([name, one]) =>
          isMeant(atom, name) && allowsValue(document, { literal: atom.value, value: one })
        );
    case "required":
      return !isRecord(value) || atom.names.every((name) => Object.hasOwn(value, name));
    case "names":
      return !isRecord(value) ||
        Object.keys(value).every((name) =>
          allowsValue(document, { literal: atom.name, value: name })
        );
  }
}

/** Whether a name is one of those of which there must be a member. */
export function isMeant(
  { pattern, names, others }: Atom & { readonly kind: "exists" },
  name: string,
): boolean {
  const has = ([, parts]: Pattern) => parts.every((part) => matches(part, name));
  return pattern ? has(pattern) : !names.has(name) && !others.some(has);
}

/** What an atom says about the member of a name. */
export function literalsOfMember(
  { named, patterns, others }: Atom & { readonly kind: "object" },
  name: string,
): Literal[] {
  const found = patterns.filter(([, parts]) => parts.every((part) => matches(part, name)));
  const own = named.get(name);
  const literals = [...own ? [own] : [], ...found.map(([, , literal]) => literal)];
  return literals.length > 0 ? literals : others ? [others] : [];
}

function isWithin(count: number, { min, max }: { min: number; max: number }): boolean {
  return count >= min && count <= max;
}

// By decimal digits, as texts are read.
function isMultiple(value: number, of: number): boolean {
  const [a, b] = [value, of].map(scientific) as [Scientific, Scientific];
  const least = Math.min(a.exponent, b.exponent);
  const whole = ({ digits, exponent }: Scientific) => digits * 10n ** BigInt(exponent - least);
  return whole(a) % whole(b) === 0n;
}

interface Scientific {
  readonly digits: bigint;
  readonly exponent: number;
}

function scientific(value: number): Scientific {
  const [mantissa, exponent] = value.toExponential().split("e") as [string, string];
  const [whole, further = ""] = mantissa.split(".") as [string, string?];
  return { digits: BigInt(whole + further), exponent: Number(exponent) - further.length };
}

const dfas = new WeakMap<Part, Dfa>();

function matches(part: Part, text: string): boolean {
  let dfa = dfas.get(part);
  if (!dfa) dfas.set(part, dfa = createDfa([part]));
  if (dfa.isEmpty) return false;
  let state = 0;
  for (const character of text) {
    const point = character.codePointAt(0)!;
    const list = dfa.transitions(state);
    let next = -1;
    for (let i = 0; i < list.length && list[i]! <= point; i += 3) {
      if (point <= list[i + 1]!) next = list[i + 2]!;
    }
    if (next < 0) return false;
    state = next;
  }
  return dfa.accepts(state);
}
