// Shapes: what a list of atoms allows of one type, ready to become a part of a grammar.

import { UnsupportedError } from "../../../errors.ts";
import { createDfa, type Dfa, numberOf, type Part } from "../dfa.ts";
import { ANY, type Regular } from "../nfa.ts";
import { ALL_TYPES, type Atom, keyOf, type Literal, type Pattern, TYPE } from "./statement.ts";
import { isRecord } from "./document.ts";
import type { Goal, Goals } from "./goals.ts";
import type { NumberRule } from "./numbers.ts";
import { allowsValue, isMeant, literalsOfMember, typeOf } from "./values.ts";

/** Values of one type. */
export type Shape =
  | { readonly kind: "word"; readonly text: "null" | "true" | "false" }
  | { readonly kind: "number"; readonly rule: NumberRule }
  | TextShape
  | ArrayShape
  | ObjectShape;

/** Texts: all parts hold, within bounds of their length. */
export interface TextShape {
  readonly kind: "text";
  readonly parts: readonly Part[];
  readonly min: number;
  readonly max: number;
}

/** Arrays. */
export interface ArrayShape {
  readonly kind: "array";
  readonly prefix: readonly Goal[];
  readonly rest: Goal;
  readonly min: number;
  readonly max: number;
  readonly contains: ContainsShape | undefined;
  readonly isUnique: boolean;
}

/** Items of which there must be so many; `inside` and `outside` by place, the last for all further ones. */
export interface ContainsShape {
  readonly min: number;
  readonly max: number;
  readonly inside: readonly Goal[];
  readonly outside: readonly Goal[];
}

/** Objects. */
export interface ObjectShape {
  readonly kind: "object";
  readonly names: ReadonlyMap<string, MemberShape>;
  readonly others: readonly { readonly key: TextShape; readonly values: readonly ValueShape[] }[];
  readonly min: number;
  readonly max: number;
  /** By bit, demands that some member has to meet. */
  readonly demands: number;
}

/** A member of a name. */
export interface MemberShape {
  readonly values: readonly ValueShape[];
  readonly isRequired: boolean;
}

/** One of the values that a member may have. */
export interface ValueShape {
  readonly goal: Goal;
  /** By bit, demands that it meets. */
  readonly meets: number;
}

/** Names that a pattern of few names is written out as, at most. */
const MOST_NAMES = 256;
/** Most states of a pattern of names that are looked at to see how many names there are. */
const MOST_SEEN = 2 ** 14;
/** Most demands that members of an object have to meet. */
const MOST_DEMANDS = 4;
/** Most patterns of names that may hold at once. */
const MOST_PATTERNS = 6;

type Of<K extends Atom["kind"]> = Atom & { readonly kind: K };

/** The shapes of a goal. */
export function shapesOf(goals: Goals, goal: Goal): readonly Shape[] {
  return shapesOfTypes(goals, goal, ALL_TYPES);
}

function shapesOfTypes(goals: Goals, goal: Goal, types: number): readonly Shape[] {
  const byKey = new Map<string, Shape>();
  const listed = new Map<string, unknown>();
  const branches = goals.branches(goal);
  for (const atoms of branches) {
    const values = atoms.filter((atom) => atom.kind === "values").find((atom) => !atom.isNegated);
    if (values) { for (const value of values.values) listed.set(keyOf(value), value); }
    else {for (const shape of shapesOfAtoms(goals, atoms, types)) {
        byKey.set(branches.length > 1 ? shapeKey(shape) : String(byKey.size), shape);
      }}
  }
  const allowed = [...listed.values()].filter((value) =>
    (types & typeOf(value)) !== 0 &&
    goal.literals.every((literal) => allowsValue(goals.document, { literal, value }))
  );
  return [...withoutSmaller([...byKey.values()]), ...shapesOfValues(goals, goal, allowed)];
}

// Beside any text, other texts say nothing.
function withoutSmaller(shapes: readonly Shape[]): readonly Shape[] {
  const all = shapes.find((shape) =>
    shape.kind === "text" && shape.parts.length === 0 && shape.min === 0 && shape.max === Infinity
  );
  return all ? shapes.filter((shape) => shape.kind !== "text" || shape === all) : shapes;
}

function shapeKey(shape: Shape): string {
  return JSON.stringify(
    shape,
    (_, value) =>
      value instanceof Map
        ? [...value]
        : isRecord(value) && "literals" in value
        ? value.id
        : isRecord(value) && "regular" in value && (value.regular as Regular).kind !== "words"
        ? `${value.isNegated ? "!" : ""}${numberOf(value.regular as Regular)}`
        : value === Infinity || value === -Infinity
        ? String(value)
        : value,
  );
}

