// Runs a parsed template: one function for each type of statement. `if` has no scope of its own, loops (their
// `else` another), macros and `with` have; assignments inside them do not reach out, which is what
// `namespace` is for.

import { createBudget } from "./budget.ts";
import { evaluate, filterValue, lookUp, type Scope } from "./evaluate.ts";
import { fail, TemplateFailure } from "./failure.ts";
import { plainText } from "./python_text.ts";
import { createGlobals } from "./globals.ts";
import type { Application, Body, MacroParts, Statement, Target } from "./syntax.ts";
import {
  areEqual,
  type Callable,
  callable,
  defined,
  fromJavaScript,
  isNamespace,
  isTrue,
  iterate,
  type Namespace,
  orElse,
  tupleValue,
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
    assign(target, filterBody(filters, body, scope), scope);
    return "normal";
  },
  macro({ body, ...parts }, scope) {
    scope.values.set(parts.name, createMacro(parts, body, scope));
    return "normal";
  },
  callBlock({ call, body, ...parts }, scope, out) {
    if (call.type !== "call") return fail("expected a call");
    const around = inner(scope);
    around.values.set("caller", createMacro({ name: "", ...parts }, body, scope));
    // The macro sees its caller as a named argument, where createMacro looks for it.
    const caller = { type: "name", name: "caller", line: call.line } as const;
    const args = { ...call.args, named: [...call.args.named, ["caller", caller] as const] };
    return write(plainText(evaluate({ ...call, args }, around), scope.budget), scope, out);
  },
  filterBlock({ filters, body }, scope, out) {
    return write(plainText(filterBody(filters, body, scope), scope.budget), scope, out);
  },
  with({ values, body }, scope, out) {
    const own = inner(scope);
    for (const [name, node] of values) own.values.set(name, evaluate(node, scope));
    return runBody(body, own, out);
  },
  group: ({ body }, scope, out) => runBody(body, scope, out),
  scope: ({ body }, scope, out) => runBody(body, inner(scope), out),
  hide({ names }, scope) {
    for (const name of names) scope.values.set(name, undefinedValue(`'${name}' is undefined`));
    return "normal";
  },
  break: () => "break",
  continue: () => "continue",
  discard({ value }, scope) {
    evaluate(value, scope);
    return "normal";
  },
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

function filterBody(filters: readonly Application[], body: Body, scope: Scope): Value {
  const text = captureBody(body, inner(scope));
  return filters.reduce<Value>((v, f) => filterValue(v, { application: f, scope }), text);
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
  return runLoop(node, { list: evaluate(node.list, scope), scope, out, depth: 0 });
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
  { list, scope, out, depth }: {
    readonly list: Value;
    readonly scope: Scope;
    readonly out: string[];
    readonly depth: number;
  },
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
        runLoop(node, { list: inside, scope, out: text, depth: depth + 1 });
        return text.join("");
      }),
    );
    assign(node.target, items[i], own);
    if (runBody(node.body, own, out) === "break") return "normal";
  }
  if (items.length === 0) return runBody(node.otherwise, inner(scope), out);
  return "normal";
}

interface LoopState {
  readonly items: readonly Value[];
  readonly depth: number;
  changed: readonly Value[] | undefined;
}

/** The variable `loop`. It can also be called, in a recursive loop. */
function loopValue(state: LoopState, index: number, recurse: (list: Value) => Value): Namespace {
  const { items, depth } = state;
  const beside = (at: number, why: string) => orElse(items[at], () => undefinedValue(why));
  const cycle: Callable["call"] = (args) =>
    args.length === 0 ? fail("no items for cycling given") : args[index % args.length];
  const changed: Callable["call"] = (args) => {
    const isSame = state.changed !== undefined && areEqual(state.changed, args);
    state.changed = args;
    return !isSame;
  };
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
    ["cycle", callable("cycle", cycle)],
    ["changed", callable("changed", changed)],
  ]);
  return {
    tag: "namespace",
    type: "LoopContext",
    values,
    isFixed: true,
    call: (args) => recurse(orElse(args[0], () => [])),
  };
}

/** What Jinja gives a macro beside its parameters, where its body asks for it. */
function bindExtras(
  { name, parameters, uses }: MacroParts,
  args: readonly Value[],
  named: ReadonlyMap<string, Value>,
): Map<string, Value> {
  const extras = new Map<string, Value>();
  const names = parameters.map((parameter) => parameter.name);
  const rest = new Map<Value, Value>();
  for (const [key, value] of named) {
    const place = names.indexOf(key);
    if (place >= args.length || (place < 0 && key === "caller" && uses.includes("caller"))) {
      continue;
    }
    rest.set(key, value);
  }
  if (uses.includes("caller") && !names.includes("caller")) {
    const caller = named.get("caller");
    const isMissing = caller === undefined || caller === null;
    extras.set("caller", isMissing ? undefinedValue("No caller defined") : caller);
  }
  if (uses.includes("kwargs")) extras.set("kwargs", rest);
  else if (rest.size > 0) {
    fail(`macro '${name}' takes no keyword argument '${plainKey(rest)}'`);
  }
  if (uses.includes("varargs")) extras.set("varargs", tupleValue(args.slice(names.length)));
  else if (args.length > names.length) {
    fail(`macro '${name}' takes not more than ${names.length} argument(s)`);
  }
  return extras;
}

function plainKey(rest: ReadonlyMap<Value, Value>): string {
  return String(rest.keys().next().value);
}

function createMacro(parts: MacroParts, body: Body, outer: Scope): Callable {
  const { name, parameters, uses } = parts;
  const call: Callable["call"] = (args, named) => {
    const own = inner(outer);
    for (const [key, value] of bindExtras(parts, args, named)) own.values.set(key, value);
    parameters.forEach(({ name: key, fallback }, i) => {
      const given = i < args.length ? args[i] : named.get(key);
      own.values.set(
        key,
        orElse(
          given,
          () =>
            fallback === undefined
              ? undefinedValue(`parameter '${key}' was not provided`)
              : evaluate(fallback, own),
        ),
      );
    });
    return captureBody(body, own);
  };
  const attributes = new Map<string, Value>([
    ["name", name || null],
    ["arguments", tupleValue(parameters.map((parameter) => parameter.name))],
    ["caller", uses.includes("caller")],
    ["catch_kwargs", uses.includes("kwargs")],
    ["catch_varargs", uses.includes("varargs")],
  ]);
  return { tag: "callable", name, isMacro: true, attributes, call };
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
  const globals: Scope = { values: createGlobals(now, budget), outer: undefined, budget };
  const scope: Scope = { values: new Map(), outer: globals, budget };
  for (const [name, value] of Object.entries(context)) {
    if (value !== undefined) scope.values.set(name, fromJavaScript(value));
  }
  const out: string[] = [];
  const outcome = runBody(body, scope, out);
  if (outcome !== "normal") fail(`'${outcome}' stands outside a loop`);
  return out.join("");
}
