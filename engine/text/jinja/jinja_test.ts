import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { assertLinear } from "../../../tests/support/linear.ts";
import { readFixture } from "../../../tests/support/fixtures.ts";
import { FORMAT_METHODS } from "./access.ts";
import { TemplateFailure } from "./failure.ts";
import { FILTER_NAMES } from "./filters.ts";
import { GLOBALS } from "./globals.ts";
import { parseTemplate, TAGS } from "./parse_template.ts";
import { PREDICATE_NAMES } from "./predicates.ts";
import {
  REFUSED_ATTRIBUTES,
  REFUSED_FILTERS,
  REFUSED_GLOBALS,
  REFUSED_TAGS,
  UNSAFE_ATTRIBUTES,
} from "./refused.ts";
import { renderTemplate } from "./render.ts";
import { DICT_METHODS, LIST_METHODS, TEXT_METHODS } from "./text_methods.ts";

interface ReferenceCase {
  readonly template: string;
  readonly rendered?: string;
  readonly error?: boolean;
}

const NOW = new Date(2026, 6, 4, 15, 5, 9);

function render(template: string, context: Record<string, unknown> = {}, budget = 1e6): string {
  return renderTemplate(parseTemplate(template), context, { budget, now: NOW });
}

const { context: CONTEXT, cases: CASES }: {
  context: Record<string, unknown>;
  cases: readonly ReferenceCase[];
} = JSON.parse(readFixture("jinja/reference.json"));

Deno.test("templates give what Jinja itself gives, and fail where it fails", () => {
  for (const { template, rendered, error } of CASES) {
    if (error) assertThrows(() => render(template, CONTEXT), TemplateFailure, undefined, template);
    else assertEquals(render(template, CONTEXT), rendered, template);
  }
});

const BUILTINS: {
  names: Readonly<Record<string, readonly string[]>>;
  cases: readonly (readonly [string, string?])[];
} = JSON.parse(readFixture("jinja/builtins.json"));

Deno.test("every built-in gives what Jinja gives", () => {
  for (const [template, rendered] of BUILTINS.cases) {
    if (rendered !== undefined) assertEquals(render(template, CONTEXT), rendered, template);
    else assertThrows(() => render(template, CONTEXT), TemplateFailure, undefined, template);
  }
});

/** Names that are built, names that are refused, and a use of one. */
const TABLES: Readonly<
  Record<string, [Iterable<string>, Iterable<string>, (name: string) => string]>
> = {
  filters: [FILTER_NAMES, REFUSED_FILTERS.keys(), (name) => `{{ s|${name} }}`],
  tests: [PREDICATE_NAMES, [], String],
  globals: [GLOBALS.keys(), REFUSED_GLOBALS.keys(), (name) => `{{ ${name}() }}`],
  tags: [[...TAGS.keys(), "raw"], REFUSED_TAGS.keys(), (name) => `{% ${name} %}`],
  str: [
    [...TEXT_METHODS.keys(), ...FORMAT_METHODS.keys()],
    REFUSED_ATTRIBUTES.str.keys(),
    (name) => `{{ s.${name} }}`,
  ],
  list: [LIST_METHODS.keys(), UNSAFE_ATTRIBUTES.list, (name) => `{{ l.${name} }}`],
  dict: [
    DICT_METHODS.keys(),
    [...UNSAFE_ATTRIBUTES.dict, ...REFUSED_ATTRIBUTES.dict.keys()],
    (name) => `{{ d.${name} }}`,
  ],
  int: [[], REFUSED_ATTRIBUTES.int.keys(), (name) => `{{ n.${name} }}`],
  float: [[], REFUSED_ATTRIBUTES.float.keys(), (name) => `{{ f.${name} }}`],
};

Deno.test("every name that Jinja has is built and compared, or refused by its name", () => {
  const used = BUILTINS.cases.map(([template]) => template).join("\n");
  for (const [kind, [built, refused, use]] of Object.entries(TABLES)) {
    const names = BUILTINS.names[kind];
    assertEquals([...built, ...refused].sort(), [...names].sort(), kind);
    for (const name of built) {
      // Operators are tests by another name, which only select() takes.
      const isClock = name === "strftime_now";
      const isCompared = isClock || !/^\w/.test(name) || new RegExp(`\\b${name}\\b`).test(used);
      assert(isCompared, `no case has the name ${name} of ${kind}`);
    }
    for (const name of refused) {
      const message = kind === "list" || UNSAFE_ATTRIBUTES.dict.includes(name)
        ? `'${name}'`
        : `'${name}' is not supported`;
      assertThrows(() => render(use(name), CONTEXT), TemplateFailure, message);
    }
  }
  assertEquals(Object.keys(TABLES).sort(), Object.keys(BUILTINS.names).sort());
});