function shapesOfValues(
  goals: Goals,
  { path, literals }: Goal,
  values: readonly unknown[],
): Shape[] {
  const shapes: Shape[] = [];
  const words: string[] = [];
  const points: number[] = [];
  const node = literals[0]?.node ?? goals.document.root;
  const constant = (value: unknown) =>
    goals.of([{
      node: goals.document.made({ const: value }, { ...node, path }),
      isNegated: false,
    }]);
  for (const value of values) {
    if (typeof value === "string") words.push(value);
    else if (typeof value === "number") points.push(value);
    else if (Array.isArray(value)) {
      const prefix = value.map(constant);
      const { length } = value;
      const bounds = { min: length, max: length, contains: undefined, isUnique: false };
      shapes.push({ kind: "array", prefix, rest: goals.of([]), ...bounds });
    } else if (isRecord(value)) {
      const names = new Map(
        Object.entries(value).map(([name, one]): [string, MemberShape] => [
          ...[name, { values: [{ goal: constant(one), meets: 0 }], isRequired: true }] as const,
        ]),
      );
      shapes.push({ kind: "object", names, others: [], min: 0, max: Infinity, demands: 0 });
    } else shapes.push({ kind: "word", text: String(value) as "null" });
  }
  if (words.length > 0) {
    const parts = [{ regular: { kind: "words", words } satisfies Regular }];
    shapes.push({ kind: "text", parts, min: 0, max: Infinity });
  }
  if (points.length > 0) {
    const bounds = { low: -Infinity, high: Infinity, isWhole: true, isBroken: true };
    shapes.push({ kind: "number", rule: { ...bounds, points, excluded: [], multiples: [] } });
  }
  return shapes;
}

function shapesOfAtoms(goals: Goals, atoms: readonly Atom[], wanted: number): Shape[] {
  const of = <K extends Atom["kind"]>(kind: K) =>
    atoms.filter((atom) => atom.kind === kind) as Of<K>[];
  const types = of("types").reduce((all, { types }) => all & types, wanted);
  const refused = of("values").flatMap(({ values, place }) =>
    values.map((value) => ({ value, place }))
  );
  const isRefused = (value: unknown) => refused.some((one) => one.value === value);
  const shapes: Shape[] = [];
  if (types & TYPE.null && !isRefused(null)) shapes.push({ kind: "word", text: "null" });
  if (types & TYPE.boolean) {
    if (!isRefused(true)) shapes.push({ kind: "word", text: "true" });
    if (!isRefused(false)) shapes.push({ kind: "word", text: "false" });
  }
  if (types & (TYPE.whole | TYPE.broken)) {
    const rule: NumberRule = {
      low: Math.max(-Infinity, ...of("range").map(({ low }) => low)),
      high: Math.min(Infinity, ...of("range").map(({ high }) => high)),
      isWhole: (types & TYPE.whole) !== 0,
      isBroken: (types & TYPE.broken) !== 0,
      excluded: refused.map(({ value }) => value).filter((value) => typeof value === "number"),
      multiples: of("multiple"),
    };
    if (rule.low <= rule.high) shapes.push({ kind: "number", rule });
  }
  if (types & TYPE.string) {
    const words = refused.map(({ value }) => value).filter((value) => typeof value === "string");
    const excluded: Part[] = words.length > 0
      ? [{ regular: { kind: "words", words }, isNegated: true }]
      : [];
    const parts = [...of("text").map(({ part }) => part), ...excluded];
    shapes.push({ kind: "text", parts, ...bounds(of("length")) });
  }
  const composed: [number, (empty: boolean) => Shape | undefined][] = [
    [TYPE.array, (isFilled) => arrayShape(goals, of, isFilled)],
    [TYPE.object, (isFilled) => objectShape(goals, of, isFilled)],
  ];
  for (const [type, make] of composed) {
    if (!(types & type)) continue;
    const own = refused.filter(({ value }) => typeOf(value) === type);
    const other = own.find(({ value }) => Object.keys(value as object).length > 0);
    if (other) {
      throw new UnsupportedError("all but one array or object is not supported", {
        place: other.place,
      });
    }
    const shape = make(own.length > 0);
    if (shape) shapes.push(shape);
  }
  return shapes;
}

function bounds(atoms: readonly { readonly min: number; readonly max: number }[]) {
  return {
    min: Math.max(0, ...atoms.map(({ min }) => min)),
    max: Math.min(Infinity, ...atoms.map(({ max }) => max)),
  };
}

type Select = <K extends Atom["kind"]>(kind: K) => Of<K>[];

