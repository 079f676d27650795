// Keywords of JSON Schema, each as a statement and as what holds where it does not. Negations go inwards until they are
// atoms again (Baazizi et al. 2023, "Negation-Closure for JSON Schema"); where that needs what no atom says, the keyword
// is refused by its path.

import { FormatError, UnsupportedError } from "../../../errors.ts";
import type { Part } from "../dfa.ts";
import { parsePattern } from "../pattern.ts";
import { pathOf, type SchemaDocument, type SchemaNode } from "./document.ts";
import { type Evaluated, evaluatedCases } from "./evaluated.ts";
import { FORMATS } from "./formats.ts";
import {
  asBoolean,
  asCount,
  asList,
  asMap,
  asNumber,
  asText,
  asTexts,
  type Place,
  refuse,
  wrong,
} from "./place.ts";
import { nextDouble } from "./numbers.ts";
import {
  ALL_TYPES,
  type Atom,
  holds,
  keyOf,
  type Literal,
  never,
  ofType,
  oneOf,
  only,
  type Pattern,
  type Statement,
  together,
  TYPE,
} from "./statement.ts";

const NUMBER = TYPE.whole | TYPE.broken;

const TYPE_NAMES: Readonly<Record<string, number>> = {
  ...{ null: TYPE.null, boolean: TYPE.boolean, integer: TYPE.whole, number: NUMBER },
  ...{ string: TYPE.string, array: TYPE.array, object: TYPE.object },
};

/** What a keyword says: with it, and with its negation. */
interface Meaning {
  readonly is: Statement;
  /** Alternatives, one of which holds where the keyword does not; absent where that cannot be said. */
  readonly not?: () => readonly Statement[];
}

const statements = new WeakMap<SchemaNode, Map<boolean, Statement>>();

/** What a literal says. */
export function statementOf(document: SchemaDocument, literal: Literal): Statement {
  const { node, isNegated } = literal;
  let own = statements.get(node);
  if (!own) statements.set(node, own = new Map());
  let statement = own.get(isNegated);
  if (!statement) own.set(isNegated, statement = readStatement(document, literal));
  return statement;
}

function readStatement(document: SchemaDocument, { node, isNegated }: Literal): Statement {
  const { schema } = node;
  if (typeof schema === "boolean") return schema === isNegated ? never : only();
  const meanings: Meaning[] = [];
  const names: string[] = [];
  for (const keyword of Object.keys(schema)) {
    if (keyword !== "$ref" && !document.hasSiblings(node)) continue;
    const read = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword]! : undefined;
    if (!read || schema[keyword] === undefined) continue;
    const path = pathOf(node.path, keyword);
    const place = { document, node, schema, keyword, path, value: schema[keyword] };
    const meaning = read(place);
    if (!meaning) continue;
    meanings.push(meaning);
    names.push(path);
  }
  if (!isNegated) return together(...meanings.map(({ is }) => is));
  return oneOf(meanings.flatMap(({ not }, i) => {
    if (not) return not();
    throw new UnsupportedError("the negation of this keyword is not supported", {
      place: names[i],
    });
  }));
}

