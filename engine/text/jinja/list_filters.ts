// Filters of lists, and those that take other filters or tests by name. What Python leaves to a generator is one here,
// too: it counts as true however empty, has no length and is gone through once.

import { bind, type Call, integerArgument, textArgument } from "./call_arguments.ts";
import { fail } from "./failure.ts";
import {
  asNumber,
  asText,
  attributeOf,
  type Filter,
  foldCase,
  itemsOf,
  lengthOfValue,
} from "./filter_arguments.ts";
import { BINARY } from "./operators.ts";
import { applyPredicate, PREDICATE_NAMES } from "./predicates.ts";
import { joinTexts } from "./text_methods.ts";
import {
  areEqual,
  compare,
  defined,
  dictKey,
  isDict,
  isList,
  isMarkup,
  isTrue,
  isUndefined,
  kindOf,
  listOfKind,
  markupValue,
  orElse,
  textOf,
  tupleValue,
  typeName,
  undefinedValue,
  type Value,
} from "./values.ts";

function generator(items: Iterable<Value>): Value {
  return listOfKind("generator", { items });
}

/** How items are sorted. */
interface Order {
  readonly isReversed: boolean;
  readonly isCased: boolean;
  readonly by: Value;
  readonly fallback?: Value | undefined;
  /** Several attributes between commas: lists of keys, whose equal parts need no order. */
  readonly isMulti?: boolean;
}

function sorted(items: readonly Value[], order: Order, call: Call): Value[] {
  const { isReversed, isCased, by, fallback, isMulti = false } = order;
  const paths: Value[] = isMulti && typeof by === "string" ? by.split(",") : [by];
  const keyed = items.map((item) => ({
    item,
    keys: paths.map((path) =>
      foldCase(attributeOf(item, path, { budget: call.budget, fallback }), isCased)
    ),
  }));
  const direction = isReversed ? -1 : 1;
  return keyed.sort((a, b) => direction * compareKeys(a.keys, b.keys, isMulti)).map(({ item }) =>
    item
  );
}

function compareKeys(a: readonly Value[], b: readonly Value[], isMulti: boolean): number {
  return isMulti ? compare(a, b) : compare(a[0], b[0]);
}

function sort(value: Value, call: Call): Value {
  const [isReversed, isCased, by] = bind(call, "reverse", "case_sensitive", "attribute");
  const order = { isReversed: isTrue(isReversed), isCased: isTrue(isCased), by, isMulti: true };
  return sorted(itemsOf(value, call), order, call);
}

function extreme(sign: number): Filter {
  return (value, call) => {
    const [isCased, by] = bind(call, "case_sensitive", "attribute");
    const [first, ...rest] = itemsOf(value, call);
    if (first === undefined) return undefinedValue("No aggregated item, sequence was empty.");
    const keyOf = (item: Value) => foldCase(attributeOf(item, by, call), isTrue(isCased));
    let [best, bestKey] = [first, keyOf(first)];
    for (const item of rest) {
      const key = keyOf(item);
      if (sign * compare(key, bestKey) > 0) [best, bestKey] = [item, key];
    }
    return best;
  };
}

/** select, reject, selectattr and rejectattr: the test's name and its arguments come last. */
function choosing(keeps: boolean, hasAttribute: boolean): Filter {
  return (value, call) => {
    const [path, rest] = hasAttribute
      ? [orElse(call.args[0], () => fail(`${call.name} needs an attribute`)), call.args.slice(1)]
      : [null, call.args];
    const [test, ...args] = rest;
    const name = test === undefined ? undefined : textArgument(test);
    if (name !== undefined && !PREDICATE_NAMES.has(name)) fail(`No test named '${name}'`);
    if (!isTrue(value)) return generator([]);
    return generator(
      itemsOf(value, call).filter((item) => {
        const tested = attributeOf(item, path, call);
        const holds = name === undefined
          ? isTrue(tested)
          : applyPredicate(tested, { ...call, name, args });
        return holds === keeps;
      }),
    );
  };
}

function groupBy(value: Value, call: Call): Value {
  const [by, given, cased] = bind(call, "attribute", "default", "case_sensitive");
  defined(by);
  const isCased = isTrue(cased);
  const fallback = isUndefined(given) ? undefined : given;
  const keyOf = (item: Value) => attributeOf(item, by, { budget: call.budget, fallback });
  const groups: Value[][] = [];
  let last: Value | undefined;
  for (
    const item of sorted(itemsOf(value, call), { isReversed: false, isCased, by, fallback }, call)
  ) {
    const key = foldCase(keyOf(item), isCased);
    if (last !== undefined && areEqual(last, key)) groups.at(-1)!.push(item);
    else groups.push([item]);
    last = key;
  }
  return groups.map((items) => listOfKind("group", { items: [keyOf(items[0]), items] }));
}

