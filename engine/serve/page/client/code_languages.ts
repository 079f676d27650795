// Small grammars for highlight.js, where its own are large for what a chat shows: one for the languages that look like
// C (its own of these together take 40 KB), one each for shells, settings, SQL and CSS. Keywords, types, texts, numbers and comments
// are told apart; nothing finer.

import type { HLJSApi, Language, LanguageFn, Mode } from "highlight.js";

const COMMON =
  "break case catch class const continue default do else enum for if return static struct switch throw " +
  "try while";

/** What each has beside {@linkcode COMMON}; names that begin with a capital are types in all of them. */
const KEYWORDS: Readonly<Record<string, string>> = {
  c: "alignas alignof auto bool char constexpr delete double explicit extern float friend goto inline int long mutable " +
    "namespace new noexcept operator private protected public register short signed sizeof template this typedef " +
    "typename union unsigned using virtual void volatile concept requires co_await co_return co_yield",
  csharp:
    "abstract as async await base bool byte char decimal delegate double event explicit extern finally fixed float " +
    "foreach get implicit in int interface internal is lock long namespace new object operator out override params " +
    "private protected public readonly record ref sbyte sealed set short sizeof string this uint ulong using var " +
    "virtual void where yield",
  go:
    "bool byte chan defer error fallthrough float32 float64 func go goto import int int32 int64 interface map package " +
    "range rune select string type uint uint32 uint64 uint8 var any make len append",
  java:
    "abstract assert boolean byte char double extends final finally float implements import instanceof int interface " +
    "long native new package permits private protected public record sealed short super synchronized this throws " +
    "transient var void volatile yield",
  kotlin:
    "abstract as by companion data final finally fun import in init inline interface internal is lateinit object " +
    "open operator out override package private protected public sealed super suspend this val var when where",
  php:
    "abstract array as callable echo elseif extends final finally fn foreach function global implements include " +
    "instanceof interface match namespace new private protected public readonly require self string this trait use " +
    "int float bool void var yield",
  rust:
    "as async await bool char crate dyn extern f32 f64 fn i16 i32 i64 i8 impl in isize let loop match mod move mut " +
    "pub ref self str super trait type u16 u32 u64 u8 unsafe use usize where",
  typescript:
    "abstract any as async await boolean debugger declare delete export extends finally from function implements import " +
    "in instanceof interface keyof let namespace never new number object of private protected public readonly " +
    "satisfies set get string super this type typeof unknown var void with yield",
  swift:
    "actor any as associatedtype async await defer deinit extension fallthrough fileprivate final func guard import " +
    "in init inout internal is let lazy mutating nil open operator override private protocol public repeat self some " +
    "super throws typealias var weak where",
};

/** Words that a name follows. */
const DECLARES = /\b(?:fn|func|fun|function|class|struct|enum|interface|trait|namespace)/;

const LITERALS = "true false null nil nullptr undefined None NULL";

/** Texts end with their line, so that one that is not closed colours no more than that. */
const DOUBLE = { scope: "string", match: /"(\\.|[^"\\\n])*"/ };
const SINGLE = { scope: "string", match: /'(\\.|[^'\\\n])*'/ };
/** One character; a lone quote is a lifetime of Rust. */
const CHARACTER = { scope: "string", match: /'(\\[^']+|[^\\'\n])'/ };
const NUMBER = {
  scope: "number",
  match: /\b(0[xb][\da-f_']+|\d[\d_']*(\.\d+)?(e[+-]?\d+)?)\w*/i,
};
const TYPE = { scope: "type", match: /\b[A-Z]\w*/ };