const KEYWORDS: Readonly<Record<string, (place: Place) => Meaning | undefined>> = {
  type: typeMeaning,
  enum: (place) => valuesMeaning(place, asList(place)),
  const: (place) => valuesMeaning(place, [place.value]),
  minimum: (place) =>
    place.schema.exclusiveMinimum === true
      ? lowMeaning(nextDouble(asNumber(place), 1))
      : lowMeaning(asNumber(place)),
  maximum: (place) =>
    place.schema.exclusiveMaximum === true
      ? highMeaning(nextDouble(asNumber(place), -1))
      : highMeaning(asNumber(place)),
  exclusiveMinimum: (place) =>
    typeof place.value === "boolean" && place.document.isOld
      ? undefined
      : lowMeaning(nextDouble(asNumber(place), 1)),
  exclusiveMaximum: (place) =>
    typeof place.value === "boolean" && place.document.isOld
      ? undefined
      : highMeaning(nextDouble(asNumber(place), -1)),
  multipleOf: multipleMeaning,
  pattern: (place) => textMeaning(patternOf(place, asText(place))),
  format: formatMeaning,
  minLength: (place) => countMeaning("length", TYPE.string, { min: asCount(place) }),
  maxLength: (place) => countMeaning("length", TYPE.string, { max: asCount(place) }),
  minItems: (place) => countMeaning("items", TYPE.array, { min: asCount(place) }),
  maxItems: (place) => countMeaning("items", TYPE.array, { max: asCount(place) }),
  minProperties: (place) => countMeaning("members", TYPE.object, { min: asCount(place) }),
  maxProperties: (place) => countMeaning("members", TYPE.object, { max: asCount(place) }),
  prefixItems: (place) => listMeaning(place, asSchemas(place), "items"),
  items: itemsMeaning,
  contains: containsMeaning,
  uniqueItems: (place) =>
    asBoolean(place) ? { is: only({ kind: "unique", place: place.path }) } : undefined,
  properties: objectMeaning,
  patternProperties: (place) =>
    place.schema.properties === undefined ? objectMeaning(place) : undefined,
  additionalProperties: (place) =>
    place.schema.properties === undefined && place.schema.patternProperties === undefined
      ? objectMeaning(place)
      : undefined,
  required: requiredMeaning,
  propertyNames: (place) => ({ is: only({ kind: "names", name: literalOf(place) }) }),
  dependentRequired: dependentMeaning,
  dependentSchemas: dependentMeaning,
  dependencies: dependentMeaning,
  allOf: (place) => {
    const all = asSchemas(place);
    return { is: holds(...all), not: () => all.map((one) => holds(negated(one))) };
  },
  anyOf: (place) => {
    const all = asSchemas(place);
    return {
      is: oneOf(all.map((one) => holds(one))),
      not: () => [holds(...all.map(negated))],
    };
  },
  oneOf: oneOfMeaning,
  not: (place) => {
    const one = literalOf(place);
    return { is: holds(negated(one)), not: () => [holds(one)] };
  },
  if: ifMeaning,
  $ref: referenceMeaning,
  $dynamicRef: referenceMeaning,
  unevaluatedItems: (place) => unevaluatedMeaning(place, unevaluatedItems),
  unevaluatedProperties: (place) => unevaluatedMeaning(place, unevaluatedMembers),
  $recursiveRef: (place) => refuse(place, "is of an older draft"),
};

/** The opposite. */
function negated({ node, isNegated }: Literal): Literal {
  return { node, isNegated: !isNegated };
}

function literalOf({ document, node, keyword }: Place, ...names: (string | number)[]): Literal {
  return { node: document.child(node, keyword, ...names), isNegated: false };
}

function asSchemas(place: Place): Literal[] {
  const list = asList(place);
  if (list.length === 0) wrong(place, "an empty list");
  return list.map((_, i) => literalOf(place, i));
}

function patternOf({ path }: Pick<Place, "path">, source: string): readonly Part[] {
  try {
    return parsePattern(source);
  } catch (error) {
    if (!(error instanceof FormatError || error instanceof UnsupportedError)) throw error;
    const Kind = error instanceof FormatError ? FormatError : UnsupportedError;
    throw new Kind(error.message, { place: path, cause: error });
  }
}

function typeMeaning(place: Place): Meaning {
  const names = typeof place.value === "string" ? [place.value] : asTexts(place);
  let types = 0;
  for (const name of names) {
    if (!Object.hasOwn(TYPE_NAMES, name)) wrong(place, `no type: ${JSON.stringify(name)}`);
    types |= TYPE_NAMES[name]!;
  }
  return { is: ofType(types), not: () => [ofType(ALL_TYPES & ~types)] };
}

function valuesMeaning({ path }: Place, values: readonly unknown[]): Meaning {
  const keys = new Set(values.map(keyOf));
  const atom = (isNegated: boolean) =>
    only({ kind: "values", values, keys, isNegated, place: path });
  return { is: atom(false), not: () => [atom(true)] };
}

function lowMeaning(low: number): Meaning {
  return {
    is: only({ kind: "range", low, high: Infinity }),
    not: () => [ofType(NUMBER, { kind: "range", low: -Infinity, high: nextDouble(low, -1) })],
  };
}

function highMeaning(high: number): Meaning {
  return {
    is: only({ kind: "range", low: -Infinity, high }),
    not: () => [ofType(NUMBER, { kind: "range", low: nextDouble(high, 1), high: Infinity })],
  };
}

function multipleMeaning(place: Place): Meaning {
  const of = asNumber(place);
  if (of <= 0) wrong(place, "not above 0");
  const atom = (isNegated: boolean): Atom => ({
    kind: "multiple",
    of,
    isNegated,
    place: place.path,
  });
  return { is: only(atom(false)), not: () => [ofType(NUMBER, atom(true))] };
}

// Parts hold together; where they do not, one of them fails.
function textMeaning(parts: readonly Part[]): Meaning {
  return {
    is: only(...parts.map((part): Atom => ({ kind: "text", part }))),
    not: () =>
      parts.map(({ regular, isNegated = false }) =>
        ofType(TYPE.string, { kind: "text", part: { regular, isNegated: !isNegated } })
      ),
  };
}

