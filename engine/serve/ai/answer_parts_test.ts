import { assertEquals } from "@std/assert";
import type { ChatChunk, ChatResult } from "../../decode/chat.ts";
import { AnswerParts } from "./answer_parts.ts";

const chunk = (part: Partial<ChatChunk>): ChatChunk => ({
  ...{ text: "", tokens: [{ id: 1 }], round: 0 },
  ...part,
});
const call = (argumentsText: string, index = 0) => ({
  toolCalls: [{ index, id: `c${index}`, name: "f", argumentsText }],
});
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const resultOf = (argumentsText: string) =>
  ({
    toolCalls: [{ id: "c0", name: "f", arguments: {}, argumentsText }],
    ...{ finishReason: "tool_calls", seed: 3 },
  }) as unknown as ChatResult;

Deno.test("arguments are told as they are written, and what is left of them at the end", () => {
  const parts = new AnswerParts();
  const steps = ["", '{"a": "x', '{"a": "xyz", "b": 1'];
  const told = steps.flatMap((text) => parts.chunk(chunk(call(text))));
  told.push(...parts.end(resultOf('{"a": "xyz", "b": 12}'), usage));
  const deltas = told.flatMap((part) => part.type === "tool-input-delta" ? [part.delta] : []);
  assertEquals(deltas, ['{"a": "x', 'yz", "b": 1', "2}"]);
  assertEquals(told.map(({ type }) => type), [
    ...["tool-input-start", "tool-input-delta", "tool-input-delta", "tool-input-delta"],
    ...["tool-input-end", "tool-call", "finish"],
  ]);
});

Deno.test("blocks begin and end around what they hold, and calls stand between them", () => {
  const parts = new AnswerParts();
  const told = [
    chunk({ thinking: "a" }),
    chunk({ thinking: "b" }),
    chunk({ thinking: "c", text: "d" }),
    chunk({ text: "e" }),
    chunk(call("{")),
    chunk({ text: "f" }),
  ].flatMap((one) => parts.chunk(one));
  assertEquals(told.map((part) => "id" in part ? `${part.type} ${part.id}` : part.type), [
    ...[
      "reasoning-start reasoning-0",
      "reasoning-delta reasoning-0",
      "reasoning-delta reasoning-0",
    ],
    ...["reasoning-delta reasoning-0", "reasoning-end reasoning-0", "text-start text-1"],
    ...["text-delta text-1", "text-delta text-1", "text-end text-1", "tool-input-start c0"],
    ...["tool-input-delta c0", "text-start text-2", "text-delta text-2"],
  ]);
});