function arrayShape(goals: Goals, of: Select, isFilled: boolean): ArrayShape | undefined {
  const lists = of("list");
  const at = (i: number) =>
    lists.flatMap(({ prefix, rest }) => i < prefix.length ? [prefix[i]!] : rest ? [rest] : []);
  const asked = of("contains").filter(({ min, max }) => min > 0 || max < Infinity);
  const counted = asked.length > 1 ? joined(asked) : asked[0];
  const length = Math.max(0, counted?.from ?? 0, ...lists.map(({ prefix }) => prefix.length));
  const { min, max } = bounds(of("items"));
  const least = Math.max(min, isFilled ? 1 : 0);
  if (least > max) return undefined;
  const contains = counted && containsShape(goals, { at, counted, length });
  return {
    kind: "array",
    prefix: Array.from({ length }, (_, i) => goals.of(at(i))),
    rest: goals.of(at(length)),
    ...{ min: least, max, contains },
    isUnique: of("unique").length > 0,
  };
}

// Several counts of the same kind are one; of different kinds they are not counted.
function joined(asked: readonly Of<"contains">[]): Of<"contains"> {
  const [first, ...others] = asked as [Of<"contains">, ...Of<"contains">[]];
  for (const { item, from, place } of others) {
    const isSame = item.node === first.item.node && item.isNegated === first.item.isNegated;
    if (isSame && from === first.from) continue;
    throw new UnsupportedError("a second kind of items that must be there is not supported", {
      place,
    });
  }
  return { ...first, ...bounds(asked) };
}

function containsShape(
  goals: Goals,
  { at, counted, length }: {
    at: (i: number) => Literal[];
    counted: Of<"contains">;
    length: number;
  },
): ContainsShape {
  const { item, min, max, from } = counted;
  const not: Literal = { node: item.node, isNegated: !item.isNegated };
  const none: Literal = { node: goals.document.made(false, item.node), isNegated: false };
  const places = Array.from({ length: length + 1 }, (_, i) => i);
  return {
    ...{ min, max },
    inside: places.map((i) => goals.of([...at(i), i < from ? none : item])),
    // Where there may be any number of them, what is not counted may be of the kind too.
    outside: places.map((i) => goals.of(max === Infinity || i < from ? at(i) : [...at(i), not])),
  };
}

function objectShape(goals: Goals, of: Select, isFilled: boolean): ObjectShape | undefined {
  const objects = of("object");
  const demands = of("exists");
  const required = new Set(of("required").flatMap(({ names }) => names));
  const nameRules = of("names").map(({ name }) => name);
  const sources = new Map([
    ...objects.flatMap(({ patterns }) =>
      patterns.map(([source, parts]): Pattern => [source, parts])
    ),
    ...demands.flatMap(({ pattern, others }) => pattern ? [pattern] : others),
  ]);
  const names = new Set([
    ...objects.flatMap(({ named }) => [...named.keys()]),
    ...demands.flatMap((demand) => [...demand.names]),
    ...required,
  ]);
  for (const parts of sources.values()) for (const name of fewTexts(parts)) names.add(name);
  const { min, max } = bounds(of("members"));
  const least = Math.max(min, isFilled ? 1 : 0);
  if (least > max || required.size > max) return undefined;
  if (demands.length > 0 && max < Infinity || demands.length > MOST_DEMANDS) {
    throw new UnsupportedError(
      "the negation of this keyword is not supported beside maxProperties",
      { place: demands[0]!.place },
    );
  }
  const valuesOf = (literals: readonly Literal[], isMeantBy: (demand: Of<"exists">) => boolean) =>
    valueShapes(
      goals,
      literals,
      demands.map((demand) => isMeantBy(demand) ? demand.value : undefined),
    );
  const members = new Map<string, MemberShape>();
  for (const name of names) {
    const literals = objects.flatMap((atom) => literalsOfMember(atom, name));
    const isName = nameRules.every((rule) =>
      allowsValue(goals.document, { literal: rule, value: name })
    );
    const never = { node: goals.document.made(false, goals.document.root), isNegated: false };
    const values = valuesOf(isName ? literals : [never], (demand) => isMeant(demand, name));
    members.set(name, { values, isRequired: required.has(name) });
  }
  const keys = nameShapes(goals, nameRules);
  const others = patternSets([...sources.keys()], objects).flatMap((set) => {
    const literals = objects.flatMap(({ patterns, others }) => {
      const own = patterns.filter(([source]) => set.has(source)).map(([, , literal]) => literal);
      return own.length > 0 ? own : others ? [others] : [];
    });
    if (goals.of(literals).literals.some(({ node, isNegated }) => node.schema === isNegated)) {
      return [];
    }
    const values = valuesOf(
      literals,
      ({ pattern, others }) =>
        pattern ? set.has(pattern[0]) : !others.some(([source]) => set.has(source)),
    );
    // Where every other name is free, the reader looks the known ones up, and all schemas share one scanner.
    const isFree = sources.size === 0 && nameRules.length === 0;
    const known: Part[] = names.size > 0 && !isFree
      ? [{ regular: { kind: "words", words: [...names] }, isNegated: true }]
      : [];
    return keyParts(sources, set).flatMap((own) =>
      keys.map(({ parts, min, max }) => ({ parts: [...own, ...parts], min, max }))
    ).filter(({ parts, min, max }) =>
      min <= max && (hasMoreTexts(parts, names.size) || !createDfa([...parts, ...known]).isEmpty)
    ).map(({ parts, ...bounds }) => ({
      key: { kind: "text" as const, parts: [...parts, ...known], ...bounds },
      values,
    }));
  });
  return {
    ...{ kind: "object", names: members, others, min: least, max },
    demands: (1 << demands.length) - 1,
  };
}

