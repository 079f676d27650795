import type {
  LanguageModelV4FilePart,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
} from "@ai-sdk/provider";
import { assertEquals, assertThrows } from "@std/assert";
import { promptMessages } from "./prompt_messages.ts";

const result = (output: LanguageModelV4ToolResultOutput) =>
  ({ type: "tool-result", toolCallId: "c1", toolName: "f", output }) as const;

Deno.test("a prompt's messages are those of a chat, part by part", () => {
  const prompt: LanguageModelV4Prompt = [
    { role: "system", content: "Be short." },
    {
      role: "user",
      content: [{ type: "text", text: "Hi, " }, {
        ...{ type: "file", mediaType: "text/plain", data: { type: "text", text: "a file" } },
      }],
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Hm." },
        { type: "text", text: "I look." },
        { type: "tool-call", toolCallId: "c1", toolName: "f", input: { a: 1 } },
        result({ type: "text", value: "by itself" }),
      ],
    },
    {
      role: "tool",
      content: [
        { type: "tool-approval-response", approvalId: "p", approved: true },
        result({ type: "json", value: { b: [2] } }),
      ],
    },
  ];
  assertEquals(promptMessages(prompt), [
    { role: "system", content: "Be short." },
    {
      role: "user",
      content: [{ type: "text", text: "Hi, " }, { type: "text", text: "a file" }],
    },
    {
      ...{ role: "assistant", content: "I look.", reasoning_content: "Hm.", thinking: "Hm." },
      tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: { a: 1 } } }],
    },
    { role: "tool", tool_call_id: "c1", name: "f", content: "by itself" },
    { role: "tool", tool_call_id: "c1", name: "f", content: '{"b":[2]}' },
  ]);
});

Deno.test("results of tools are text, whatever became of the call", () => {
  const texts: readonly (readonly [LanguageModelV4ToolResultOutput, string])[] = [
    [{ type: "text", value: "a" }, "a"],
    [{ type: "error-text", value: "no" }, "no"],
    [{ type: "error-json", value: ["no"] }, '["no"]'],
    [{ type: "execution-denied" }, "The call was denied."],
    [{ type: "execution-denied", reason: "late" }, "The call was denied: late."],
    [{ type: "content", value: [{ type: "text", text: "a" }, { type: "text", text: "b" }] }, "ab"],
  ];
  for (const [output, text] of texts) {
    const [message] = promptMessages([{ role: "tool", content: [result(output)] }]);
    assertEquals(message!.content, text);
  }
});

Deno.test("pictures of a question are data: URLs, however they come", () => {
  const url = "data:image/png;base64,AQID", mediaType = "image/png";
  const ways: readonly (readonly [LanguageModelV4FilePart["data"], string])[] = [
    [{ type: "data", data: "AQID" }, mediaType],
    [{ type: "data", data: Uint8Array.of(1, 2, 3) }, mediaType],
    [{ type: "data", data: Uint8Array.of(1, 2, 3) }, "image"],
    [{ type: "url", url: new URL(url) }, "image/*"],
  ];
  for (const [data, mediaType] of ways) {
    const content = [{ type: "file", mediaType, data }, { type: "text", text: "What?" }] as const;
    assertEquals(promptMessages([{ role: "user", content: [...content] }]), [{
      role: "user",
      content: [{ type: "image", image: url }, { type: "text", text: "What?" }],
    }]);
  }
});

Deno.test("what is no text is refused by name", () => {
  const sound = { mediaType: "audio/wav", data: { type: "data", data: "" } } as const;
  const far = {
    mediaType: "image/png",
    data: { type: "url", url: new URL("https://a.example/b") },
  };
  const picture = { mediaType: "image/png", data: { type: "data", data: "" } } as const;
  assertThrows(
    () => promptMessages([{ role: "user", content: [{ type: "file", ...sound }] }]),
    Error,
    "has a file of type audio/wav",
  );
  assertThrows(
    () => promptMessages([{ role: "user", content: [{ type: "file", ...far } as never] }]),
    Error,
    "has a file of type image/png",
  );
  assertThrows(
    () =>
      promptMessages([{ role: "assistant", content: [{ type: "reasoning-file", ...picture }] }]),
    Error,
    "no part of the kind reasoning-file",
  );
  const output = { type: "content", value: [{ type: "file", ...picture }] } as const;
  assertThrows(
    () =>
      promptMessages([{
        role: "tool",
        content: [result({ ...output, value: [...output.value] })],
      }]),
    Error,
    "the result of a tool holds a file",
  );
});