Deno.test("failures know their line", () => {
  const failures: [string, number, string][] = [
    ["a\nb\n{% frobnicate %}", 3, "unknown tag 'frobnicate'"],
    ["a\n{{ 'x' | shout }}", 2, "No filter named 'shout'"],
    ["{% if x %}\n\n", 2, "Unexpected end of template"],
    ["{#\n#}\n{{ nothing.here }}", 3, "'nothing' is undefined"],
    ["{% macro f() %}\n{{ 1 / 0 }}\n{% endmacro %}\n{{ f() }}", 2, "division by zero"],
    ["\n{{ raise_exception('stop\nit') }}", 2, "stop"],
  ];
  for (const [template, line, message] of failures) {
    const failure = assertThrows(() => render(template), TemplateFailure, message);
    assertEquals(failure.line, line, template);
  }
});

Deno.test("a template cannot loop, grow or nest without end", () => {
  const greedy = [
    "{% for i in range(1000000000) %}{% endfor %}",
    "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
    "{{ 'x' * 1000000000 }}",
    "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
    "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "{{ ('x' * 9999) | replace('x', 'y' * 9999) }}",
    "{{ ('x' * 9999).replace('', 'y' * 9999) }}",
    "{% set l = range(9999) | list %}{{ l | map('string') | join('y' * 9999) }}",
    "{{ ('\n' * 9999) | indent('y' * 9999, true, true) }}",
    "{% set ns = namespace(d={}) %}{% for i in range(99) %}{% set ns.d = {'a': ns.d, 'b': ns.d} %}" +
    "{% endfor %}{{ ns.d | tojson }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ '%9999s' % 'x' * 1000 }}",
    "{{ ('{:9999}' * 999).format(*range(999)) }}",
    "{{ 'x'.center(10**9) }}",
    "{{ 'x'.zfill(10**9) }}",
    "{{ '\t'.expandtabs(10**9) }}",
    "{{ [1]|batch(10**9, 0)|list }}",
    "{{ [1]|slice(10**9)|list }}",
    "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
  ];
  for (const template of greedy) {
    const failure = assertThrows(() => render(template), TemplateFailure, undefined, template);
    assert(
      failure.isLimit || /deep|large/.test(failure.message),
      `${template}: ${failure.message}`,
    );
  }
  assertThrows(
    () => parseTemplate("{{ " + "(".repeat(9999) + "1" + ")".repeat(9999) + " }}"),
    TemplateFailure,
    "nests deeper",
  );
  assertThrows(
    () => parseTemplate("{% if a %}".repeat(9999) + "{% endif %}".repeat(9999)),
    TemplateFailure,
    "nests deeper",
  );
  assertThrows(
    () => parseTemplate("{{ " + "not ".repeat(9999) + "1 }}"),
    TemplateFailure,
    "nests deeper",
  );
});

Deno.test("text and tags take linear time", () => {
  const templates: ((count: number) => string)[] = [
    (count) => "x".repeat(10 * count),
    (count) => "{{ 1 }}".repeat(count),
    (count) => " ".repeat(10 * count) + "{% if 1 %}{% endif %}",
  ];
  for (const [i, make] of templates.entries()) {
    assertLinear(`template ${i}`, 1_000, (size) => void render(make(size), {}, 1e8));
  }
});

Deno.test("the sandbox lets nothing change and nothing of JavaScript through", () => {
  const refused = [
    "{% set _ = l.append(1) %}",
    "{{ d.update({}) }}",
    "{{ l.sort() }}",
    "{{ ''.__class__.__mro__ }}",
    "{{ d.__proto__ }}",
    "{% set d.x = 1 %}",
    "{% for i in l %}{% set loop.index = 1 %}{% endfor %}",
  ];
  for (const template of refused) {
    assertThrows(
      () => render(template, { l: [2, 1], d: {} }),
      TemplateFailure,
      undefined,
      template,
    );
  }
  assertEquals(render("{{ d.constructor }}{{ l.map }}{{ s.length }}", { d: {}, l: [], s: "" }), "");
  assertEquals(render("{{ d['__proto__'] }}", { d: JSON.parse('{"__proto__": 5}') }), "5");
});

Deno.test("strftime_now writes the moment that was given", () => {
  assertEquals(render("{{ strftime_now('%d %b %Y') }}"), "04 Jul 2026");
  assertEquals(
    render("{{ strftime_now('%A, %B %-d, %H:%M:%S %p %j %F') }}"),
    "Saturday, July 4, 15:05:09 PM 185 2026-07-04",
  );
  assertThrows(() => render("{{ strftime_now('%Q') }}"), TemplateFailure, "%Q");
});

Deno.test("any text renders as itself when it holds no tags, but for its last line end", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      if (/\{[{%#]/.test(text)) return;
      assertEquals(render(text), text.replace(/\r\n?/g, "\n").replace(/\n$/, ""));
    }),
    { seed: 31, numRuns: 500 },
  );
});

Deno.test("any JSON value comes back through tojson", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const text = render("{{ v | tojson }}", { v: value });
      assertEquals(JSON.parse(text), JSON.parse(JSON.stringify(value)));
    }),
    { seed: 32, numRuns: 500 },
  );
});