function formatMeaning(place: Place): Meaning | undefined {
  const name = asText(place);
  if (!FORMATS.has(name)) return undefined;
  const source = FORMATS.get(name);
  // Older drafts leave it to everyone which formats to look at.
  if (source === undefined && place.document.isOld) return undefined;
  if (source === undefined) return refuse(place, `format ${name} is not supported`);
  return textMeaning(parsePattern(`^${source}$`));
}

function countMeaning(
  kind: "length" | "items" | "members",
  type: number,
  { min = 0, max = Infinity }: { min?: number; max?: number },
): Meaning {
  return {
    is: only({ kind, min, max }),
    not: () => [
      ...min > 0 ? [ofType(type, { kind, min: 0, max: min - 1 })] : [],
      ...max < Infinity ? [ofType(type, { kind, min: max + 1, max: Infinity })] : [],
    ],
  };
}

// Items by place, and with them those behind, which another keyword describes.
function listMeaning(place: Place, prefix: readonly Literal[], restKeyword: string): Meaning {
  const rest = place.schema[restKeyword] === undefined
    ? undefined
    : literalOf({ ...place, keyword: restKeyword });
  return {
    is: only({ kind: "list", prefix, rest }),
    not: () => [
      ...prefix.map((one, i) => {
        const before = prefix.slice(0, i).map(() => ANYTHING(place));
        const list: Atom = { kind: "list", prefix: [...before, negated(one)], rest: undefined };
        return ofType(TYPE.array, list, { kind: "items", min: i + 1, max: Infinity });
      }),
      ...rest
        ? [containing(negated(rest), { min: 1, max: Infinity, from: prefix.length, place })]
        : [],
    ],
  };
}

const ANYTHING = ({ document, node }: Place): Literal => ({
  node: document.made(true, node),
  isNegated: false,
});

function itemsMeaning(place: Place): Meaning | undefined {
  if (Array.isArray(place.value)) {
    if (!place.document.isOld) wrong(place, "a list, which draft 2020-12 calls prefixItems");
    return listMeaning(place, asSchemas(place), "additionalItems");
  }
  return place.schema.prefixItems === undefined ? listMeaning(place, [], "items") : undefined;
}

interface Containing {
  readonly min: number;
  readonly max: number;
  readonly from: number;
  readonly place: Place;
}

function containing(item: Literal, { min, max, from, place }: Containing): Statement {
  return ofType(TYPE.array, { kind: "contains", item, min, max, from, place: place.path });
}

function containsMeaning(place: Place): Meaning {
  const { schema, node } = place;
  const count = (keyword: string, otherwise: number) =>
    schema[keyword] === undefined
      ? otherwise
      : asCount({ ...place, value: schema[keyword], path: pathOf(node.path, keyword) });
  const item = literalOf(place);
  const min = count("minContains", 1);
  const max = count("maxContains", Infinity);
  return {
    is: only({ kind: "contains", item, min, max, from: 0, place: place.path }),
    not: () => [
      ...min > 0 ? [containing(item, { min: 0, max: min - 1, from: 0, place })] : [],
      ...max < Infinity ? [containing(item, { min: max + 1, max: Infinity, from: 0, place })] : [],
    ],
  };
}

// The three keywords about values of members belong together.
function objectMeaning(place: Place): Meaning {
  const { schema, node } = place;
  const sub = (keyword: string): Place => ({
    ...place,
    keyword,
    path: pathOf(node.path, keyword),
    value: schema[keyword],
  });
  const named = new Map<string, Literal>();
  if (schema.properties !== undefined) {
    const at = sub("properties");
    for (const [name] of asMap(at)) named.set(name, literalOf(at, name));
  }
  const patterns: (readonly [string, readonly Part[], Literal])[] = [];
  if (schema.patternProperties !== undefined) {
    const at = sub("patternProperties");
    for (const [source] of asMap(at)) {
      const path = pathOf(at.path, source);
      patterns.push([source, patternOf({ path }, source), literalOf(at, source)]);
    }
  }
  const others = schema.additionalProperties === undefined
    ? undefined
    : literalOf(sub("additionalProperties"));
  const names = new Set(named.keys());
  const pairs = patterns.map(([source, parts]): Pattern => [source, parts]);
  const exists = (value: Literal, pattern?: Pattern) =>
    ofType(TYPE.object, {
      ...{
        kind: "exists",
        value: negated(value),
        pattern,
        names,
        others: pairs,
        place: place.path,
      },
    });
  return {
    is: only({ kind: "object", named, patterns, others, place: place.path }),
    not: () => [
      ...[...named].map(([name, value]) =>
        ofType(
          TYPE.object,
          { kind: "required", names: [name] },
          member(place, name, negated(value)),
        )
      ),
      ...patterns.map(([source, parts, value]) => exists(value, [source, parts])),
      ...others && others.node.schema !== true ? [exists(others)] : [],
    ],
  };
}

