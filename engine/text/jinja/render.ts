// Runs a parsed template: one function for each type of statement. `if` has no scope of its own, loops,
// macros and `with` have; assignments inside them do not reach out, which is what `namespace` is for.

import { createBudget } from "./budget.ts";
import { bind, textArgument } from "./call_arguments.ts";
import { evaluate, filterValue, lookUp, type Scope } from "./evaluate.ts";
import { fail, TemplateFailure } from "./failure.ts";
import { plainText } from "./python_text.ts";
import { formatDate } from "./strftime.ts";
import type { Body, Parameter, Statement, Target } from "./syntax.ts";
import {
  areEqual,
  type Callable,
  defined,
  fromJavaScript,
  integerValue,
  isDict,
  isList,
  isNamespace,
  isNumber,
  isTrue,
  iterate,
  type Namespace,
  plainNumber,
  typeName,
  undefinedValue,
  type Value,
} from "./values.ts";

/** Limits and the clock of a rendering. */
export interface RenderOptions {
  /** Steps and characters that the template may take. */
  readonly budget: number;
  /** What `strftime_now` takes as now. */
  readonly now: Date;
}

/** Whether a body ran to its end or left a loop. */
type Outcome = "normal" | "break" | "continue";

type Node<T extends Statement["type"]> = Extract<Statement, { type: T }>;
type Runners = {
  [T in Statement["type"]]: (node: Node<T>, scope: Scope, out: string[]) => Outcome;
};

function inner(outer: Scope): Scope {
  return { values: new Map(), outer, budget: outer.budget };
}

const RUNNERS: Runners = {
  text({ text }, scope, out) {
    return write(text, scope, out);
  },
  output({ value }, scope, out) {
    return write(plainText(evaluate(value, scope), scope.budget), scope, out);
  },
  if({ branches, otherwise }, scope, out) {
    const branch = branches.find(({ test }) => isTrue(evaluate(test, scope)));
    return runBody(branch?.body ?? otherwise, scope, out);
  },
  for: runFor,
  set({ target, value }, scope) {
    assign(target, evaluate(value, scope), scope);
    return "normal";
  },
  capture({ target, filters, body }, scope) {
    const text = captureBody(body, inner(scope));
    assign(target, filters.reduce<Value>((v, f) => filterValue(v, f, scope), text), scope);
    return "normal";
  },
  macro({ name, parameters, body }, scope) {
    scope.values.set(name, createMacro(name, parameters, body, scope));
    return "normal";
  },
  callBlock({ parameters, call, body }, scope, out) {
    if (call.type !== "call") return fail("expected a call");
    const around = inner(scope);
    around.values.set("caller", createMacro("caller", parameters, body, scope));
    // The macro sees its caller as a named argument, where createMacro looks for it.
    const caller = { type: "name", name: "caller", line: call.line } as const;
    const args = { ...call.args, named: [...call.args.named, ["caller", caller] as const] };
    return write(plainText(evaluate({ ...call, args }, around), scope.budget), scope, out);
  },
  filterBlock({ filters, body }, scope, out) {
    const text = captureBody(body, inner(scope));
    const result = filters.reduce<Value>((v, f) => filterValue(v, f, scope), text);
    return write(plainText(result, scope.budget), scope, out);
  },
  with({ values, body }, scope, out) {
    const own = inner(scope);
    for (const [name, node] of values) own.values.set(name, evaluate(node, scope));
    return runBody(body, own, out);
  },
  group: ({ body }, scope, out) => runBody(body, scope, out),
  break: () => "break",
  continue: () => "continue",
};

function write(text: string, scope: Scope, out: string[]): Outcome {
  scope.budget.spend(text.length);
  out.push(text);
  return "normal";
}

function runBody(body: Body, scope: Scope, out: string[]): Outcome {
  for (const statement of body) {
    scope.budget.spend(1);
    try {
      const run = RUNNERS[statement.type] as (s: Statement, sc: Scope, out: string[]) => Outcome;
      const outcome = run(statement, scope, out);
      if (outcome !== "normal") return outcome;
    } catch (error) {
      if (error instanceof TemplateFailure && error.line === 0) error.line = statement.line;
      throw error;
    }
  }
  return "normal";
}

function captureBody(body: Body, scope: Scope): string {
  const out: string[] = [];
  runBody(body, scope, out);
  return out.join("");
}

function assign(target: Target, value: Value, scope: Scope): void {
  if (target.type === "attribute") {
    const object = lookUp(scope, target.object);
    if (!isNamespace(object) || object.isFixed) {
      return fail(`cannot assign attribute on a ${typeName(object)}: only a namespace can change`);
    }
    object.values.set(target.name, value);
    return;
  }
  if (target.names.length === 1) {
    scope.values.set(target.names[0], value);
    return;
  }
  const items = iterate(defined(value));
  if (items.length !== target.names.length) {
    fail(`${items.length} values for ${target.names.length} names`);
  }
  target.names.forEach((name, i) => scope.values.set(name, items[i]));
}

function runFor(node: Node<"for">, scope: Scope, out: string[]): Outcome {
  return runLoop(node, evaluate(node.list, scope), scope, out, 0);
}

/** The items that pass the loop's condition. */
function chooseItems({ target, test }: Node<"for">, list: Value, scope: Scope): readonly Value[] {
  const items = iterate(list);
  scope.budget.spend(items.length);
  if (test === undefined) return items;
  return items.filter((item) => {
    const own = inner(scope);
    assign(target, item, own);
    return isTrue(evaluate(test, own));
  });
}

