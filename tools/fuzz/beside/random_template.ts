// Random templates: every statement, operator, filter, test, method and global that is built, on values of all types.
// Expressions are made by the type that is wanted, and now and then by another, since refusals are compared too.

import type { Draw } from "../../support/draw.ts";

type Kind = "text" | "number" | "list" | "dict" | "bool" | "pairs" | "any";
type Rule = (make: Maker) => string;

interface Maker {
  readonly draw: Draw;
  /** An expression of a kind. */
  of(kind: Kind): string;
  /** One of some texts. */
  pick(...texts: readonly string[]): string;
}

const LITERALS: readonly string[] = [
  "''",
  "'a'",
  "'Hello, World'",
  "'ab ab  c'",
  "'<b>&'",
  "'it\\'s'",
  "'ß ǆ é Σ'",
  "'  x\\t'",
  "'a\\nb\\n\\n c'",
  "'12'",
  "'-3.50'",
  "'0x1f'",
  "'👋 na'",
  "'{} %s'",
  "'1_000'",
];
const FORMATS: readonly string[] = [
  "'%s'",
  "'%5s|'",
  "'%-5s|'",
  "'%05d'",
  "'%x'",
  "'%.2f'",
  "'%e'",
  "'%g'",
  "'%r'",
  "'%%'",
  "'%s-%s'",
  "'%(a)s'",
  "'%+d'",
  "'%.1s'",
  "'%c'",
];
const BRACES: readonly string[] = [
  "'{}'",
  "'{0} {0}'",
  "'{:>5}|'",
  "'{:^7}|'",
  "'{:05}'",
  "'{:,}'",
  "'{:.2f}'",
  "'{:x}'",
  "'{:+}'",
  "'{:e}'",
  "'{:.3}'",
  "'{!r}'",
  "'{a}'",
  "'{0[0]}'",
  "'{{}}'",
  "'{:{}}'",
  "'{:%}'",
  "'{:b}'",
  "'{:*<6}'",
  "'{:g}'",
];
const METHODS: readonly string[] = [
  ...["capitalize", "casefold", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit"],
  ...["isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper"],
  ...["lower", "lstrip", "rstrip", "strip", "split", "splitlines", "swapcase", "title", "upper"],
  ...["expandtabs"],
];
const TEXT_FILTERS: readonly string[] = [
  ...["upper", "lower", "title", "capitalize", "trim", "string", "e", "forceescape", "safe"],
  ...["length", "wordcount", "reverse", "first", "last", "list", "urlencode", "int", "float"],
  ...["center(9)", "truncate(6)", "truncate(5, true, '…', 0)", "indent", "indent(2, true)"],
  ...[
    "indent('>', blank=true)",
    "replace('a', 'b')",
    "replace('', '-', 2)",
    "default('q')",
    "tojson",
  ],
  ...["filesizeformat", "format(1)", "int(7, 16)", "tojson(indent=1)", "tojson(ensure_ascii=true)"],
];
const LIST_FILTERS: readonly string[] = [
  ...["length", "first", "last", "list", "reverse", "reverse|list", "sort", "sort(reverse=true)"],
  ...["sum", "sum(start=10)", "max", "min", "unique|list", "join", "join('-')", "batch(2)|list"],
  ...["batch(2, 'x')|list", "slice(2)|list", "slice(3, 0)|list", "map('string')|list", "tojson"],
  ...["map('upper')|join(',')", "select|list", "select('odd')|list", "reject('string')|list"],
  ...["select('gt', 1)|list", "sort(case_sensitive=true)", "string", "count", "default([], true)"],
  ...["map('default', 'x')|list", "select('in', [1, 2])|list", "urlencode", "batch(0)|list"],
];
const RECORD_FILTERS: readonly string[] = [
  ...["map(attribute='n')|list", "map(attribute='q', default='-')|list", "selectattr('v')|list"],
  ...["selectattr('t', 'equalto', 'p')|map(attribute='n')|join", "rejectattr('v', 'gt', 1)|list"],
  ...["sort(attribute='t,n')|map(attribute='n')|join", "groupby('t')", "sum(attribute='v')"],
  ...["unique(attribute='t')|list", "max(attribute='v')", "join(',', attribute='n')"],
  ...["groupby('q', default='z')", "sum('v', 1)", "sort(attribute='v', reverse=true)|list"],
];
const DICT_FILTERS: readonly string[] = [
  ...[
    "length",
    "list",
    "items|list",
    "dictsort",
    "dictsort(by='value')",
    "tojson",
    "first",
    "last",
  ],
  ...["dictsort(reverse=true)", "tojson(sort_keys=true)", "urlencode", "string", "attr('keys')()"],
  ...[
    "attr('a')",
    "map('upper')|list",
    "tojson(separators=(',', ':'))",
    "sort",
    "max",
    "reverse|list",
  ],
];
const NUMBER_FILTERS: readonly string[] = [
  ...["abs", "int", "float", "round", "round(1)", "round(1, 'ceil')", "round(-1)", "string"],
  ...[
    "round(2, 'floor')",
    "filesizeformat",
    "filesizeformat(true)",
    "default(1)",
    "tojson",
    "length",
  ],
];
const TESTS: readonly string[] = [
  ...["boolean", "callable", "defined", "escaped", "even", "false", "filter", "float", "integer"],
  ...[
    "iterable",
    "lower",
    "mapping",
    "none",
    "number",
    "odd",
    "sequence",
    "string",
    "test",
    "true",
  ],
  ...[
    "undefined",
    "upper",
    "divisibleby(2)",
    "eq(1)",
    "in([1, 'a'])",
    "ne('a')",
    "lt(3)",
    "sameas(none)",
  ],
];

const RULES: Readonly<Record<Exclude<Kind, "any">, readonly Rule[]>> = {
  text: [
    ({ pick }) => pick(...LITERALS),
    ({ pick }) => pick("s", "u", "ml", "m[0].content", "names[1]"),
    ({ of, pick }) => `${of("text")}.${pick(...METHODS)}()`,
    ({ of, pick }) => `(${of("text")}|${pick(...TEXT_FILTERS)})`,
    ({ of }) => `(${of("text")} ~ ${of("any")})`,
    ({ of }) => `(${of("text")} + ${of("text")})`,
    ({ of }) => `(${of("text")} * ${of("number")})`,
    ({ pick, of }) => `(${pick(...FORMATS)} % ${of("any")})`,
    ({ pick, of }) => `(${pick(...FORMATS)} % (${of("any")}, ${of("text")}))`,
    ({ pick, of }) => `${pick(...BRACES)}.format(${of("any")})`,
    ({ pick, of }) => `${pick(...BRACES)}.format(${of("number")}, ${of("number")}, a=${of("any")})`,
    ({ of, pick }) => `${of("text")}[${pick("0", "-1", "1:", "::-1", ":2", "1:-1", "9", "::2")}]`,
    ({ of, pick }) => `${of("text")}.${pick("partition", "rpartition")}(${of("text")})`,
    ({ of, pick }) => `${of("text")}.${pick("split", "rsplit")}(${pick("none", "'b'", "' '")}, 1)`,
    ({ of, pick }) => `${of("text")}.${pick("center", "ljust", "rjust", "zfill")}(7)`,
    ({ of, pick }) =>
      `${of("text")}.${pick("removeprefix", "removesuffix", "lstrip", "strip")}('a')`,
    ({ of }) => `${of("text")}.replace(${of("text")}, 'z')`,
    ({ of }) => `${of("text")}.join(${of("list")})`,
    ({ of }) => `(${of("text")}|format(${of("any")}))`,
    ({ of }) => `(${of("text")} if ${of("bool")} else ${of("any")})`,
    ({ of }) => `(${of("text")} if ${of("bool")})`,
  ],
  number: [
    ({ pick }) => pick("0", "1", "2", "-3", "7", "1.5", "2.0", "-0.25", "1e3", "0x10", "1_000"),
    ({ pick }) => pick("n", "f", "z", "l[0]", "o[1].v", "d.a"),
    ({ of, pick }) =>
      `(${of("number")} ${pick("+", "-", "*", "/", "//", "%", "**")} ${of("number")})`,
    ({ of }) => `-${of("number")}`,
    ({ of, pick }) => `(${of("number")}|${pick(...NUMBER_FILTERS)})`,
    ({ of }) => `(${of("any")}|length)`,
    ({ of, pick }) => `${of("text")}.${pick("find", "rfind", "index", "count")}(${of("text")})`,
    ({ of, pick }) => `${of("text")}.${pick("find", "count")}('a', ${of("number")}, -1)`,
    ({ of }) => `${of("list")}.count(${of("any")})`,
    ({ of }) => `(${of("text")}|int)`,
    ({ of }) => `(${of("list")}|sum)`,
  ],
  list: [
    ({ pick }) =>
      pick("[]", "[1, 2, 3]", "(1, 2)", "()", "['b', 'A', 'c']", "range(4)", "range(1, 9, 3)"),
    ({ pick }) => pick("l", "names", "o", "m", "e", "d.keys()", "d.values()", "d.items()"),
    ({ of }) => `[${of("any")}, ${of("any")}]`,
    ({ of }) => `(${of("list")} + ${of("list")})`,
    ({ of }) => `(${of("list")} * 2)`,
    ({ of, pick }) => `(${of("list")}|${pick(...LIST_FILTERS)})`,
    ({ of, pick }) =>
      `(${of("list")}|${pick("map('upper')", "select", "reverse", "unique", "batch(2)")})`,
    ({ pick }) => `(o|${pick(...RECORD_FILTERS)})`,
    ({ of, pick }) => `${of("list")}[${pick("0", "-1", "1:", "::-1", ":2", "5", "1.0", "'x'")}]`,
    ({ of }) => `(${of("text")}|list)`,
  ],
  dict: [
    ({ pick }) => pick("{}", "d", "nested", "o[0]", "{'a': 1}", "{'b': [1], 'a': none}"),
    ({ of }) => `{${of("text")}: ${of("any")}}`,
    ({ of }) => `dict(a=${of("any")})`,
    ({ of }) => `dict(${of("dict")}, z=${of("any")})`,
    ({ of }) => `dict(${of("pairs")})`,
    ({ of, pick }) => `${of("dict")}.${pick("items", "keys", "values", "copy")}()`,
    ({ of, pick }) => `(${of("dict")}|${pick(...DICT_FILTERS)})`,
    ({ of }) => `${of("dict")}.get('a', ${of("any")})`,
    ({ of, pick }) => `${of("dict")}${pick("['a']", ".a", ".b", "['q']", ".q", "[0]")}`,
  ],
  pairs: [
    ({ of }) => `[('x', ${of("any")}), ('y', ${of("any")})]`,
    ({ of }) => `${of("dict")}.items()`,
  ],
  bool: [
    ({ pick }) => pick("true", "false", "t", "none", "missing"),
    ({ of, pick }) => `(${of("any")} is ${pick(...TESTS)})`,
    ({ of, pick }) => `(${of("any")} is not ${pick(...TESTS)})`,
    ({ of, pick }) => `(${of("any")} ${pick("==", "!=")} ${of("any")})`,
    ({ of, pick }) => `(${of("number")} ${pick("<", "<=", ">", ">=")} ${of("number")})`,
    ({ of, pick }) => `(${of("text")} ${pick("<", "in", "not in", ">=")} ${of("text")})`,
    ({ of, pick }) => `(${of("list")} ${pick("<", "==")} ${of("list")})`,
    ({ of, pick }) => `(${of("any")} ${pick("in", "not in")} ${of("list")})`,
    ({ of, pick }) => `(${of("any")} ${pick("and", "or")} ${of("any")})`,
    ({ of }) => `(not ${of("any")})`,
    ({ of, pick }) => `${of("text")}.${pick("startswith", "endswith")}(${of("text")})`,
  ],
};
const KINDS: readonly Exclude<Kind, "any">[] = ["text", "number", "list", "dict", "bool", "pairs"];

const STATEMENTS: readonly ((make: Maker, body: () => string) => string)[] = [
  ({ of }) => `{{ ${of("any")} }}`,
  ({ of }) => `{{ ${of("text")} }}|{{ ${of("number")} }}`,
  ({ of }, body) =>
    `{% if ${of("bool")} %}${body()}{% elif ${of("any")} %}${body()}{% else %}x{% endif %}`,
  ({ of, pick }, body) =>
    `{% for x in ${of("list")} %}{{ loop.${
      pick(
        "index",
        "first",
        "last",
        "length",
        "revindex0",
        "previtem",
        "cycle('a', 'b')",
        "changed(x)",
      )
    } }}{{ x }}${body()}{% else %}none{% endfor %}`,
  ({ of }, body) => `{% for x in ${of("list")} if ${of("bool")} %}{{ x }}${body()}{% endfor %}`,
  ({ of }) => `{% for k, v in ${of("pairs")} %}{{ k }}={{ v }};{% endfor %}`,
  ({ of }, body) => `{% set x = ${of("any")} %}${body()}{{ x }}`,
  ({ of }, body) => `{% set x %}${body()}{% endset %}{{ ${of("any")} }}{{ x }}`,
  ({ of }) => `{% set a, b = ${of("any")}, ${of("any")} %}{{ a }}/{{ b }}`,
  ({ of }, body) => `{% with x = ${of("any")} %}${body()}{{ x }}{% endwith %}`,
  ({ pick }, body) => `{% filter ${pick("upper", "trim", "title", "e")} %}${body()}{% endfilter %}`,
  ({ of, pick }, body) =>
    `{% macro f(x, y=${of("any")}) %}{{ x }},{{ y }}${
      pick("", "{{ varargs }}", "{{ kwargs }}", "{{ caller() if caller }}")
    }{% endmacro %}${
      pick(
        `{{ f(${of("any")}) }}`,
        `{{ f(1, 2, 3) }}`,
        `{{ f(y=1) }}`,
        `{{ f(1, z=2) }}`,
        `{% call f(1) %}${body()}{% endcall %}`,
        `{{ f }}{{ f.arguments }}`,
      )
    }`,
  ({ of }) =>
    `{% set ns = namespace(a=${of("any")}) %}{% set ns.a = ${of("any")} %}{{ ns.a }}{{ ns }}`,
  ({ pick }) =>
    `{% set c = ${pick("cycler('a', 'b')", "joiner('|')")} %}` +
    `{{ ${pick("c.next() ~ c.next() ~ c.current", "c() ~ c() ~ c()")} }}`,
  (_make, body) =>
    `{% for i in range(3) %}{% if i == 1 %}{% continue %}{% endif %}${body()}{% endfor %}`,
  // Names of the context, which a scope of its own reads above their assignment.
  ({ of, pick }, body) => {
    const tag = pick("macro g()", "set g", "for g in [1, 2]", "if t", "generation", "with g = s");
    const inner = `{{ s }}{{ n }}${body()}`;
    const set = `{% set ${pick("s", "n", "x")} = ${of("any")} %}`;
    const place = pick(inner + set, set + inner);
    return `{% ${tag} %}${place}{% end${tag.match(/^\w+/)![0]} %}${
      pick("", "{{ g() }}")
    }${set}{{ s }}${pick("", "{{ g() }}")}`;
  },
  (_make, body) => `a {%- if t -%} ${body()} {%- endif +%}\n  b`,
];

/** A template. */
export function randomTemplate(draw: Draw): string {
  const pick = (...texts: readonly string[]) => texts[draw(texts.length)]!;
  // What is left for an expression: rules of the first two places need none.
  let left = 0;
  const make: Maker = {
    draw,
    pick,
    of(kind) {
      const wanted = kind === "any" || draw(12) === 0 ? KINDS[draw(KINDS.length)]! : kind;
      const rules = RULES[wanted];
      const isLeaf = --left < 0;
      if (isLeaf && wanted === "pairs") return "[('x', 1)]";
      return rules[
        isLeaf ? draw(wanted === "bool" || wanted === "dict" ? 1 : 2) : draw(rules.length)
      ]!(make);
    },
  };
  const bodyOf = (depth: number): string => {
    left = 1 + draw(7);
    const rule = depth <= 0 ? draw(2) : draw(STATEMENTS.length);
    return STATEMENTS[rule]!(make, () => bodyOf(depth - 1));
  };
  return Array.from({ length: 1 + draw(3) }, () => bodyOf(draw(3))).join("");
}
