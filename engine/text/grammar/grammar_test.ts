// Grammars that are no schemas, token by token on a vocabulary made up here: bytes, and tokens that hold several signs
// of a grammar, or parts of characters.

import { assertEquals, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { compileGbnf } from "./gbnf.ts";
import {
  compileRegex,
  type Grammar,
  inOrder,
  literal,
  oneOfGrammars,
  repeated,
  until,
} from "./grammar.ts";
import { createConstraint } from "./constraint.ts";
import { allowed, END, reads, tokenizerOf } from "../../../tests/support/grammars.ts";

function gbnf(...rules: readonly string[]): Grammar {
  return compileGbnf(rules.join("\n"));
}

Deno.test("a regular expression matches the whole text", () => {
  const grammar = compileRegex("[a-c]+(\\d{2}|é)");
  for (const text of ["a12", "abcé"]) assertEquals(reads(grammar, text), true, text);
  for (const text of ["", "a", "a1", "a123", "xa12", "aéé"]) {
    assertEquals(reads(grammar, text), false, text);
  }
});

Deno.test("a GBNF grammar reads what its rules say", () => {
  const grammar = gbnf(
    "root ::= expr # a sum",
    'expr ::= term (("+" | "-") term)*',
    'term ::= number | "(" expr ")"',
    "number ::= [0-9]+ ",
  );
  for (const text of ["1", "1+2-30", "(1+(2))-3"]) assertEquals(reads(grammar, text), true, text);
  for (const text of ["", "1+", "(1", "1)", "a"]) assertEquals(reads(grammar, text), false, text);
});

Deno.test("repetitions of GBNF have bounds, also large ones and of more than one sign", () => {
  const grammar = gbnf('root ::= "a"{2,3} pair{0,1000} [^x]?', 'pair ::= "(" pair? ")"');
  for (const text of ["aa", "aaa", "aa()(())", "aaaé", `aa${"()".repeat(1000)}`]) {
    assertEquals(reads(grammar, text), true, text);
  }
  for (const text of ["a", "aax", "aa((", `aa${"()".repeat(1001)}`]) {
    assertEquals(reads(grammar, text), false, text);
  }
});

Deno.test("a GBNF text that is none is refused with its line", () => {
  for (
    const [source, message] of [
      ['root ::= "a"\nroot ::= "b"', "grammar line 2: rule root is there twice"],
      ["root ::= other", "the grammar has no rule other"],
      ['start ::= "a"', "the grammar has no rule root"],
      ['root ::= ("a"', "grammar line 1: a group is not closed"],
      ['root ::= "a', "grammar line 1: a text or class is not closed"],
      ['root ::= "a"{3,2}', "grammar line 1: a repetition has bounds 3 and 2"],
      ['root ::= "a" root', "no text ends rule root of the grammar"],
      ['root ::= root "a" | "a"', "rule root of the grammar can begin with itself"],
      ['root ::= x? y\nx ::= "x"\ny ::= root "b" | "c"', "rule root of the grammar can begin with"],
    ] as const
  ) assertThrows(() => compileGbnf(source), FormatError, message);
});

Deno.test("tokens span signs of the grammar, and parts of characters", () => {
  const tokenizer = tokenizerOf(["{", "}", '"', "a", '{"', '"}', "\xf0\x9f", "\x98\x80", '"a']);
  const grammar = gbnf('root ::= "{" "\\"" [^"]+ "\\"" "}"');
  const constraint = createConstraint(grammar, { tokenizer });
  assertEquals(allowed(constraint, tokenizer), ["{", '{"']);
  constraint.accept(4);
  assertEquals(allowed(constraint, tokenizer), ["{", "}", "a", '{"', "\xf0\x9f"]);
  constraint.accept(6);
  assertEquals(allowed(constraint, tokenizer), ["\x98\x80"]);
  constraint.accept(7);
  assertEquals(constraint.allows(5), true);
  constraint.accept(5);
  assertEquals([constraint.isComplete, allowed(constraint, tokenizer)], [true, [END]]);
});

Deno.test("tokens are taken back, and the end of the text too", () => {
  const tokenizer = tokenizerOf(["a", "b", "ab"]);
  const constraint = createConstraint(compileRegex("(ab)*"), { tokenizer });
  const first = allowed(constraint, tokenizer);
  assertEquals(first, ["a", "ab", END]);
  constraint.accept(2);
  constraint.accept(tokenizer.eosId!);
  assertEquals([constraint.isComplete, constraint.length], [true, 2]);
  assertEquals(allowed(constraint, tokenizer), []);
  constraint.rollback(2);
  assertEquals(allowed(constraint, tokenizer), first);
  assertThrows(() => constraint.accept(1), RangeError, 'Cannot take token 1 ("b")');
  assertThrows(() => constraint.rollback(1), RangeError, "Cannot take back 1 tokens of 0");
});

Deno.test("a mask allows what allows() says, at every place of a random walk", () => {
  const texts = ["a", "b", "ab", "ba", "1", "11", "(", ")", "((", "))", "(a", "b)", " ", "  "];
  const tokenizer = tokenizerOf(texts);
  const grammar = gbnf('root ::= (" "? item){1,8}', 'item ::= [ab]+ | "1"{2,5} | "(" item* ")"');
  for (let seed = 1; seed <= 20; seed++) {
    const masked = createConstraint(grammar, { tokenizer });
    const tried = createConstraint(grammar, { tokenizer });
    let state = seed;
    for (let i = 0; i < 30 && !masked.isComplete; i++) {
      const mask = masked.mask();
      const ids = Array.from({ length: tokenizer.vocabSize }, (_, id) => id);
      const ok = ids.filter((id) => tried.allows(id));
      assertEquals(ids.filter((id) => mask[id >> 5]! >> (id & 31) & 1), ok);
      state = Math.imul(state, 0x5bd1e995) + 1 >>> 0;
      const id = ok[state % ok.length]!;
      masked.accept(id);
      tried.accept(id);
    }
  }
});

Deno.test("blanks that decoding drops from the first token do not count", () => {
  const tokenizer = tokenizerOf([" a", "a", " ", "  a"]);
  const grammar = compileRegex("a+");
  const dropping = createConstraint(grammar, { tokenizer, leadingBlanks: 1 });
  assertEquals(allowed(dropping, tokenizer), [" a", "a", " "]);
  dropping.accept(0);
  assertEquals(allowed(dropping, tokenizer), ["a", END]);
  dropping.rollback(1);
  dropping.accept(2);
  assertEquals(allowed(dropping, tokenizer), ["a"]);
  assertEquals(allowed(createConstraint(grammar, { tokenizer }), tokenizer), ["a"]);
});

Deno.test("a vocabulary without a character that is wanted is told so", () => {
  const tokenizer = tokenizerOf(["a"]);
  const constraint = createConstraint(literal("aé"), { tokenizer });
  constraint.accept(0);
  assertThrows(
    () => constraint.mask(),
    UnsupportedError,
    'the vocabulary has no token with which the grammar can go on behind "a"',
  );
});

Deno.test("grammars are put together", () => {
  const call = inOrder(
    until("<call>"),
    oneOfGrammars(literal("f"), literal("gg")),
    literal("</call>"),
  );
  const grammar = repeated(call, { max: 2 });
  const two = "<<call>gg</call><call>f</call>";
  for (const text of ["", "a <call>f</call>", two]) assertEquals(reads(grammar, text), true, text);
  for (const text of ["hello", "<call><call", "a <call>x</call>", `${two}a <call>f</call>`]) {
    assertEquals(reads(grammar, text), false, text);
  }
});

Deno.test("an expression without any text is refused, wherever the empty class stands", () => {
  for (const source of ["[]", "a[]", "[]|b[]", "a$b"]) {
    assertThrows(() => compileRegex(source), FormatError, `no text matches "${source}"`);
  }
  assertEquals(reads(compileRegex("a|[]"), "a"), true);
});

Deno.test("what is nested deeper than the stack is refused by name", () => {
  const deep = 20_000, open = "(".repeat(deep), close = ")".repeat(deep);
  const group = "(?:".repeat(deep);
  assertThrows(() => compileRegex(`${group}a${close}`), UnsupportedError, "nested too deeply");
  assertThrows(() => gbnf(`root ::= ${open} "a" ${close}`), UnsupportedError, "nested too deeply");
  // What is not so deep is read, and written token by token as deep as it likes.
  const some = 200;
  assertEquals(reads(compileRegex(`${"(".repeat(some)}a${")".repeat(some)}`), "a"), true);
  assertEquals(
    reads(gbnf('root ::= "(" root ")" | "a"'), `${"(".repeat(2000)}a${")".repeat(2000)}`),
    true,
  );
});

Deno.test("rules that lead through thousands of others are looked at once each", () => {
  const count = 100_000;
  const chain = (last: string) => [
    "root ::= a0",
    ...Array.from({ length: count }, (_, i) => `a${i} ::= a${i + 1}`),
    `a${count} ::= ${last}`,
  ];
  // Looked at as often as there are rules, this would take hours.
  assertThrows(() => gbnf(...chain('"x"')), UnsupportedError, "nested too deeply, or too long");
  assertThrows(() => gbnf(...chain(`a${count / 2} | "x"`)), FormatError, "can begin with itself");
  assertThrows(() => gbnf(...chain(`"x" a${count / 2}`)), FormatError, "no text ends rule root");
});

Deno.test("a rule that begins with itself is found, whatever is empty before", () => {
  for (
    const [rules, name] of [
      [['root ::= root "a" | "b"'], "root"],
      [['root ::= e root "a" | "b"', 'e ::= "" | "c"'], "root"],
      [['root ::= "a" x', 'x ::= y | "b"', 'y ::= z? x "c"', 'z ::= "d"'], "x"],
      [["root ::= a", 'a ::= ("b" | "")* c', 'c ::= a | "d"'], "a"],
    ] as const
  ) {
    assertThrows(
      () => gbnf(...rules),
      FormatError,
      `rule ${name} of the grammar can begin with itself`,
    );
  }
  // Behind something.
  assertEquals(reads(gbnf('root ::= "a" x', 'x ::= "b" x | root | "c"'), "abbac"), true);
});

Deno.test("a message shows the beginning of a long pattern", () => {
  const { message } = assertThrows(() => compileRegex("(".repeat(100_000)), FormatError);
  assertEquals(message.length < 400, true, message.slice(0, 400));
});
