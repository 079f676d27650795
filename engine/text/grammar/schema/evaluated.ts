// What the schemas at one place have a say in, for unevaluatedProperties and unevaluatedItems (draft 2020-12, 11): members
// by name and pattern, and the first items. Where it hangs on which of several schemas hold (anyOf, oneOf, if,
// dependentSchemas), each possibility is a case with its conditions; where it hangs on values (contains), it is refused.

import { isRecord, pathOf, type SchemaNode } from "./document.ts";
import { type Place, refuse } from "./place.ts";
import type { Literal } from "./statement.ts";

/** What has been looked at. */
export interface Evaluated {
  readonly names: readonly string[];
  readonly patterns: readonly { readonly source: string; readonly path: string }[];
  readonly hasAllMembers: boolean;
  /** So many of the first items; Infinity: all. */
  readonly items: number;
}

/** What has been looked at where some schemas hold. */
export interface EvaluatedCase extends Evaluated {
  readonly conditions: readonly Literal[];
}

/** Most cases of one place, and most schemas of which any may hold. */
const MOST_CASES = 256;
const MOST_OPTIONAL = 4;

const NOTHING: EvaluatedCase = {
  ...{ names: [], patterns: [], hasAllMembers: false, items: 0, conditions: [] },
};

/** The cases of a schema with a keyword about what is left over, which does not count itself. */
export function evaluatedCases(place: Place): readonly EvaluatedCase[] {
  return casesOf(place.node, { place, left: new Set() }, place.keyword);
}

interface Look {
  readonly place: Place;
  /** Schemas that are being looked at: what leads back to itself is refused elsewhere. */
  readonly left: ReadonlySet<SchemaNode>;
}

function casesOf(
  node: SchemaNode,
  { place, left }: Look,
  except: string | undefined,
): readonly EvaluatedCase[] {
  const { schema } = node;
  if (typeof schema === "boolean" || left.has(node)) return [NOTHING];
  const { document } = place;
  const look: Look = { place, left: new Set(left).add(node) };
  const below = (keyword: string, ...names: (string | number)[]) =>
    document.child(node, keyword, ...names);
  const has = (keyword: string) => keyword !== except && schema[keyword] !== undefined;
  let cases: readonly EvaluatedCase[] = [ownCase(node, { has, place })];
  const join = (others: readonly EvaluatedCase[]) => {
    cases = cases.flatMap((one) => others.map((other) => joined(one, other)));
    if (cases.length > MOST_CASES) refuse(place, `has more than ${MOST_CASES} cases`);
  };
  if (!document.hasSiblings(node)) return casesOf(document.resolve(node, "$ref"), look, undefined);
  for (const keyword of ["$ref", "$dynamicRef"] as const) {
    if (has(keyword)) join(casesOf(document.resolve(node, keyword), look, undefined));
  }
  for (const i of indexes(schema.allOf)) join(casesOf(below("allOf", i), look, undefined));
  if (has("oneOf")) {
    join(
      indexes(schema.oneOf).flatMap((i) =>
        given(casesOf(below("oneOf", i), look, undefined), [
          is(below("oneOf", i)),
        ])
      ),
    );
  }
  if (has("anyOf")) {
    for (const one of optional(indexes(schema.anyOf).map((i) => below("anyOf", i)), look)) {
      join(one);
    }
  }
  if (has("if")) {
    const condition = below("if");
    const branch = (keyword: "then" | "else") =>
      has(keyword) ? casesOf(below(keyword), look, undefined) : [NOTHING];
    const then = casesOf(condition, look, undefined).flatMap((one) =>
      branch("then").map((other) => joined(one, other))
    );
    join([...given(then, [is(condition)]), ...given(branch("else"), [isNot(condition)])]);
  }
  for (
    const name of Object.keys(isRecord(schema.dependentSchemas) ? schema.dependentSchemas : {})
  ) {
    const one = casesOf(below("dependentSchemas", name), look, undefined);
    if (one.every(isNothing)) continue;
    const isThere = document.made({ type: "object", required: [name] }, node);
    join([...given(one, [is(isThere)]), { ...NOTHING, conditions: [isNot(isThere)] }]);
  }
  return cases;
}

// Schemas of which any may hold, each alone: it does and has its say, or it does not.
function optional(nodes: readonly SchemaNode[], look: Look): (readonly EvaluatedCase[])[] {
  const telling = nodes.map((node) => ({ node, cases: casesOf(node, look, undefined) }))
    .filter(({ cases }) => !cases.every(isNothing));
  if (telling.length > MOST_OPTIONAL) {
    refuse(look.place, `hangs on more than ${MOST_OPTIONAL} schemas that may hold`);
  }
  return telling.map(({ node, cases }) => [
    ...given(cases, [is(node)]),
    { ...NOTHING, conditions: [isNot(node)] },
  ]);
}

function ownCase(
  node: SchemaNode,
  { has, place }: { has: (keyword: string) => boolean; place: Place },
): EvaluatedCase {
  const schema = node.schema as Readonly<Record<string, unknown>>;
  const keys = (keyword: string) => Object.keys(isRecord(schema[keyword]) ? schema[keyword] : {});
  if (place.keyword === "unevaluatedItems" && has("contains")) {
    refuse(place, "beside contains it hangs on the items");
  }
  const { prefixItems, items } = schema;
  const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
  const hasRest = has("items") && !Array.isArray(items) || has("unevaluatedItems") ||
    Array.isArray(items) && has("additionalItems");
  return {
    names: keys("properties"),
    patterns: keys("patternProperties").map((source) => ({
      ...{ source, path: pathOf(node.path, "patternProperties", source) },
    })),
    hasAllMembers: has("additionalProperties") || has("unevaluatedProperties"),
    items: hasRest ? Infinity : first.length,
    conditions: [],
  };
}

function joined(a: EvaluatedCase, b: EvaluatedCase): EvaluatedCase {
  return {
    names: [...new Set([...a.names, ...b.names])],
    patterns: [...a.patterns, ...b.patterns],
    hasAllMembers: a.hasAllMembers || b.hasAllMembers,
    items: Math.max(a.items, b.items),
    conditions: [...a.conditions, ...b.conditions],
  };
}

function given(
  cases: readonly EvaluatedCase[],
  conditions: readonly Literal[],
): readonly EvaluatedCase[] {
  return cases.map((one) => ({ ...one, conditions: [...one.conditions, ...conditions] }));
}

function isNothing({ names, patterns, hasAllMembers, items, conditions }: EvaluatedCase): boolean {
  return names.length === 0 && patterns.length === 0 && !hasAllMembers && items === 0 &&
    conditions.length === 0;
}

const is = (node: SchemaNode): Literal => ({ node, isNegated: false });
const isNot = (node: SchemaNode): Literal => ({ node, isNegated: true });

function indexes(list: unknown): number[] {
  return Array.isArray(list) ? [...list.keys()] : [];
}