// A statement about the value of one member, if it is there.
function member({ path }: Place, name: string, value: Literal): Atom {
  const named = new Map([[name, value]]);
  return { kind: "object", named, patterns: [], others: undefined, place: path };
}

function absent(place: Place, name: string): Atom {
  const value = { node: place.document.made(false, place.node), isNegated: false };
  return member(place, name, value);
}

function requiredMeaning(place: Place): Meaning | undefined {
  if (typeof place.value === "boolean" && place.document.isOld) return undefined; // draft 3
  const names = asTexts(place);
  return {
    is: only({ kind: "required", names }),
    not: () => names.map((name) => ofType(TYPE.object, absent(place, name))),
  };
}

function dependentMeaning(place: Place): Meaning {
  const statements: Statement[] = [];
  const failing: Statement[] = [];
  for (const [name, value] of asMap(place)) {
    const present: Atom = { kind: "required", names: [name] };
    if (Array.isArray(value)) {
      const names = asTexts(place, value);
      if (names.length === 0) continue;
      statements.push(oneOf([
        only(absent(place, name)),
        ofType(TYPE.object, present, { kind: "required", names }),
      ]));
      failing.push(...names.map((other) => ofType(TYPE.object, present, absent(place, other))));
    } else {
      const one = literalOf(place, name);
      const isPresent = ofType(TYPE.object, present);
      statements.push(oneOf([only(absent(place, name)), together(isPresent, holds(one))]));
      failing.push(together(isPresent, holds(negated(one))));
    }
  }
  return { is: together(...statements), not: () => failing };
}

// Each one without the others.
function oneOfMeaning(place: Place): Meaning {
  const all = asSchemas(place);
  return {
    is: oneOf(
      all.map((one) => {
        const others = all.filter((other) => other !== one);
        return holds(one, ...others.map((other) => ({ ...negated(other), beside: [one] })));
      }),
    ),
    not: () => [
      holds(...all.map(negated)),
      ...all.flatMap((one, i) => all.slice(i + 1).map((other) => holds(one, other))),
    ],
  };
}

function ifMeaning(place: Place): Meaning | undefined {
  const { schema } = place;
  if (schema.then === undefined && schema.else === undefined) return undefined;
  const condition = literalOf(place);
  const branch = (keyword: "then" | "else") =>
    schema[keyword] === undefined ? ANYTHING(place) : literalOf({ ...place, keyword });
  const [yes, no] = [branch("then"), branch("else")];
  return {
    is: oneOf([holds(condition, yes), holds(negated(condition), no)]),
    not: () => [holds(condition, negated(yes)), holds(negated(condition), negated(no))],
  };
}

function referenceMeaning(place: Place): Meaning {
  const keyword = place.keyword as "$ref" | "$dynamicRef";
  const one = { node: place.document.resolve(place.node, keyword), isNegated: false };
  return { is: holds(one), not: () => [holds(negated(one))] };
}

// What is left over, by each way in which the schemas at this place can hold.
function unevaluatedMeaning(
  place: Place,
  atomOf: (found: Evaluated, rest: Literal, place: Place) => Atom | undefined,
): Meaning {
  const rest = literalOf(place);
  const cases = evaluatedCases(place).map(({ conditions, ...found }) => {
    const atom = atomOf(found, rest, place);
    return together(holds(...conditions), ...atom ? [only(atom)] : []);
  });
  return { is: cases.length === 1 ? cases[0]! : oneOf(cases) };
}

function unevaluatedMembers(
  { names, patterns, hasAllMembers }: Evaluated,
  rest: Literal,
  place: Place,
): Atom | undefined {
  if (hasAllMembers) return undefined;
  const anything = ANYTHING(place);
  return {
    ...{ kind: "object", named: new Map([...names].map((name) => [name, anything])) },
    ...{ others: rest, place: place.path },
    patterns: patterns.map(({ source, path }) => [source, patternOf({ path }, source), anything]),
  };
}

function unevaluatedItems(
  { items }: Evaluated,
  rest: Literal,
  place: Place,
): Atom | undefined {
  if (items === Infinity) return undefined;
  return { kind: "list", prefix: Array.from({ length: items }, () => ANYTHING(place)), rest };
}