function runLoop(
  node: Node<"for">,
  list: Value,
  scope: Scope,
  out: string[],
  depth: number,
): Outcome {
  const items = chooseItems(node, list, scope);
  const loop: LoopState = { items, depth, changed: undefined };
  for (let i = 0; i < items.length; i++) {
    const own = inner(scope);
    own.values.set(
      "loop",
      loopValue(loop, i, (inside) => {
        if (!node.isRecursive) return fail("the loop is not recursive");
        const text: string[] = [];
        runLoop(node, inside, scope, text, depth + 1);
        return text.join("");
      }),
    );
    assign(node.target, items[i], own);
    if (runBody(node.body, own, out) === "break") return "normal";
  }
  if (items.length === 0) return runBody(node.otherwise, scope, out);
  return "normal";
}

interface LoopState {
  readonly items: readonly Value[];
  readonly depth: number;
  changed: readonly Value[] | undefined;
}

/** The variable `loop`. It can also be called, in a recursive loop. */
function loopValue(
  state: LoopState,
  index: number,
  recurse: (list: Value) => Value,
): Namespace {
  const { items, depth } = state;
  const beside = (at: number, why: string) => items[at] ?? undefinedValue(why);
  const method = (name: string, call: Callable["call"]): Callable => ({
    tag: "callable",
    name,
    call,
  });
  const values = new Map<string, Value>([
    ["index", index + 1],
    ["index0", index],
    ["revindex", items.length - index],
    ["revindex0", items.length - index - 1],
    ["first", index === 0],
    ["last", index === items.length - 1],
    ["length", items.length],
    ["depth", depth + 1],
    ["depth0", depth],
    ["previtem", beside(index - 1, "there is no previous item")],
    ["nextitem", beside(index + 1, "there is no next item")],
    [
      "cycle",
      method("cycle", (args) => {
        return args.length === 0 ? fail("no items for cycling given") : args[index % args.length];
      }),
    ],
    [
      "changed",
      method("changed", (args) => {
        const isSame = state.changed !== undefined && areEqual(state.changed, args);
        state.changed = args;
        return !isSame;
      }),
    ],
  ]);
  return { tag: "namespace", values, isFixed: true, call: (args) => recurse(args[0] ?? []) };
}

function createMacro(
  name: string,
  parameters: readonly Parameter[],
  body: Body,
  outer: Scope,
): Callable {
  const call: Callable["call"] = (args, named) => {
    const own = inner(outer);
    const names = parameters.map((parameter) => parameter.name);
    if (args.length > names.length) {
      fail(`macro '${name}' takes ${names.length} arguments, ${args.length} given`);
    }
    for (const key of named.keys()) {
      if (key !== "caller" && !names.includes(key)) {
        fail(`macro '${name}' has no argument '${key}'`);
      }
    }
    parameters.forEach(({ name: key, fallback }, i) => {
      const given = args[i] ?? named.get(key);
      const value = i < args.length ? args[i] : given;
      own.values.set(
        key,
        value ??
          (fallback === undefined
            ? undefinedValue(`parameter '${key}' was not provided`)
            : evaluate(fallback, own)),
      );
    });
    const caller = named.get("caller");
    if (caller !== undefined) own.values.set("caller", caller);
    return captureBody(body, own);
  };
  return { tag: "callable", name, call };
}

const MAX_RANGE = 100_000;

function range(args: readonly Value[]): Value {
  const numbers = args.map((arg) =>
    isNumber(arg) ? integerValue(plainNumber(arg)) : fail("range needs integers")
  );
  if (numbers.length < 1 || numbers.length > 3) fail("range takes 1 to 3 arguments");
  const [start, stop] = numbers.length === 1 ? [0, numbers[0]] : numbers;
  const step = numbers[2] ?? 1;
  if (step === 0) fail("the step of a range cannot be zero");
  const count = Math.max(0, Math.ceil((stop - start) / step));
  if (count > MAX_RANGE) {
    throw new TemplateFailure(`a range of ${count} is longer than ${MAX_RANGE}`, { isLimit: true });
  }
  return Array.from({ length: count }, (_, i) => start + i * step);
}

function createGlobals(now: Date, scope: Scope): void {
  const { budget } = scope;
  const define = (name: string, call: Callable["call"]) =>
    scope.values.set(name, { tag: "callable", name, call });
  define("range", (args) => {
    const list = range(args);
    budget.spend(isList(list) ? list.length : 0);
    return list;
  });
  define("namespace", (args, named) => {
    const values = new Map<string, Value>(named);
    if (args[0] !== undefined && isDict(args[0])) {
      for (const [key, value] of args[0]) values.set(String(key), value);
    }
    return { tag: "namespace", values, isFixed: false };
  });
  define("dict", (_args, named) => new Map<Value, Value>(named));
  define("raise_exception", (args) => fail(plainText(args[0] ?? "", budget)));
  define("strftime_now", (args, named) => {
    const [format] = bind({ name: "strftime_now", args, named, budget }, "format");
    return formatDate(now, textArgument(format));
  });
}

/**
 * Renders a template.
 *
 * @param context Names that the template may use, as JavaScript values.
 * @throws {TemplateFailure} If the template refuses, breaks a rule, or costs more than its budget.
 */
export function renderTemplate(
  body: Body,
  context: Readonly<Record<string, unknown>>,
  { budget: units, now }: RenderOptions,
): string {
  const budget = createBudget(units);
  const globals: Scope = { values: new Map(), outer: undefined, budget };
  createGlobals(now, globals);
  const scope: Scope = { values: new Map(), outer: globals, budget };
  for (const [name, value] of Object.entries(context)) {
    if (value !== undefined) scope.values.set(name, fromJavaScript(value));
  }
  const out: string[] = [];
  const outcome = runBody(body, scope, out);
  if (outcome !== "normal") fail(`'${outcome}' stands outside a loop`);
  return out.join("");
}
