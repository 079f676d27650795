// Models held to their calls: whatever is allowed, taken at random, is a call of a tool with arguments that its schema
// takes, in every notation that writes arguments as JSON. The vocabulary is the tiny llama's; texts of marks are no
// tokens of it but in the notations with names in front, where they are added.

import { assert, assertEquals, assertThrows } from "@std/assert";
import { loadTiny } from "../../../tests/support/models.ts";
import { AnswerReader } from "../../text/answer/answer_reader.ts";
import { CALL_FORMATS, type CallFormat } from "../../text/answer/call_formats.ts";
import { compileSchema } from "../../text/grammar/schema/compile.ts";
import type { Tokenizer } from "../../text/tokenizer_types.ts";
import { createRandom, nextDouble } from "../sampling/random.ts";
import { CallConstraint } from "./call_constraint.ts";
import { problemOf } from "./schema_check.ts";

const SCHEMAS = {
  paint: {
    type: "object",
    properties: {
      colour: { enum: ["red", "blue"] },
      coats: { type: "integer", minimum: 1, maximum: 9 },
    },
    required: ["colour", "coats"],
    additionalProperties: false,
  },
  stop: { type: "object", properties: {}, additionalProperties: false },
};
const TOOLS = Object.entries(SCHEMAS).map(([name, parameters]) => ({
  name,
  parameters,
  grammar: compileSchema(parameters),
}));

const HELD = CALL_FORMATS.filter(({ texts, namesFirst }) => texts || namesFirst);

/** The tiny vocabulary, its last tokens the control tokens of a notation. */
async function vocabulary({ heads, open = [], close = [] }: CallFormat): Promise<Tokenizer> {
  using model = await loadTiny();
  const tokenizer = model.tokenizer;
  const marks = [...heads ? [heads.open, heads.end, ...heads.closes] : [], ...open, ...close];
  const more = ["[ARGS]", "<|constrain|>", "<｜tool▁sep｜>", "<|tool_call_argument_begin|>"];
  const texts = [...marks, ...more].filter((text) => /^[<[].*[>\]]$/.test(text));
  const first = tokenizer.vocabSize;
  const pattern = new RegExp(texts.map((text) => text.replace(/[|[\]]/g, "\\$&")).join("|"), "g");
  return {
    ...tokenizer,
    vocabSize: first + texts.length,
    idOf: (text) => texts.includes(text) ? first + texts.indexOf(text) : tokenizer.idOf(text),
    isSpecial: (id) => id >= first || tokenizer.isSpecial(id),
    tokenText: (id) => texts[id - first] ?? tokenizer.tokenText(id),
    tokenBytes: (id) =>
      id >= first ? new TextEncoder().encode(texts[id - first]) : tokenizer.tokenBytes(id),
    findSpecial: (text) => [...text.matchAll(pattern)].map(({ index }) => index),
    encode(text) {
      const found = [...text.matchAll(pattern)];
      const parts = text.split(pattern);
      return parts.flatMap((part, i) => [
        ...tokenizer.encode(part, { addSpecial: false }).slice(i > 0 || part === "" ? 1 : 0),
        ...i < found.length ? [first + texts.indexOf(found[i]![0])] : [],
      ]);
    },
  };
}

/** Takes allowed tokens at random until the answer is free again, or over. */
function walk(constraint: CallConstraint, tokenizer: Tokenizer, seed: number): number[] {
  const random = createRandom(seed);
  const ids: number[] = [];
  while (!constraint.isFree && !constraint.isComplete) {
    const mask = constraint.mask();
    const allowed = Array.from({ length: tokenizer.vocabSize }, (_, id) => id)
      .filter((id) => (mask[id >> 5]! >> (id & 31)) & 1);
    const id = allowed[Math.floor(nextDouble(random) * allowed.length)]!;
    assert(constraint.allows(id));
    constraint.accept(id);
    ids.push(id);
    assert(ids.length < 500, "no end");
  }
  return ids;
}