function unique(value: Value, call: Call): Value {
  const [isCased, by] = bind(call, "case_sensitive", "attribute");
  const seen = new Set<Value>();
  return generator(
    itemsOf(value, call).filter((item) => {
      const found = dictKey(foldCase(attributeOf(item, by, call), isTrue(isCased)));
      const key = typeof found === "boolean" ? Number(found) : found;
      return !seen.has(key) && seen.add(key);
    }),
  );
}

function batch(value: Value, call: Call): Value {
  const [count, filler] = bind(call, "linecount", "fill_with");
  const size = asNumber(count);
  const rows: Value[][] = [];
  let row: Value[] = [];
  for (const item of itemsOf(value, call)) {
    if (row.length === size) {
      rows.push(row);
      row = [];
    }
    row.push(item);
  }
  if (row.length > 0) {
    const isFilled = !isUndefined(filler) && filler !== null;
    if (isFilled) call.budget.spend(Math.max(0, size - row.length));
    while (isFilled && row.length < size) row.push(filler);
    rows.push(row);
  }
  return generator(rows);
}

function slice(value: Value, call: Call): Value {
  const [count, filler] = bind(call, "slices", "fill_with");
  const slices = integerArgument(count);
  if (slices === 0) return fail("integer division or modulo by zero");
  const items = itemsOf(value, call);
  call.budget.spend(Math.max(0, slices));
  const each = Math.floor(items.length / slices);
  const extra = items.length - each * slices;
  const columns: Value[][] = [];
  for (let i = 0, start = 0; i < slices; i++) {
    const end = start + each + Number(i < extra);
    const column = items.slice(start, end);
    if (!isUndefined(filler) && filler !== null && i >= extra) column.push(filler);
    columns.push(column);
    start = end;
  }
  return generator(columns);
}

function dictSort(value: Value, call: Call): Value {
  const [isCased, by, isReversed] = bind(call, "case_sensitive", "by", "reverse");
  defined(value);
  if (!isDict(value)) return fail(`expected a dict, not ${typeName(value)}`);
  call.budget.spend(value.size);
  const place = ["key", "value"].indexOf(textArgument(by, "key"));
  if (place < 0) return fail('You can only sort by either "key" or "value"');
  const order = { isReversed: isTrue(isReversed), isCased: isTrue(isCased), by: place };
  return sorted(Array.from(value, tupleValue), order, call);
}

function reverse(value: Value, call: Call): Value {
  const text = textOf(value);
  const items = itemsOf(value, call).toReversed();
  if (text !== undefined) return isMarkup(value) ? markupValue(items.join("")) : items.join("");
  return isList(value) && kindOf(value) === "generator" ? items : generator(items);
}

function first(value: Value, call: Call): Value {
  const isGenerator = isList(value) && kindOf(value) === "generator";
  const item = isGenerator ? (value as Value[]).shift() : itemsOf(value, call)[0];
  return orElse(item, () => undefinedValue("No first item, sequence was empty."));
}

function last(value: Value, call: Call): Value {
  if (isList(value) && kindOf(value) === "generator") return fail("a generator has no last item");
  return orElse(
    itemsOf(value, call).at(-1),
    () => undefinedValue("No last item, sequence was empty."),
  );
}

function join(value: Value, call: Call): Value {
  const [separator, attribute] = bind(call, "d", "attribute");
  const items = itemsOf(value, call);
  const texts = items.map((item) => asText(attributeOf(item, attribute, call), call));
  return joinTexts(texts, { separator: asText(separator, call), call });
}

function sum(value: Value, call: Call): Value {
  const [by, given] = bind(call, "attribute", "start");
  const start = call.named.has("start") || call.args.length > 1 ? given : 0;
  if (textOf(start) !== undefined) return fail("sum() can't sum strings");
  return itemsOf(value, call).reduce<Value>(
    (total, item) => BINARY["+"](total, attributeOf(item, by, call), call.budget),
    start,
  );
}

function items(value: Value): Value {
  if (isUndefined(value)) return generator([]);
  return isDict(value)
    ? generator(Array.from(value, tupleValue))
    : fail("Can only get item pairs from a mapping.");
}

/** Filters by name. */
export const LIST_FILTERS: readonly (readonly [string, Filter])[] = [
  ["batch", batch],
  ["count", lengthOfValue],
  ["dictsort", dictSort],
  ["first", first],
  ["groupby", groupBy],
  ["items", items],
  ["join", join],
  ["last", last],
  ["length", lengthOfValue],
  ["list", (value, call) => [...itemsOf(value, call)]],
  ["max", extreme(1)],
  ["min", extreme(-1)],
  ["reject", choosing(false, false)],
  ["rejectattr", choosing(false, true)],
  ["reverse", reverse],
  ["select", choosing(true, false)],
  ["selectattr", choosing(true, true)],
  ["slice", slice],
  ["sort", sort],
  ["sum", sum],
  ["unique", unique],
];
