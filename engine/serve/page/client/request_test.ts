// Trees of messages, and what is asked of them.

import { assertEquals } from "@std/assert";
import {
  addMessage,
  type Message,
  newConversation,
  pathTo,
  showVersion,
  titleOf,
  versions,
} from "./conversation.ts";
import { pieceOf } from "./piece.ts";
import { requestBody } from "./request.ts";
import { type NumberField, numberProblem, schemaProblem } from "./settings.ts";

function conversationOf(settings = {}) {
  const conversation = newConversation(settings);
  const add = (parent: Message | undefined, role: Message["role"], text: string) =>
    addMessage(conversation, { parent: parent?.id, role, text });
  const texts = () => pathTo(conversation).map(({ text }) => text);
  return { conversation, add, texts };
}

Deno.test("a version that is shown brings what came last behind it", () => {
  const { conversation, add, texts } = conversationOf();
  const one = add(undefined, "user", "one");
  const first = add(one, "assistant", "first");
  add(first, "user", "more");
  const second = add(one, "assistant", "second");
  const two = add(undefined, "user", "two");
  assertEquals(texts(), ["two"]);
  assertEquals(versions(conversation, one), [one, two]);
  showVersion(conversation, one);
  assertEquals(texts(), ["one", "second"]);
  assertEquals(versions(conversation, first), [first, second]);
  showVersion(conversation, first);
  assertEquals(texts(), ["one", "first", "more"]);
});

Deno.test("requestBody() joins questions between which no answer came, and leaves empty fields out", () => {
  const { conversation, add } = conversationOf({
    model: "m",
    probabilities: false,
    schema: " ",
    stop: "\n",
  });
  const one = add(undefined, "user", "one");
  const failed = add(one, "assistant", "");
  const two = add(failed, "user", "two");
  assertEquals(requestBody(conversation, two), {
    model: "m",
    messages: [{ role: "user", content: "one\n\ntwo" }],
    stream: true,
    stream_options: { include_usage: true },
  });
});

Deno.test("requestBody() has pictures in parts in front of their text", () => {
  const { conversation } = conversationOf({ model: "m" });
  const picture = "data:image/png;base64,AA==";
  const one = addMessage(conversation, { parent: undefined, role: "user", text: "one", picture });
  const failed = addMessage(conversation, { parent: one.id, role: "assistant", text: "" });
  const two = addMessage(conversation, { parent: failed.id, role: "user", text: "two" });
  assertEquals(requestBody(conversation, two).messages, [{
    role: "user",
    content: [
      { type: "image_url", image_url: { url: picture } },
      { type: "text", text: "one\n\ntwo" },
    ],
  }]);
});

Deno.test("pieceOf() spells parts of characters as bytes, and takes no null for text", () => {
  const logprobs = {
    content: [{
      ...{ token: "\ufffd", logprob: 0, bytes: [0xe2, 0x82] },
      top_logprobs: [{ token: " a", logprob: Math.log(0.5), bytes: [32, 97] }],
    }],
  };
  assertEquals(
    pieceOf({ choices: [{ delta: { content: "" }, logprobs, finish_reason: null }], usage: null }),
    {
      tokens: [{ text: "\\xe2\\x82", probability: 1, others: [{ text: " a", probability: 0.5 }] }],
    },
  );
  assertEquals(
    pieceOf({ choices: [{ delta: { content: null, reasoning_content: "hm" }, logprobs: null }] }),
    { thinking: "hm" },
  );
  assertEquals(pieceOf({ choices: [], usage: { completion_tokens: 3, total_tokens: 9 } }), {
    usage: { completion: 3, total: 9 },
  });
});

Deno.test("numberProblem() and schemaProblem() say what is wrong, and nothing of an empty box", () => {
  const field: NumberField = { name: "x", label: "X", help: "", min: 0, max: 1000, step: 1 };
  assertEquals(["", " 7 ", "1e3"].map((text) => numberProblem(field, text)), [
    undefined,
    undefined,
    undefined,
  ]);
  for (const text of ["-1", "1001", "0.5", "x", "NaN", "1,5"]) {
    assertEquals(numberProblem(field, text), "A whole number from 0 to 1,000", text);
  }
  assertEquals(schemaProblem(" "), undefined);
  assertEquals(schemaProblem("{}"), undefined);
  for (const text of ["null", "[]", "1"]) {
    assertEquals(
      schemaProblem(text),
      'A JSON Schema is an object, like { "type": "object" }',
      text,
    );
  }
});

Deno.test("titleOf() is a line cut between words", () => {
  assertEquals(titleOf("  a\n b "), "a b");
  assertEquals(titleOf("word ".repeat(20)), `${"word ".repeat(12).trim()}…`);
  assertEquals(titleOf("w".repeat(70)), `${"w".repeat(60)}…`);
});