const textOf = (tokenizer: Tokenizer, ids: readonly number[]) =>
  new TextDecoder().decode(Uint8Array.from(ids.flatMap((id) => [...tokenizer.tokenBytes(id)])))
    .trimStart();

function callsOf(format: CallFormat, answer: string) {
  const reader = new AnswerReader({ format, tools: TOOLS });
  reader.push(answer);
  reader.finish(true);
  return reader.calls;
}

for (const format of HELD.filter(({ texts }) => texts)) {
  Deno.test(`an answer that has to be a call is one, as ${format.name} writes it`, async () => {
    const tokenizer = await vocabulary(format);
    const names = new Set<string>();
    for (let seed = 0; seed < 8; seed++) {
      const rules = { tokenizer, tools: TOOLS, format, forced: { begins: [""] } };
      const ids = walk(new CallConstraint(rules), tokenizer, seed);
      const [call, ...more] = callsOf(format, textOf(tokenizer, ids));
      assertEquals([call?.problem, more.length], [undefined, 0], textOf(tokenizer, ids));
      assertEquals(problemOf(call!.arguments, SCHEMAS[call!.name as "paint"]), undefined);
      names.add(call!.name);
    }
    assertEquals(names.size, 2);
  });
}

for (const format of HELD) {
  Deno.test(`a call that a model begins is held to its schema, as ${format.name} writes it`, async () => {
    const tokenizer = await vocabulary(format);
    const { open = [], heads, namesFirst, isBare, texts } = format;
    const first = heads
      ? heads.isOpened ? "" : `Yes.${heads.open}`
      : isBare
      ? ""
      : `Yes. ${open[0]}`;
    const name = texts?.("paint").before ?? {
      deepseek: "paint<｜tool▁sep｜>",
      kimi: "functions.paint:0<|tool_call_argument_begin|>",
    }[format.name];
    const begun = first + (namesFirst ? name : isBare ? name!.slice(0, 9) : "");
    for (let seed = 0; seed < 4; seed++) {
      const constraint = new CallConstraint({ tokenizer, tools: TOOLS, format });
      assert(constraint.isFree && constraint.canEnd);
      const ids = tokenizer.encode(begun, { special: true, addSpecial: false });
      for (const id of ids) constraint.accept(id);
      assert(!constraint.isFree, `${begun} is not held`);
      assertThrows(() => constraint.accept(tokenizer.encode("~")[1]!), RangeError);
      const rest = walk(constraint, tokenizer, seed);
      assert(constraint.isFree && !constraint.isComplete);
      const answer = textOf(tokenizer, [...ids, ...rest]);
      const calls = callsOf(format, answer);
      assert(calls.length > 0, answer);
      for (const { name, arguments: args, problem } of calls) {
        assertEquals(problem, undefined, answer);
        assertEquals(problemOf(args, SCHEMAS[name as "paint"]), undefined);
      }
    }
  });
}

Deno.test("tokens that are taken back leave the answer as bound as it was", async () => {
  const format = CALL_FORMATS.find(({ name }) => name === "hermes")!;
  const tokenizer = await vocabulary(format);
  const constraint = new CallConstraint({ tokenizer, tools: TOOLS, format });
  const text =
    'Yes.<tool_call>\n{"name": "paint", "arguments": {"colour":"red","coats":2}}\n</tool_call>ok';
  const ids = tokenizer.encode(text, { special: true, addSpecial: false });
  const state = () => [constraint.isFree, constraint.canEnd, Array.from(constraint.mask())];
  const states = ids.map((id) => {
    const before = state();
    constraint.accept(id);
    return before;
  });
  for (const back of [1, 3, 17, 40, ids.length]) {
    constraint.rollback(back);
    assertEquals(state(), states[ids.length - back]);
    for (const id of ids.slice(-back)) constraint.accept(id);
  }
  assertThrows(() => constraint.rollback(ids.length + 1), RangeError);
});