// A value that meets a demand, and one that need not; where nothing is asked of it, being there is enough.
function valueShapes(
  goals: Goals,
  literals: readonly Literal[],
  demands: readonly (Literal | undefined)[],
): ValueShape[] {
  let values: { literals: readonly Literal[]; meets: number }[] = [{ literals, meets: 0 }];
  for (const [bit, demand] of demands.entries()) {
    if (!demand) continue;
    const isFree = goals.of([demand]).literals.length === 0;
    values = values.flatMap((value) => [
      { literals: [...value.literals, demand], meets: value.meets | 1 << bit },
      ...isFree ? [] : [value],
    ]);
  }
  return values.map(({ literals, meets }) => ({ goal: goals.of(literals), meets }));
}

/** Parts, or any text where there are none. */
export function orAny(parts: readonly Part[]): readonly Part[] {
  return parts.length > 0 ? parts : [{ regular: ANY }];
}

function nameShapes(goals: Goals, rules: readonly Literal[]): readonly TextShape[] {
  return shapesOfTypes(goals, goals.of(rules), TYPE.string) as readonly TextShape[];
}

// Which patterns may hold for one name: any of them, or none.
function patternSets(sources: readonly string[], objects: readonly Of<"object">[]): Set<string>[] {
  if (sources.length > MOST_PATTERNS) {
    throw new UnsupportedError(`more than ${MOST_PATTERNS} patterns of names are not supported`, {
      place: objects.find(({ patterns }) => patterns.length > 0)!.place,
    });
  }
  return Array.from(
    { length: 1 << sources.length },
    (_, bits) => new Set(sources.filter((_, i) => bits >> i & 1)),
  );
}

// Names for which just these patterns hold; several lists of parts, since a pattern of several parts fails in several
// ways.
function keyParts(
  sources: ReadonlyMap<string, readonly Part[]>,
  set: ReadonlySet<string>,
): Part[][] {
  let lists: Part[][] = [[]];
  for (const [source, parts] of sources) {
    lists = lists.flatMap((list) =>
      set.has(source) ? [[...list, ...parts]] : parts.map((
        { regular, isNegated = false },
      ) => [...list, { regular, isNegated: !isNegated }])
    );
  }
  return lists;
}

// Whether a language has more texts than so many, seen without counting them all.
function hasMoreTexts(parts: readonly Part[], count: number): boolean {
  const dfa = createDfa(orAny(parts));
  if (dfa.isEmpty) return false;
  let left = count + 1;
  const seen = new Set([0]);
  for (const state of seen) {
    const list = dfa.transitions(state);
    for (let i = 0; i < list.length; i += 3) {
      left -= list[i + 1]! - list[i]!; // each character but the last leads to another text
      seen.add(list[i + 2]!);
    }
    if (left <= 0) return true;
    if (seen.size > MOST_SEEN) {
      throw new UnsupportedError(`a pattern of names has more than ${MOST_SEEN} states`);
    }
  }
  return false;
}

// The texts of a language that has few of them; none if it has more.
function fewTexts(parts: readonly Part[]): string[] {
  const dfa = createDfa(parts);
  const texts: string[] = [];
  return !dfa.isEmpty && listTexts(dfa, 0, { prefix: "", texts }) ? texts : [];
}

function listTexts(
  dfa: Dfa,
  state: number,
  { prefix, texts }: { prefix: string; texts: string[] },
): boolean {
  if (dfa.accepts(state)) texts.push(prefix);
  if (texts.length > MOST_NAMES || prefix.length > MOST_NAMES) return false;
  const list = dfa.transitions(state);
  for (let i = 0; i < list.length; i += 3) {
    if (list[i + 1]! - list[i]! > MOST_NAMES) return false;
    for (let point = list[i]!; point <= list[i + 1]!; point++) {
      const next = prefix + String.fromCodePoint(point);
      if (!listTexts(dfa, list[i + 2]!, { prefix: next, texts })) return false;
    }
  }
  return true;
}