/** `texts` are those in single quotes, and what else only some have. */
function likeC(own: string, texts: readonly Mode[] = [CHARACTER]): LanguageFn {
  const keywords = { keyword: `${COMMON} ${own}`, literal: LITERALS };
  const inside = [DOUBLE, ...texts, NUMBER, TYPE];
  const substituted = { scope: "subst", begin: /\$\{/, end: /\}/, keywords, contains: inside };
  return (hljs: HLJSApi): Language => ({
    keywords,
    contains: [
      hljs.C_LINE_COMMENT_MODE,
      hljs.C_BLOCK_COMMENT_MODE,
      { scope: "string", begin: /"""/, end: /"""/ },
      { scope: "string", begin: "`", end: "`", contains: [hljs.BACKSLASH_ESCAPE, substituted] },
      { scope: "meta", match: /^\s*#\s*\w+.*|#!?\[.*?\]|@\w+/ },
      { match: [DECLARES, /\s+/, /\w+/], scope: { 1: "keyword", 3: "title" } },
      ...inside,
    ],
  });
}

/** A slash where no value stands before it. */
const REGULAR_EXPRESSION = {
  scope: "regexp",
  match: /(?<=(^|[=(,:;!&|?{}[]|return)\s*)\/(?![*/])(\\.|\[[^\]\n]*\]|[^/\\\n])+\/\w*/,
};

const SQL_WORDS =
  "add all alter and as asc begin between by case cascade check column commit constraint create cross " +
  "database default delete desc distinct drop else end except exists explain foreign from full function group having " +
  "if in index inner insert intersect into is join key left like limit not offset on or order outer over partition " +
  "primary references replace returning right rollback select set table then to transaction trigger union unique " +
  "update using values view when where window with";

function sql(hljs: HLJSApi): Language {
  return {
    case_insensitive: true,
    keywords: {
      keyword: SQL_WORDS,
      type:
        "bigint blob boolean char date datetime decimal double float int integer interval json jsonb numeric real " +
        "serial smallint text time timestamp uuid varchar",
      built_in: "avg coalesce count max min now sum",
      literal: "true false null",
    },
    contains: [
      hljs.COMMENT("--", "$"),
      hljs.C_BLOCK_COMMENT_MODE,
      { scope: "string", begin: "'", end: "'", contains: [{ begin: "''" }] },
      { scope: "string", begin: '"', end: '"' },
      hljs.C_NUMBER_MODE,
    ],
  };
}

function css(hljs: HLJSApi): Language {
  const values = [
    hljs.C_BLOCK_COMMENT_MODE,
    hljs.APOS_STRING_MODE,
    hljs.QUOTE_STRING_MODE,
    { scope: "number", match: /#[\da-f]{3,8}\b|[-+]?\d*\.?\d+(%|[a-z]+)?/i },
    { scope: "built_in", match: /[\w-]+(?=\()/ },
    { scope: "keyword", match: /!important|@[\w-]+/ },
  ];
  return {
    contains: [
      hljs.C_BLOCK_COMMENT_MODE,
      { scope: "keyword", match: /@[\w-]+/ },
      { scope: "attr", match: /--[\w-]+|[a-z-]+(?=\s*:[^{;]*[;}\n])/ },
      { scope: "selector-class", match: /[.#][a-z_][\w-]*/i },
      { begin: /:/, end: /[;{}]/, returnEnd: true, contains: values },
    ],
  };
}

function bash(hljs: HLJSApi): Language {
  const variable = { scope: "variable", match: /\$(\w+|\{[^}]*\}|[@#?$!*])/ };
  return {
    keywords: {
      keyword:
        "case do done elif else esac export fi for function if in local return select set then until while",
      built_in:
        "apt-get awk cat cd chmod cp curl docker echo find git grep kill ls make mkdir mv npm pip pwd read rm sed " +
        "source ssh sudo tar test touch wget xargs",
    },
    contains: [
      { scope: "meta", match: /^#!.*/ },
      { scope: "comment", match: /(^|\s)#.*/ },
      { scope: "string", begin: '"', end: '"', contains: [hljs.BACKSLASH_ESCAPE, variable] },
      { scope: "string", begin: "'", end: "'" },
      { scope: "attr", match: /(?<=\s)--?[a-z][\w-]*/i },
      variable,
    ],
  };
}

/** Lines of keys and values: YAML, TOML, INI. */
function settings(hljs: HLJSApi): Language {
  return {
    keywords: { literal: "true false yes no on off null" },
    contains: [
      { scope: "comment", match: /(^|\s)[#;].*/ },
      { scope: "section", match: /^\s*\[.*\]\s*$/ },
      { scope: "attr", match: /^[\s-]*[\w."'/-]+(?=\s*(:(\s|$)|=))/ },
      hljs.QUOTE_STRING_MODE,
      hljs.APOS_STRING_MODE,
      hljs.C_NUMBER_MODE,
    ],
  };
}

/** The grammars, by name. */
export const SMALL_LANGUAGES: Readonly<Record<string, LanguageFn>> = {
  ...Object.fromEntries(Object.entries(KEYWORDS).map(([name, own]) => [name, likeC(own)])),
  php: likeC(KEYWORDS.php!, [SINGLE]),
  typescript: likeC(KEYWORDS.typescript!, [SINGLE, REGULAR_EXPRESSION]),
  bash,
  css,
  sql,
  yaml: settings,
};

/** What else people call them. */
export const SMALL_ALIASES: Readonly<Record<string, readonly string[]>> = {
  bash: ["sh", "zsh", "shell", "console"],
  c: ["cpp", "c++", "h", "hpp", "cc", "objc", "dart", "scala"],
  csharp: ["cs", "c#"],
  css: ["scss", "less"],
  go: ["golang"],
  kotlin: ["kt"],
  rust: ["rs"],
  typescript: ["javascript", "js", "ts", "jsx", "tsx", "mjs", "node"],
  sql: ["postgres", "postgresql", "sqlite", "mysql"],
  yaml: ["yml", "toml", "ini", "properties"],
};
