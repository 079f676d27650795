// Jinja's global functions, and the two that transformers adds.

import { bind, type Call, integerArgument, textArgument } from "./call_arguments.ts";
import type { Budget } from "./budget.ts";
import { fail, TemplateFailure } from "./failure.ts";
import { plainText } from "./python_text.ts";
import { REFUSED_GLOBALS, refuseListed } from "./refused.ts";
import { formatDate } from "./strftime.ts";
import {
  callable,
  defined,
  dictKey,
  isDict,
  iterate,
  listOfKind,
  type Namespace,
  type Value,
} from "./values.ts";

const MAX_RANGE = 100_000;

function range({ args, named, budget }: Call): Value {
  if (named.size > 0) fail("range() takes no keyword arguments");
  if (args.length < 1 || args.length > 3) fail("range takes 1 to 3 arguments");
  const numbers = args.map((arg) => integerArgument(arg));
  const [start, stop] = numbers.length === 1 ? [0, numbers[0]] : numbers;
  const step = numbers[2] ?? 1;
  if (step === 0) fail("the step of a range cannot be zero");
  const count = Math.max(0, Math.ceil((stop - start) / step));
  if (count > MAX_RANGE) {
    throw new TemplateFailure(`a range of ${count} is longer than ${MAX_RANGE}`, { isLimit: true });
  }
  budget.spend(count);
  const shown = `range(${start}, ${stop}${step === 1 ? "" : `, ${step}`})`;
  return listOfKind("range", {
    items: Array.from({ length: count }, (_, i) => start + i * step),
    shown,
  });
}

/** `dict(pairs or dict, **named)`. */
function dict({ args, named, budget }: Call): Map<Value, Value> {
  if (args.length > 1) fail(`dict expected at most 1 argument, got ${args.length}`);
  const made = new Map<Value, Value>();
  const source = args[0] && defined(args[0]);
  if (source !== undefined && isDict(source)) { for (const [k, v] of source) made.set(k, v); }
  else if (source !== undefined) {
    for (const pair of iterate(source)) {
      const [key, value, ...more] = iterate(pair);
      if (value === undefined || more.length > 0) fail("dict needs pairs");
      made.set(dictKey(key), value);
    }
  }
  for (const [key, value] of named) made.set(key, value);
  budget.spend(made.size);
  return made;
}

function cycler({ args }: Call): Value {
  if (args.length === 0) fail("at least one item has to be provided");
  const values = new Map<string, Value>([["current", args[0]]]);
  let at = 0;
  const goTo = (place: number) => {
    at = place % args.length;
    values.set("current", args[at]);
    return null;
  };
  const next = () => {
    const item = args[at];
    goTo(at + 1);
    return item;
  };
  values.set("reset", callable("reset", () => goTo(0)));
  values.set("next", callable("next", next));
  return { tag: "namespace", type: "Cycler", values, isFixed: true };
}

function joiner(call: Call): Value {
  const separator = textArgument(bind(call, "sep")[0], ", ");
  let isUsed = false;
  return {
    tag: "namespace",
    type: "Joiner",
    values: new Map<string, Value>([["sep", separator]]),
    isFixed: true,
    call: () => {
      const shown = isUsed ? separator : "";
      isUsed = true;
      return shown;
    },
  };
}

function namespace(call: Call): Namespace {
  const values = new Map(Array.from(dict(call), ([key, value]) => [String(key), value]));
  return { tag: "namespace", type: "Namespace", values, isFixed: false };
}

type Global = (call: Call, now: Date) => Value;

/** The global functions, by name. */
export const GLOBALS: ReadonlyMap<string, Global> = new Map<string, Global>([
  ["cycler", cycler],
  ["dict", dict],
  ["joiner", joiner],
  ["namespace", namespace],
  ["raise_exception", (call: Call) => fail(plainText(bind(call, "message")[0], call.budget))],
  ["range", range],
  [
    "strftime_now",
    (call: Call, now: Date) => formatDate(now, textArgument(bind(call, "format")[0])),
  ],
]);

/** The global functions of a rendering. */
export function createGlobals(now: Date, budget: Budget): Map<string, Value> {
  const globals = new Map<string, Value>();
  const define = (name: string, run: (call: Call) => Value) =>
    globals.set(name, callable(name, (args, named) => run({ name, args, named, budget })));
  for (const [name, run] of GLOBALS) define(name, (call) => run(call, now));
  for (const name of REFUSED_GLOBALS.keys()) {
    define(name, () => {
      refuseListed(name, { what: "function", table: REFUSED_GLOBALS });
      return null;
    });
  }
  return globals;
}
