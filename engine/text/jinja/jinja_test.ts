import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { readFixture } from "../../../tests/support/fixtures.ts";
import { TemplateFailure } from "./failure.ts";
import { parseTemplate } from "./parse_template.ts";
import { renderTemplate } from "./render.ts";

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
    "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
  ];
  for (const template of greedy) {
    const started = performance.now();
    const failure = assertThrows(() => render(template), TemplateFailure, undefined, template);
    assert(
      failure.isLimit || /deep|large/.test(failure.message),
      `${template}: ${failure.message}`,
    );
    assert(performance.now() - started < 5000, template);
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

Deno.test("a megabyte of text or of tags is parsed in linear time", () => {
  for (
    const template of [
      "x".repeat(1e6),
      "{{ 1 }}".repeat(1e5),
      " ".repeat(1e6) + "{% if 1 %}{% endif %}",
    ]
  ) {
    const started = performance.now();
    render(template, {}, 1e8);
    assert(performance.now() - started < 5000);
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
