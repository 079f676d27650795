// Prompts of the AI SDK as messages of a chat. What a model cannot read is an error that says what it was.

import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import type { ChatMessage, ContentPart } from "../../text/chat_template.ts";
import { unsupported } from "./sdk_error.ts";

type AssistantPart = (LanguageModelV4Message & { readonly role: "assistant" })["content"][number];

/**
 * Messages of a prompt.
 *
 * @throws {Error} `AI_UnsupportedFunctionalityError` if a part is neither text nor a picture.
 */
export function promptMessages(prompt: LanguageModelV4Prompt): ChatMessage[] {
  return prompt.flatMap((message): ChatMessage[] => {
    if (message.role === "system") return [{ role: "system", content: message.content }];
    if (message.role === "assistant") return assistantMessages(message.content);
    if (message.role === "user") {
      return [{ role: "user", content: message.content.map(partOf) }];
    }
    // An approval says nothing to the model: what came of it is a result.
    return message.content.flatMap((part) =>
      part.type === "tool-result" ? [toolMessage(part)] : []
    );
  });
}

/** A text, or a picture, which a model that sees takes and others refuse. */
function partOf(
  part: { readonly type: "text"; readonly text: string } | LanguageModelV4FilePart,
): ContentPart {
  const image = part.type === "file" && PICTURE.test(part.mediaType)
    ? pictureAddress(part)
    : undefined;
  return image === undefined ? textPart(part) : { type: "image", image };
}

const PICTURE = /^image(\/|$)/;

/** A picture as a data: URL; undefined for what lies elsewhere: nothing is fetched here, and the SDK has done so before. */
function pictureAddress({ data, mediaType }: LanguageModelV4FilePart): string | undefined {
  if (data.type === "url" && data.url.protocol === "data:") return data.url.href;
  if (data.type !== "data") return undefined;
  const base64 = typeof data.data === "string" ? data.data : data.data.toBase64();
  const type = mediaType.includes("/") && !mediaType.endsWith("*") ? mediaType : "image/png";
  return `data:${type};base64,${base64}`;
}

function textPart(
  part: { readonly type: "text"; readonly text: string } | LanguageModelV4FilePart,
): ContentPart {
  if (part.type === "text") return { type: "text", text: part.text };
  if (part.data.type === "text") return { type: "text", text: part.data.text };
  throw unsupported(
    `file part of type ${part.mediaType}`,
    `The model reads text and pictures, and the prompt has a file of type ${part.mediaType}`,
  );
}

/** An answer, and behind it the results of calls that whoever gave it ran itself. */
function assistantMessages(parts: readonly AssistantPart[]): ChatMessage[] {
  let content = "", thinking = "";
  const calls: unknown[] = [], results: ChatMessage[] = [];
  for (const part of parts) {
    if (part.type === "text") content += part.text;
    else if (part.type === "reasoning") thinking += part.text;
    else if (part.type === "tool-result") results.push(toolMessage(part));
    else if (part.type === "tool-call") {
      const { toolCallId: id, toolName: name, input } = part;
      calls.push({ id, type: "function", function: { name, arguments: input } });
    } else if (part.type === "file") content += textPart(part).text;
    else {
      throw unsupported(`${part.type} part`, `The model reads no part of the kind ${part.type}`);
    }
  }
  return [{
    ...{ role: "assistant", content },
    // Templates know it by either name.
    ...thinking !== "" && { reasoning_content: thinking, thinking },
    ...calls.length > 0 && { tool_calls: calls },
  }, ...results];
}

function toolMessage(
  { toolCallId, toolName, output }: LanguageModelV4ToolResultPart,
): ChatMessage {
  return { role: "tool", tool_call_id: toolCallId, name: toolName, content: resultText(output) };
}

function resultText(output: LanguageModelV4ToolResultOutput): string {
  switch (output.type) {
    case "text":
    case "error-text":
      return output.value;
    case "json":
    case "error-json":
      return JSON.stringify(output.value);
    case "execution-denied":
      return `The call was denied${output.reason ? `: ${output.reason}` : ""}.`;
    case "content":
      return output.value.map((part) => {
        if (part.type === "text") return part.text;
        if (part.type === "file" && part.data.type === "text") return part.data.text;
        throw unsupported(
          `${part.type} in the result of a tool`,
          `The model reads text only, and the result of a tool holds a ${part.type}`,
        );
      }).join("");
  }
}
